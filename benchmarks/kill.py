"""Commands that are killed at any moment end, given again, as those that never were.

python benchmarks/kill.py --trials 1000             stopped at random calls to the file system
python benchmarks/kill.py --trials 100 --signal     killed by SIGKILL at random times instead
python benchmarks/kill.py --verbs adapt report      only these, of train, bench, adapt, report

Trials take turns between the verbs. A stop at a call: that call is not made, or (a write) half of
it is, and nothing after it reaches the disk either, as if the process were gone. Compared are all
files of the folder, byte by byte, and that there are no others: no lock, nothing half-written. The
clock of trainings and records stands still, so that the times they keep are equal, too.

A process that is killed by a signal is a fork of this one, in which everything is imported and
JAX has not begun; so a trial takes seconds, not tens of them.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from slackline import training
from slackline.bench import cells
from slackline.io import files, lock
from slackline.store import run

CALLS = ("open", "replace", "fsync", "ftruncate", "pwrite")


class Killed(BaseException):
    """Stands for the end of the process; no `except Exception` catches it."""


class Disk:
    """The file system as slackline's io modules see it, which ends at the `last` call."""

    def __init__(self, last: int | None = None):
        self.last, self.calls = last, 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self.counted(real) if name in CALLS else real

    def counted(self, real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.count()
            return real(*arguments, **named)

        return call

    def count(self) -> None:
        self.calls += 1
        if self.last is not None and self.calls >= self.last:
            raise Killed

    def file(self, descriptor: int, mode: str, **named: Any) -> Any:
        """Like `open`, with half of what is written where it ends."""
        opened: Any = builtins.open(descriptor, mode, **named)  # noqa: SIM115
        return opened if "r" in mode else File(self, opened)


class File:
    """An open file; where the disk ends, half of what is written reaches it."""

    def __init__(self, disk: Disk, opened: Any):
        self.disk, self.opened = disk, opened

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: Any) -> None:
        self.opened.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.opened, name)

    def write(self, content: bytes) -> None:
        try:
            self.disk.count()
        except Killed:
            if self.disk.calls == self.disk.last:
                self.opened.write(content[: len(content) // 2])
            raise
        self.opened.write(content)


@contextmanager
def disk(last: int | None = None) -> Iterator[Disk]:
    """Let slackline write to a disk that ends at its `last` call; then the process is as dead."""
    layer: Any = Disk(last)
    remove = layer.counted(files.remove)
    patched = {files: {"os": layer, "open": layer.file, "remove": remove}}
    patched[lock] = {"os": layer, "remove": remove}
    before = {module: {n: vars(module).get(n) for n in names} for module, names in patched.items()}
    for module, names in patched.items():
        vars(module).update(names)
    try:
        yield layer
    except Killed:
        pass
    finally:
        for module, names in before.items():
            for name, value in names.items():
                vars(module).pop(name) if value is None else vars(module).update({name: value})
        lock._forget()  # the kernel takes a dead process's locks


@contextmanager
def standing_clock() -> Iterator[None]:
    """Have everything take no time, and happen at one moment, by what is kept of it."""
    clock, named = SimpleNamespace(monotonic=lambda: 0.0), "2000-01-01T00:00:00+00:00"
    patched = ((training, "time", clock), (cells, "time", clock), (run, "_now", lambda: named))
    before = [getattr(module, name) for module, name, _ in patched]
    for module, name, value in patched:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(patched, before, strict=True):
            setattr(module, name, value)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, at any depth."""
    files_below = (file for file in sorted(folder.rglob("*")) if not file.is_dir())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files_below}


def differences(found: dict[str, bytes], whole: dict[str, bytes]) -> list[str]:
    """The names of what differs, is missing, or should not be there."""
    names = sorted(found.keys() | whole.keys())
    return [name for name in names if found.get(name) != whole.get(name)]


SIZES = ("--hyper.num-envs", "4", "--hyper.num-steps", "4", "--devices", "1")
TINY = ("--steps", "320", "--checkpoint-seconds", "0")
FEW = ("--shots", "2", "--episodes", "1", "--score-episodes", "2")


@dataclass(frozen=True)
class Verb:
    """A command to kill, and what it begins with."""

    name: str
    begin: Callable[[Path], None]
    """Makes the folder that the command works in."""
    words: Callable[[Path], tuple[str, ...]]


def nothing(_: Path) -> None:
    """The command makes its folder itself."""


def trained(out: Path) -> None:
    give("train", "cartpole", "--method", "lop", "--seeds", "2", *TINY, *SIZES, "--out", str(out))


def benched(out: Path) -> None:
    give(*bench_words(out))


def bench_words(out: Path) -> tuple[str, ...]:
    method = ("--methods", "single", "lop", "--seeds", "1", "--steps", "320", "--devices", "1")
    here = ("--engine", "inline", "--retries", "0")  # or the disk would be other processes'
    return ("bench", "cartpole", *method, *here, *FEW, "--out", str(out))


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "train",
            nothing,
            lambda out: (
                *("train", "cartpole", "--method", "lop", "--seeds", "2", *TINY, *SIZES),
                *("--resume", "--out", str(out)),
            ),
        ),
        Verb("bench", nothing, bench_words),
        Verb("adapt", trained, lambda out: ("adapt", str(out), *FEW, "--devices", "1")),
        Verb("report", benched, lambda out: ("report", str(out))),
    )
}


def give(*words: str) -> None:
    """Give a command that has to succeed."""
    from slackline import cli

    with contextlib.redirect_stdout(io.StringIO()):
        code = cli.run(list(words))
    if code:
        raise SystemExit(f"{words[0]} left with {code}")


@dataclass
class Trials:
    """A verb's undisturbed outcome, and the trials that are compared with it."""

    verb: Verb
    folder: Path
    draws: random.Random
    by_signal: bool
    number: int = 0
    different: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        start, whole = self.folder / "start", self.folder / "whole"
        self.alive(lambda: self.verb.begin(start))
        self.copy(whole)
        begun = time.monotonic()
        self.calls = self.alive(lambda: counted(self.verb.words(whole)))
        self.seconds, self.whole = time.monotonic() - begun, contents(whole)

    def copy(self, out: Path) -> None:
        start = self.folder / "start"
        if start.exists():
            shutil.copytree(start, out)

    def one(self) -> None:
        """Kill the command one to three times, let it end, and compare."""
        # Always of one name: pages say which folder they are of.
        out, self.number = self.folder / "whole", self.number + 1
        shutil.rmtree(out)
        self.copy(out)
        for _ in range(self.draws.randint(1, 3)):
            self.kill(out)
        self.alive(lambda: give(*self.verb.words(out)))
        if found := differences(contents(out), self.whole):
            self.different += 1
            print(f"{self.verb.name}: trial {self.number} has another {found}", file=sys.stderr)

    def kill(self, out: Path) -> None:
        words = self.verb.words(out)
        if not self.by_signal:
            with disk(self.draws.randint(1, self.calls)):
                give(*words)
            return
        child = forked(lambda: give(*words))
        time.sleep(self.draws.uniform(0.0, self.seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def alive(self, work: Callable[[], Any]) -> Any:
        """Work that nobody kills: here, or in a fork if this process must not begin JAX."""
        if not self.by_signal:
            return work()
        if os.waitpid(forked(work), 0)[1]:
            raise SystemExit(f"{self.verb.name}: failed")
        return 0


def counted(words: tuple[str, ...]) -> int:
    """How many calls to the file system a command makes."""
    with disk() as layer:
        give(*words)
    return layer.calls


def forked(work: Callable[[], Any]) -> int:
    """The id of a copy of this process that does `work` and ends."""
    if child := os.fork():
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=list(VERBS))
    parser.add_argument("--signal", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e9, help="end after so many")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for module in ("train", "bench", "adapt", "report"):
        import_module(f"slackline.cli.{module}")
    begun, draws = time.monotonic(), random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder, standing_clock():
        every = [
            Trials(VERBS[name], Path(folder) / name, draws, asked.signal) for name in asked.verbs
        ]
        for trial in range(asked.trials):
            if time.monotonic() - begun > 60.0 * asked.minutes:
                break
            every[trial % len(every)].one()
    for each in every:
        how = "SIGKILL" if asked.signal else f"a stop at one of {each.calls} calls"
        told = f"{each.number} times {each.verb.name}, each ended 1 to 3 times by {how}"
        print(f"{told}: {each.different} differ")
    raise SystemExit(any(each.different for each in every))


if __name__ == "__main__":
    main()
