"""The contract of engines: jobs in, events out, every job ends exactly once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slackline.bench.jobs import Job
from slackline.progress import OnTick, Tick

LOGS = "logs"


@dataclass(frozen=True)
class Settings:
    """How an engine is to run cells."""

    out: str
    """The folder of the benchmark, or its URL."""
    worker: str
    """The module that knows how to run a job: `perform(job, on_tick)`, and `python -m` it."""
    perform: Callable[[Job, OnTick], None]
    """The same function, for an engine in this process."""
    workers: int = 1
    """Cells at a time."""
    devices: int | None = None
    """JAX's CPU devices for each cell; None: as many as it has cores."""
    retries: int = 2
    """How often a cell that failed is tried again."""
    address: str | None = None
    """Of a cluster."""
    gpus: float = 0.0
    """That each cell needs, on a cluster."""

    logs: Path = Path(LOGS)
    """Where processes of this machine keep cells' output that was meant for a terminal."""


@dataclass(frozen=True)
class Began:
    """A cell is being run."""

    name: str


@dataclass(frozen=True)
class Ticked:
    """A cell's training went on."""

    name: str
    tick: Tick


@dataclass(frozen=True)
class TriedAgain:
    """A cell failed and will be tried again."""

    name: str
    problem: str


@dataclass(frozen=True)
class Ended:
    """A cell is done, or (with a problem) has failed for good."""

    name: str
    problem: str | None = None


Event = Began | Ticked | TriedAgain | Ended


class Engine(Protocol):
    """Runs jobs. Each yields exactly one `Ended`, whatever happens to its workers."""

    in_place: bool
    """Whether its workers write in the benchmark's folder itself: processes of this machine."""
    at_once: int
    """How many cells it runs at a time, as far as it knows."""

    def log_of(self, name: str) -> str:
        """Where a cell's tracebacks and other output are found."""
        ...

    def run(self, jobs: Sequence[Job]) -> Generator[Event, None, None]:
        """Closing the iterator early stops the workers; they keep what they have done."""
        ...
