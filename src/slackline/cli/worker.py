"""A process that runs cells of a benchmark for another: python -m slackline.cli.worker.

Arguments: its cores, the number of JAX's CPU devices, and the command that it works for. Of every
job it reads two lines, the file for its output and the job; it answers with lines of JSON, ticks
and at last the problem, or null.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from slackline.bench.jobs import Job, run_job
from slackline.cli.signals import leave, stoppable, unsaved_work
from slackline.errors import Interrupted, SlacklineError, in_one_line
from slackline.io.files import UNFOLLOWED, insist_on_own_file
from slackline.progress import OnTick, Tick
from slackline.runtime import set_up_jax
from slackline.suites.resolve import suite as find_suite


def perform(job: Job, on_tick: OnTick) -> None:
    """Run a cell to its end."""

    def tell(tick: Tick) -> None:
        unsaved_work(True)
        on_tick(tick)

    try:
        run_job(job, find_suite, tell)
    finally:
        unsaved_work(False)


def main() -> None:
    cores, devices, *sys.argv = sys.argv[1:]  # what a run keeps as the command that made it
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(map(int, cores.split(","))))
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # whatever libraries print is no answer
    set_up_jax(int(devices))
    jobs: SimpleQueue[tuple[Path, Job]] = SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    with stoppable("stopped"):
        try:
            while True:
                _answer(*jobs.get(), answers)
        except (KeyboardInterrupt, Interrupted, BrokenPipeError):
            pass
    leave(0)


def _listen(jobs: SimpleQueue[tuple[Path, Job]]) -> None:
    """Pass jobs on; once there can be no more, end as if asked to."""
    while (log := sys.stdin.readline()) and (line := sys.stdin.readline()):
        jobs.put((Path(log.rstrip("\n")), Job.from_json(line)))
    os.kill(os.getpid(), signal.SIGTERM)


def _answer(log: Path, job: Job, answers: IO[str]) -> None:
    """Run a job and tell how it goes."""

    def tell(**what: object) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    problem = None
    with _logged(log):
        try:
            perform(job, lambda tick: tell(tick=asdict(tick)))
        except (Interrupted, BrokenPipeError):
            raise
        except Exception as error:
            traceback.print_exc()
            kind = "" if isinstance(error, SlacklineError) else f"{type(error).__name__}: "
            problem = f"{kind}{in_one_line(error)}"
    tell(problem=problem)


@contextmanager
def _logged(log: Path) -> Iterator[None]:
    """What is printed goes into a file, which is kept if there is anything in it."""
    insist_on_own_file(log)
    before = [os.dup(number) for number in (1, 2)]
    try:
        with open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | UNFOLLOWED), "ab") as file:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip((1, 2), before, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        if log.stat().st_size == 0:
            log.unlink()


if __name__ == "__main__":
    main()
