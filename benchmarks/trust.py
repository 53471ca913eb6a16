"""What checksums and locks cost: at a checkpoint, in a training of ten seconds, and at `sl.load`.

python benchmarks/trust.py            a run of its own: cartpole, lop
python benchmarks/trust.py RUN        the files of a finished run

Every number is the median of several repetitions; keep the machine idle.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import slackline as sl
from slackline.io.checksum import is_whole
from slackline.io.files import read_json
from slackline.io.lock import locked
from slackline.learn.programs import STRIDES
from slackline.store.run import RunFolder, _checked_line, _parsed_line

REPETITIONS = 25
TRAINING_SECONDS = 10.0
CHECKPOINTS = 1 + TRAINING_SECONDS // 30.0
"""In such a training: at the end, and every 30 seconds."""


def seconds(work: Callable[[], object]) -> float:
    """The median duration of a call."""
    times = []
    for _ in range(REPETITIONS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def lock_once(folder: Path) -> None:
    with locked(folder):
        pass


def report(path: Path) -> None:
    run = RunFolder(path)
    checkpoint, subspace = run.checkpoint_file.read_bytes(), run.subspace_file.read_bytes()
    line = _checked_line(run.read_progress()[-1])
    with tempfile.TemporaryDirectory() as folder:
        lock = seconds(lambda: lock_once(Path(folder)))
    sealing = seconds(lambda: is_whole(checkpoint))  # as much as sealing: one digest of it all
    lines = seconds(lambda: _parsed_line(line, checked=True)) * STRIDES
    record = seconds(lambda: read_json(run.run_file))
    total = lock + CHECKPOINTS * sealing + seconds(lambda: is_whole(subspace)) + lines + record
    loading, checking = seconds(lambda: sl.load(path)), seconds(lambda: is_whole(subspace))
    print(f"checkpoint of {len(checkpoint):,} bytes: checksum {1e3 * sealing:.2f} ms")
    print(f"lock, taken and given back: {1e3 * lock:.2f} ms")
    print(f"{STRIDES} lines of the log: {1e3 * lines:.2f} ms")
    share = total / TRAINING_SECONDS
    print(f"a training of {TRAINING_SECONDS:.0f} s: {1e3 * total:.2f} ms, {share:.3%} of it")
    print(f"sl.load: {1e3 * loading:.2f} ms, of which the checksum {1e3 * checking:.2f} ms")


def main() -> None:
    if len(sys.argv) > 1:
        report(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        sl.train("cartpole", "lop", steps=50_000, out=out)
        report(out)


if __name__ == "__main__":
    main()
