"""Cells as tasks of a Ray cluster, which places them by the CPUs and GPUs they need and tries them
again when a worker or a machine is lost.

A task runs its cell in a folder of its own and copies what it has to the benchmark's folder or URL
at every checkpoint (see `store/places.py`): the next attempt goes on from there, wherever it runs.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import time
import traceback
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import jax

from slackline.bench.engines.base import LOGS, Began, Ended, Event, Settings, Ticked
from slackline.bench.jobs import Job
from slackline.errors import SlacklineError, in_one_line, needed
from slackline.progress import Tick
from slackline.runtime import set_up_jax
from slackline.store.places import place_at

LOOK_SECONDS = 1.0
"""Seconds between two reports of a cell, and between two looks of the driver at them."""
CONNECT_SECONDS = 5.0


def start(settings: Settings) -> OnRay:
    """Join the cluster at an address, or make one of this machine."""
    ray = needed("ray", "--engine ray needs Ray", "ray")
    insist_on_reachable(settings.address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    alone = {"include_dashboard": False} if settings.address is None else {}
    try:
        ray.init(address=settings.address, ignore_reinit_error=True, **quiet, **alone)
    except Exception as error:
        raise SlacklineError(
            f"address is {settings.address!r}; no Ray cluster answers there "
            f"({type(error).__name__}: {in_one_line(error)[:150]})"
        ) from error
    engine = OnRay(settings, ray)
    engine.insist_on_room()
    return engine


def insist_on_reachable(address: str | None) -> None:
    """Refuse an address at which nothing answers; Ray itself would try for a minute."""
    if address in (None, "auto", "local"):
        return
    host, _, port = str(address).rpartition(":")
    if "://" in str(address) or not host or not port.isdecimal():
        raise SlacklineError(f"address is {address!r}; it must be HOST:PORT of the head, or auto")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS):
            pass
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or in_one_line(error) or "no answer"
        raise SlacklineError(
            f"address is {address!r}; no Ray cluster answers there ({reason})"
        ) from None


@dataclass
class OnRay:
    settings: Settings
    ray: Any
    in_place = False

    @property
    def needs(self) -> dict[str, float]:
        """What a cell needs of a machine."""
        return {"CPU": self.settings.devices or 1, "GPU": self.settings.gpus}

    def log_of(self, name: str) -> str:
        return f"{self.settings.out}/{LOGS}/{name}.log"

    @property
    def at_once(self) -> int:
        return max(1, sum(self._fit(node["Resources"]) for node in self._nodes()))

    def insist_on_room(self) -> None:
        """Refuse what no machine of the cluster can run: Ray would wait for one that can."""
        if not any(self._fit(node["Resources"]) for node in self._nodes()):
            words = ", ".join(f"{n:g} {kind}" for kind, n in self.needs.items() if n)
            raise SlacklineError(
                f"a cell needs {words}, and no machine of the Ray cluster has that: lower "
                "--devices or --gpus"
            )

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def _fit(self, has: dict[str, float]) -> int:
        """How many cells a machine can run at once."""
        return min(int(has.get(kind, 0.0) // n) for kind, n in self.needs.items() if n)

    def run(self, jobs: Sequence[Job]) -> Generator[Event, None, None]:
        ray, settings = self.ray, self.settings
        board = self._board()
        # Ray counts a lost worker or machine and an error of the cell alike.
        task = ray.remote(
            num_cpus=self.needs["CPU"],
            num_gpus=self.needs["GPU"] or None,
            max_retries=settings.retries,
            retry_exceptions=True,
        )(perform)
        common = (settings.worker, self.needs, list(sys.argv), board)
        pending = {task.remote(job.to_json(), *common): job for job in jobs}
        seen: dict[str, Any] = {}
        try:
            while pending:
                ended, _ = ray.wait(list(pending), timeout=LOOK_SECONDS)
                yield from self._news(board, seen, {job.name for job in pending.values()})
                for reference in ended:
                    yield from self._ended(reference, pending.pop(reference), seen)
        finally:
            for reference in pending:
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)
            ray.shutdown()

    def _board(self) -> Any:
        """The actor that collects the progress of cells."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = self.ray.get_runtime_context().get_node_id()
        beside = NodeAffinitySchedulingStrategy(here, soft=True)
        kind = self.ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=beside)(News)
        return kind.remote()

    def _news(
        self, board: Any, seen: dict[str, Any], running: set[str]
    ) -> Generator[Event, None, None]:
        """What cells reported since the last time; nothing if the actor is lost."""
        try:
            told = self.ray.get(board.all.remote(), timeout=LOOK_SECONDS)
        except Exception:
            return
        for name, tick in told.items():
            if name not in running:
                continue
            if name not in seen:
                yield Began(name)
            if tick is not None and seen.get(name) != tick:
                yield Ticked(name, Tick(**tick))
            seen[name] = tick

    def _ended(
        self, reference: Any, job: Job, seen: dict[str, Any]
    ) -> Generator[Event, None, None]:
        problem = None
        try:
            self.ray.get(reference)
        except Exception as error:
            cause = getattr(error, "cause", None) or error
            problem = in_one_line(cause) or type(error).__name__
            note_failure(self.settings.out, job.name, f"{problem}\n", only_if_missing=True)
        if job.name not in seen:
            yield Began(job.name)
        yield Ended(job.name, problem)


class News:
    """An actor that keeps the last report of every cell."""

    def __init__(self) -> None:
        self.last: dict[str, dict[str, Any] | None] = {}

    def tell(self, name: str, tick: dict[str, Any] | None) -> None:
        self.last[name] = tick

    def all(self) -> dict[str, dict[str, Any] | None]:
        return self.last


def perform(text: str, worker: str, needs: dict[str, float], argv: list[str], board: Any) -> None:
    """The task: run a cell, on whatever machine this is."""
    job = Job.from_json(text)
    sys.argv = argv  # what a run keeps as the command that made it
    told_at = 0.0

    def on_tick(tick: Tick) -> None:
        nonlocal told_at
        if time.monotonic() - told_at > LOOK_SECONDS or tick.steps >= tick.total_steps:
            told_at = time.monotonic()
            board.tell.remote(job.name, asdict(tick))

    board.tell.remote(job.name, None)
    try:
        if not needs["GPU"]:  # Ray leaves them visible to whoever asked for none
            jax.config.update("jax_platforms", "cpu")
        set_up_jax(int(needs["CPU"]))
        import_module(worker).perform(job, on_tick)
    except Exception as error:
        note_failure(job.out, job.name, traceback.format_exc())
        kind = "" if isinstance(error, SlacklineError) else f"{type(error).__name__}: "
        raise RuntimeError(f"{kind}{in_one_line(error)}") from None


def note_failure(out: str, name: str, text: str, *, only_if_missing: bool = False) -> None:
    """Add to a cell's log, where the benchmark is kept."""
    place, log = place_at(out), f"{LOGS}/{name}.log"
    with contextlib.suppress(SlacklineError, OSError):
        before = place.read(log)
        if before is None or not only_if_missing:
            place.write(log, (before or b"") + text.encode())
