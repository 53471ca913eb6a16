"""Engines: every job ends exactly once, whatever happens to its workers."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from slackline.bench.engines import ENGINES, engine
from slackline.bench.engines.base import Began, Ended, Event, Settings, Ticked, TriedAgain
from slackline.bench.engines.local import ending, shares
from slackline.bench.jobs import Job
from slackline.errors import SlacklineError
from slackline.progress import OnTick, Tick

WORKER = """
# What the real worker does around a cell, and nothing of the cell itself.
import os, signal, sys, time
from pathlib import Path
from slackline.cli import worker

def perform(job, on_tick):
    from slackline.progress import Tick
    out = Path(job.out)
    attempts = out / f"{job.name}.attempts"
    with attempts.open("a") as file:
        file.write(f"{os.getpid()} {sorted(os.sched_getaffinity(0))} {sys.argv[-1]}\\n")
    first = len(attempts.read_text().splitlines()) == 1
    on_tick(Tick(1, 2, 1, 3.0, 0.5))
    if job.name == "killed" and first:
        os.kill(os.getpid(), signal.SIGKILL)
    if job.name == "flaky" and first:
        raise ValueError("no luck\\nat all")
    if job.name == "hopeless":
        print("trying hard")
        raise ValueError("never")
    if job.name == "endless":
        while True:
            time.sleep(0.1)
    (out / f"{job.name}.done").touch()

worker.perform = perform
if __name__ == "__main__":
    worker.main()
"""


def job(name: str, out: Path) -> Job:
    return Job(name, "cartpole", {}, (), str(out), in_place=True)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Settings of a local engine whose worker has no cells to run."""
    (tmp_path / "pretending.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["slackline", "bench", "it"])
    (tmp_path / "logs").mkdir()

    def settings(**others: int) -> Settings:
        return Settings(
            out=str(tmp_path),
            worker="pretending",
            perform=nothing,
            devices=1,
            logs=tmp_path / "logs",
            **others,  # type: ignore[arg-type]
        )

    return settings


def nothing(job: Job, on_tick: OnTick) -> None:
    on_tick(Tick(2, 2, 1, 3.0, 0.5))


def test_an_engine_that_nobody_has() -> None:
    with pytest.raises(SlacklineError, match=r"unknown engine 'lokal'; did you mean local\?"):
        engine("lokal", Settings("", "", nothing))
    assert next(iter(ENGINES)) == "local"


def test_jobs_end_once_and_are_tried_again(local: Callable[..., Settings], tmp_path: Path) -> None:
    names = ["good", "killed", "flaky", "hopeless", "last"]
    events = list(engine("local", local(retries=1)).run([job(n, tmp_path) for n in names]))
    assert [e.name for e in events if isinstance(e, Ended)] == names
    assert Counter(e.name for e in events if isinstance(e, Began)) == Counter(names)
    problems = {e.name: e.problem for e in events if isinstance(e, Ended) and e.problem}
    assert problems == {"hopeless": "ValueError: never"}
    again = {e.name: e.problem for e in events if isinstance(e, TriedAgain)}
    assert again == {
        "killed": "its process was killed (SIGKILL)",
        "flaky": "ValueError: no luck at all",
        "hopeless": "ValueError: never",
    }
    assert {e.name for e in events if isinstance(e, Ticked)} == set(names)
    attempts = {n: len((tmp_path / f"{n}.attempts").read_text().splitlines()) for n in names}
    assert attempts == {"good": 1, "killed": 2, "flaky": 2, "hopeless": 2, "last": 1}
    logs = {file.stem: file.read_text() for file in (tmp_path / "logs").iterdir()}
    assert set(logs) == {"killed", "flaky", "hopeless"}, "an empty log is no log"
    assert logs["hopeless"].count("Traceback") == 2
    assert "trying hard" in logs["hopeless"]
    assert "SIGKILL" in logs["killed"]
    used = [(tmp_path / f"{n}.attempts").read_text().split()[0] for n in ("flaky", "last")]
    assert used[0] == used[1], "a worker whose job failed takes the next one"
    assert (tmp_path / "last.attempts").read_text().endswith(" it\n"), "the user's command"


def test_two_workers_have_cores_of_their_own(
    local: Callable[..., Settings], tmp_path: Path
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core")
    events = list(engine("local", local(workers=2)).run([job(n, tmp_path) for n in "abcd"]))
    assert sorted(e.name for e in events if isinstance(e, Ended)) == list("abcd")
    lines = [(tmp_path / f"{n}.attempts").read_text() for n in "abcd"]
    cores = {line.split()[0]: line[line.index("[") : line.index("]")] for line in lines}
    assert len(set(cores.values())) == len(cores)


def test_closing_an_engine_ends_its_workers(local: Callable[..., Settings], tmp_path: Path) -> None:
    running = engine("local", local()).run([job("endless", tmp_path), job("good", tmp_path)])
    event: Event = next(running)
    while not isinstance(event, Ticked):
        event = next(running)
    pid = int((tmp_path / "endless.attempts").read_text().split()[0])
    running.close()
    assert not is_running(pid)
    assert not (tmp_path / "good.attempts").exists()


def test_a_worker_ends_with_the_process_it_works_for(
    local: Callable[..., Settings], tmp_path: Path
) -> None:
    """Also if that is killed and cannot say so."""
    reading, writing = os.pipe()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "pretending", "0", "1", "slackline"],
        {**os.environ, "PYTHONPATH": str(tmp_path)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_CLOSE, writing),
        ],
    )
    os.close(reading)
    os.write(writing, f"{tmp_path / 'log'}\n{job('endless', tmp_path).to_json()}\n".encode())
    while not (tmp_path / "endless.attempts").exists():
        time.sleep(0.05)
    os.close(writing)  # as the kernel does
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.05)
    assert time.monotonic() < deadline


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_this_very_process_is_an_engine_too(tmp_path: Path) -> None:
    tried: list[str] = []

    def perform(job: Job, on_tick: OnTick) -> None:
        nothing(job, on_tick)
        tried.append(job.name)
        if job.name == "flaky" and tried.count("flaky") == 1:
            raise ValueError("no luck")

    settings = Settings(str(tmp_path), "", perform, retries=1, logs=tmp_path)
    events = list(engine("inline", settings).run([job("good", tmp_path), job("flaky", tmp_path)]))
    assert tried == ["good", "flaky", "flaky"]
    assert [e for e in events if isinstance(e, Ended)] == [Ended("good"), Ended("flaky")]
    assert TriedAgain("flaky", "no luck") in events


@pytest.mark.parametrize(
    ("cores", "workers", "found"),
    [
        ([0, 1], 1, [[0, 1]]),
        ([0, 1], 2, [[0], [1]]),
        ([3, 5, 7], 2, [[3], [5, 7]]),
        ([4], 3, [[4], [4], [4]]),
    ],
)
def test_cores_are_shared_out(cores: list[int], workers: int, found: list[list[int]]) -> None:
    assert shares(cores, workers) == found


def test_more_devices_than_a_worker_has_cores() -> None:
    settings = Settings("", "", nothing, workers=10_000, devices=2)
    with pytest.raises(SlacklineError, match="devices is 2; with 10000 workers a cell has 1 of"):
        engine("local", settings)


def test_endings_in_words() -> None:
    assert ending(3) == "ended with exit code 3"
    assert ending(-signal.SIGSEGV) == "was killed (SIGSEGV)"
