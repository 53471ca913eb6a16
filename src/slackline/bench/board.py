"""Where a grid stands: done, running, failed, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slackline.bench.engines.base import Began, Ended, Event, Ticked, TriedAgain
from slackline.progress import Tick, steps_per_second


@dataclass
class Running:
    """A cell that is being run."""

    began: float
    tick: Tick | None = None
    speed: float | None = None
    """Environment steps of all seeds per second."""
    attempts: int = 1

    @property
    def share(self) -> float:
        """How much of its training is done."""
        return self.tick.steps / self.tick.total_steps if self.tick else 0.0


@dataclass
class Board:
    """The grid as the events of an engine tell."""

    expected: Mapping[str, float | None]
    """The seconds that each cell to be run is expected to take; None: unknown."""
    at_once: int = 1
    """How many cells run at a time."""
    clock: Callable[[], float] = time.monotonic
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """The problems of those that failed for good."""
    running: dict[str, Running] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    """Seconds of those that are done."""

    def tell(self, event: Event) -> None:
        match event:
            case Began(name):
                self.running[name] = Running(self.clock())
            case Ticked(name, tick) if name in self.running:
                cell = self.running[name]
                cell.speed = steps_per_second(tick, cell.tick) or cell.speed
                cell.tick = tick
            case TriedAgain(name):
                cell = self.running.setdefault(name, Running(self.clock()))
                cell.attempts += 1
            case Ended(name, None):
                self.took[name] = self.clock() - self.running.pop(name).began
                self.done.append(name)
            case Ended(name, str(problem)):
                self.running.pop(name, None)
                self.failed[name] = problem

    @property
    def waiting(self) -> int:
        """How many have not begun."""
        return len(self.expected) - len(self.done) - len(self.failed) - len(self.running)

    def seconds_left(self) -> float | None:
        """Until all are done; None where nothing is known about it yet.

        Expectations are corrected by what the cells that are done took; a cell without any is
        taken for an average one.
        """
        pairs = [(self.took[name], known) for name in self.took if (known := self.expected[name])]
        factor = sum(t for t, _ in pairs) / sum(e for _, e in pairs) if pairs else 1.0
        known = [e * factor for e in self.expected.values() if e] + list(self.took.values())
        if not known:
            return None
        average = sum(known) / len(known)
        ended = {*self.done, *self.failed}
        left = {
            n: (e * factor if e else average) for n, e in self.expected.items() if n not in ended
        }
        for name, cell in self.running.items():
            left[name] = max(0.0, left[name] - (self.clock() - cell.began))
        return sum(left.values()) / max(1, min(self.at_once, len(left)))
