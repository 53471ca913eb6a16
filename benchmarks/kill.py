"""Trainings that are killed at any moment end, resumed, as those that never were.

python benchmarks/kill.py --trials 1000             stopped at random calls to the file system
python benchmarks/kill.py --trials 100 --signal     killed by SIGKILL at random times instead

A stop at a call: that call is not made, or (a write) half of it is, and nothing after it reaches
the disk either, as if the process were gone. Compared are the subspace byte by byte, the whole
train state, and the log without its times.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slackline.io import files, lock
from slackline.io.tensors import read_tensors
from slackline.store.run import RunFolder

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


def outcome(path: Path) -> dict[str, Any]:
    """What has to be the same, however often a training was killed."""
    run = RunFolder(path)
    state, header = read_tensors(run.checkpoint_file)
    log = [{k: v for k, v in line.items() if k != "seconds"} for line in run.read_progress()]
    return {
        "files": sorted(file.name for file in path.iterdir()),
        "subspace": run.subspace_file.read_bytes(),
        "state": {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in state.items()},
        "iteration": header["iteration"],
        "log": log,
        "finished": run.finished(),
    }


WORDS = ("train", "cartpole", "--method", "lop", "--seeds", "2", "--steps", "2k", "--devices", "1")
OPTIONS = ("--hyper.num-envs", "4", "--hyper.num-steps", "4", "--checkpoint-seconds", "0")


def train(out: Path) -> None:
    from slackline.cli import run

    with contextlib.redirect_stdout(io.StringIO()):
        code = run([*WORDS, *OPTIONS, "--resume", "--out", str(out)])
    if code:
        raise SystemExit(f"a training left with {code}")


def killed_at_a_call(out: Path, calls: int, draws: random.Random) -> None:
    with disk(draws.randint(1, calls)):
        train(out)


def killed_by_a_signal(out: Path, seconds: float, draws: random.Random) -> None:
    words = [sys.executable, "-m", "slackline.cli", *WORDS, *OPTIONS, "--resume", "--out", str(out)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(draws.uniform(0.0, seconds))
        process.send_signal(signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--signal", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    draws, different = random.Random(asked.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        with disk() as counted:
            train(Path(folder) / "whole")
        seconds, whole = time.monotonic() - begun, outcome(Path(folder) / "whole")
        for trial in range(asked.trials):
            out = Path(folder) / str(trial)
            for _ in range(draws.randint(1, 3)):
                if asked.signal:
                    killed_by_a_signal(out, seconds, draws)
                else:
                    killed_at_a_call(out, counted.calls, draws)
            train(out)
            if outcome(out) != whole:
                different += 1
                print(f"trial {trial} ended otherwise", file=sys.stderr)
    how = "SIGKILL" if asked.signal else f"a stop at one of {counted.calls} calls"
    print(f"{asked.trials} trainings, each ended 1 to 3 times by {how}: {different} differ")
    raise SystemExit(different > 0)


if __name__ == "__main__":
    main()
