"""A cell as plain data, for whatever process or machine is to run it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from slackline.adapt.kshot import Adapting
from slackline.bench.cells import Cell, run_cell
from slackline.progress import OnTick, Tick
from slackline.store.places import fetch, keeper, place_at
from slackline.store.run import RunConfig
from slackline.suites.suite import Suite


@dataclass(frozen=True)
class Job:
    """What a worker has to know of a cell."""

    name: str
    suite: str
    """As the user named it."""
    config: dict[str, Any]
    adaptings: tuple[tuple[int, int, int], ...]
    out: str
    """The folder of the benchmark, or its URL."""
    in_place: bool
    """Whether it is run in that folder; else in one of the worker's own, and copied there."""

    @staticmethod
    def of(cell: Cell, out: str, *, in_place: bool) -> Job:
        adaptings = tuple(astuple(how) for how in cell.adaptings)
        # Workers of a cluster run in folders of their own.
        is_file = cell.word.endswith(".toml") and not in_place
        word = str(Path(cell.word).absolute()) if is_file else cell.word
        return Job(cell.name, word, cell.config.to_json(), adaptings, out, in_place)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        return Job(**json.loads(text))


def run_job(job: Job, resolve: Callable[[str], Suite], on_tick: OnTick) -> None:
    """Run a cell to its end; `resolve` finds a suite by the name that the user gave it."""
    suite = resolve(job.suite)
    with workplace(job) as (path, keep):

        def tell(tick: Tick) -> None:
            on_tick(tick)
            keep()

        config = RunConfig.from_json(job.config, path / "run.json")
        adaptings = tuple(Adapting(*how) for how in job.adaptings)
        run_cell(Cell(suite, config, adaptings, path, job.suite), tell)


@contextmanager
def workplace(job: Job) -> Iterator[tuple[Path, Callable[[], None]]]:
    """The folder to run a cell in, and what to call to keep its checkpoints where they belong."""
    if job.in_place:
        yield Path(job.out) / job.name, lambda: None
        return
    place = place_at(job.out)
    with TemporaryDirectory(prefix="slackline-", ignore_cleanup_errors=True) as scratch:
        path = Path(scratch) / job.name
        fetch(place, job.name, path)
        keep = keeper(place, job.name, path)
        try:
            yield path, keep
        finally:
            keep()
