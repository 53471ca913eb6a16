"""Cells in processes of this machine, each bound to cores of its own.

A worker reads its jobs and reports their progress as lines of JSON. It ends when its standard input
does: so it also ends with the process that started it, however that ends, once the current stride
is saved.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slackline.bench.engines.base import Began, Ended, Event, Settings, Ticked, TriedAgain
from slackline.bench.jobs import Job
from slackline.envs.sentinel import STARTED_BY
from slackline.errors import SlacklineError
from slackline.io.files import append
from slackline.progress import Tick

PATIENCE = 8.0
"""Seconds that workers have for saving the current stride, before the command ends them."""


def start(settings: Settings) -> Local:
    fewest = min(map(len, shares(available_cores(), settings.workers)))
    if settings.devices is not None and settings.devices > fewest:
        raise SlacklineError(
            f"devices is {settings.devices}; with {settings.workers} workers a cell has {fewest} "
            "of the cores, so it must be at most that"
        )
    return Local(settings)


@dataclass
class Local:
    settings: Settings
    crew: list[Worker] = field(default_factory=list)
    stopping: bool = False
    in_place = True

    def log_of(self, name: str) -> str:
        return str(self.settings.logs / f"{name}.log")

    @property
    def at_once(self) -> int:
        return self.settings.workers

    def run(self, jobs: Sequence[Job]) -> Generator[Event, None, None]:
        todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            todo.put(job)
        events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        for cores in shares(available_cores(), min(self.settings.workers, len(jobs))):
            threading.Thread(target=self._serve, args=(cores, todo, events), daemon=True).start()
        remaining = len(jobs)
        try:
            while remaining:
                event = events.get()
                if isinstance(event, BaseException):
                    raise event
                remaining -= isinstance(event, Ended)
                yield event
        finally:
            self._stop()

    def _serve(
        self,
        cores: list[int],
        todo: queue.SimpleQueue[Job],
        events: queue.SimpleQueue[Event | BaseException],
    ) -> None:
        """Run jobs with one worker at a time on these cores until there are none left."""
        try:
            worker = None
            with contextlib.suppress(queue.Empty):
                while not self.stopping:
                    worker = self._ended(todo.get_nowait(), worker, cores, events)
        except BaseException as error:  # for the main thread to raise
            events.put(error)

    def _ended(
        self,
        job: Job,
        worker: Worker | None,
        cores: list[int],
        events: queue.SimpleQueue[Event | BaseException],
    ) -> Worker | None:
        """Run a job to its end, with further workers where one dies; the last of them."""
        events.put(Began(job.name))
        problem: str | None = None
        for attempt in range(1 + self.settings.retries):
            if attempt:
                events.put(TriedAgain(job.name, problem or ""))
            worker = worker if worker and worker.is_alive() else self._hire(cores)
            problem = worker.run(job, Path(self.log_of(job.name)), events)
            if problem is None or self.stopping:
                break
        if not self.stopping:
            events.put(Ended(job.name, problem))
        return worker

    def _hire(self, cores: list[int]) -> Worker:
        worker = Worker(self.settings, cores)
        self.crew.append(worker)
        return worker

    def _stop(self) -> None:
        """Have the workers save what they have and end; another signal ends them at once."""
        self.stopping = True
        try:
            for worker in self.crew:
                worker.dismiss()
            for worker in self.crew:
                worker.wait(PATIENCE)
        except BaseException:
            for worker in self.crew:
                worker.kill()
            raise


class Worker:
    """A process that runs one job after the other."""

    def __init__(self, settings: Settings, cores: list[int]):
        words = [",".join(map(str, cores)), str(settings.devices or len(cores)), *sys.argv]
        # A session of its own: Ctrl-C is for the process that started it.
        self.process = subprocess.Popen(
            [sys.executable, "-m", settings.worker, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Not one of those that the command's sentinel ends: a worker saves its stride first.
            env={k: v for k, v in os.environ.items() if k != STARTED_BY},
        )

    def run(
        self, job: Job, log: Path, events: queue.SimpleQueue[Event | BaseException]
    ) -> str | None:
        """Run a job, passing its ticks on; what went wrong, if anything did."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):  # it died meanwhile: it will not answer, either
            self.process.stdin.write(f"{log.absolute()}\n{job.to_json()}\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            told = json.loads(line)
            if "tick" not in told:
                return told["problem"]
            events.put(Ticked(job.name, Tick(**told["tick"])))
        problem = f"its process {ending(self.process.wait())}"
        if log.parent.exists():
            append(log, f"{problem}\n".encode())
        return problem

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def dismiss(self) -> None:
        """Close its input, upon which it ends."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def wait(self, seconds: float) -> None:
        """Give it so much time to end."""
        assert self.process.stdout is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
            self.process.stdout.close()

    def kill(self) -> None:
        if self.is_alive():
            self.process.kill()


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed ({signal.Signals(-code).name})"
    return f"was killed (signal {-code})"


def available_cores() -> list[int]:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def shares(cores: list[int], workers: int) -> list[list[int]]:
    """The cores of each worker: as evenly as can be, and one each where there are too few."""
    if workers >= len(cores):
        return [[cores[i % len(cores)]] for i in range(workers)]
    return [
        cores[i * len(cores) // workers : (i + 1) * len(cores) // workers] for i in range(workers)
    ]
