"""Cells in this very process, one after the other."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from slackline.bench.engines.base import Began, Ended, Event, Settings, Ticked, TriedAgain
from slackline.bench.jobs import Job
from slackline.errors import Interrupted, in_one_line
from slackline.io.files import append
from slackline.progress import Tick


def start(settings: Settings) -> Inline:
    return Inline(settings)


@dataclass(frozen=True)
class Inline:
    settings: Settings
    in_place = True
    at_once = 1

    def log_of(self, name: str) -> str:
        return str(self.settings.logs / f"{name}.log")

    def run(self, jobs: Sequence[Job]) -> Generator[Event, None, None]:
        for job in jobs:
            yield Began(job.name)
            problem: str | None = None
            for attempt in range(1 + self.settings.retries):
                if attempt:
                    yield TriedAgain(job.name, problem or "")
                ticks: list[Tick] = []
                problem = self._problem(job, ticks)
                yield from (Ticked(job.name, tick) for tick in ticks[-1:])
                if problem is None:
                    break
            yield Ended(job.name, problem)

    def _problem(self, job: Job, ticks: list[Tick]) -> str | None:
        """Run a cell; what went wrong, if anything did."""
        try:
            self.settings.perform(job, ticks.append)
        except Interrupted:
            raise
        except Exception as error:
            append(Path(self.log_of(job.name)), traceback.format_exc().encode(errors="replace"))
            return in_one_line(error) or type(error).__name__
        return None
