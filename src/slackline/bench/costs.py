"""What a cell is expected to cost, from speeds that were measured.

The speeds come with the package (`data/speeds.json`, made of kept runs by benchmarks/speeds.py) and
from the finished runs of the folder itself, which go first: they are of this machine.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from slackline.bench.cells import Cell, adapting_steps
from slackline.bench.merged import nearest_preset
from slackline.errors import SlacklineError
from slackline.store.run import RunConfig, RunFolder
from slackline.suites.suite import Suite

TRAINING, ADAPTING = "training", "adapting"

Speeds = Mapping[str, Mapping[str, float]]
"""Environment steps per second of training and of adapting, by `key`."""


@dataclass(frozen=True)
class Cost:
    """What a cell is expected to take."""

    seconds: float
    of_this_machine: bool
    """Whether the speed is of runs in the same folder."""


def key(suite: str, preset: str, method: str) -> str:
    return f"{suite}/{preset}/{method}"


def key_of(config: RunConfig, suite: Suite) -> str:
    return key(config.suite, nearest_preset(suite, config)[0], config.method)


def expected(cell: Cell, here: Speeds) -> Cost | None:
    """What a cell takes from its beginning; None where no such speed was measured."""
    name = key_of(cell.config, cell.suite)
    for speeds, of_this_machine in ((here, True), (shipped(), False)):
        training = _speed(speeds, name, TRAINING)
        if training is None:
            continue
        adapting = _speed(speeds, name, ADAPTING) or training
        seeds = len(cell.config.seeds)
        steps = sum(adapting_steps(cell.suite, seeds, how) for how in cell.adaptings)
        return Cost(cell.config.total_steps / training + steps / adapting, of_this_machine)
    return None


def _speed(speeds: Speeds, name: str, what: str) -> float | None:
    """Of the very cell, or the slowest of other methods with the same suite and preset."""
    if name in speeds and what in speeds[name]:
        return speeds[name][what]
    alike = name.rpartition("/")[0] + "/"
    return min(
        (s[what] for n, s in speeds.items() if n.startswith(alike) and what in s), default=None
    )


@cache
def shipped() -> Speeds:
    """The speeds that come with the package."""
    text = files("slackline").joinpath("data/speeds.json").read_text(encoding="utf-8")
    return json.loads(text)["speeds"]


def measured(runs: Iterable[RunFolder]) -> dict[str, dict[str, float]]:
    """The speeds of finished runs: the median where there are several alike."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for name, what, speed in _speeds_of(run):
            found[name][what].append(speed)
    return {n: {w: round(median(s), 1) for w, s in kinds.items()} for n, kinds in found.items()}


def _speeds_of(run: RunFolder) -> list[tuple[str, str, float]]:
    record, config = run.read(), run.config()
    if record.get("finished") is not True or config.from_single:
        return []
    name, made = key_of(config, run.suite()), record["provenance"]
    found = []
    if (seconds := _number(made.get("training_seconds"))) > 0.0:
        found.append((name, TRAINING, config.total_steps / seconds))
    steps, seconds = _number(made.get("adapting_steps")), _number(made.get("adapting_seconds"))
    if steps > 0.0 and seconds > 0.0:
        found.append((name, ADAPTING, steps / seconds))
    return found


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def measured_in(out: Path) -> dict[str, dict[str, float]]:
    """The speeds of a benchmark's own runs; one that cannot be read says nothing here."""
    found = []
    for file in sorted(out.glob("*/run.json")) if out.is_dir() else []:
        try:
            run = RunFolder(file.parent)
            run.config()
            found.append(run)
        except SlacklineError:
            continue
    return measured(found)


def spoken(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3.5 h, 2.1 days."""
    for unit, size in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{max(seconds, 1.0):.0f} s"
