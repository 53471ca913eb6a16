"""Is this tree slower than another commit? Speed ratios of the two, measured in one run.

    python benchmarks/against.py COMMIT [--only train/cartpole adapt] [--rounds 8] [--at-least 0.98]

Both trees run in processes of their own, which stay alive and take turns case by case, so that a
machine whose speed drifts is fair to both. A case goes through `import slackline as sl` alone, so
that it means the same in both. The first round compiles and is not counted. A ratio above 1 says
that this tree is faster: the median of the other's seconds over ours, round by round, with the
lowest and the highest. Keep the machine idle.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def trained(suite: str, method: str, steps: int, **options: Any) -> Callable[[float], Any]:
    """Ten seeds of a small suite, one of a robot's; `share` of the steps."""

    def run(share: float) -> Any:
        import slackline as sl

        return sl.train_seeds(suite, method, steps=int(steps * share), progress=False, **options)

    return run


def adapted(suite: str, method: str, steps: int) -> Callable[[float], Any]:
    """The paper's protocol on trained policies: training is done once, and not timed."""
    lines: list[Any] = []

    def run(share: float) -> Any:
        import slackline as sl

        if not lines:
            lines.extend(trained(suite, method, steps)(share))
        return sl.adapt_many(lines, sl.suite(suite).variations, 10, 10, max(1, int(100 * share)))

    return run


CASES: dict[str, Callable[[float], Any]] = {
    "train/cartpole/single": trained("cartpole", "single", 1_000_000),
    "train/cartpole/lop": trained("cartpole", "lop", 1_000_000),
    "train/cartpole/fan": trained("cartpole", "fan", 1_000_000),
    "train/cartpole/senses": trained("cartpole", "senses", 1_000_000),
    "train/pendulum-continuous/lop": trained("pendulum-continuous", "lop", 500_000),
    "train/maze2d/lop": trained("maze2d", "lop", 200_000),
    "train/halfcheetah/fan": trained("halfcheetah", "fan", 600_000, seeds=1, preset="fast"),
    "train/gymnasium/lop": trained("gym:CartPole-v1", "lop", 20_000, seeds=1),
    "adapt/cartpole/lop": adapted("cartpole", "lop", 1_000_000),
    "adapt/pendulum-continuous/lop": adapted("pendulum-continuous", "lop", 500_000),
}


def work(tree: Path) -> None:
    """A tree's process: time the case that every line of the input names."""
    import slackline as sl

    if not Path(sl.__file__).is_relative_to(tree):
        raise SystemExit(f"{sl.__file__} is not of {tree}")
    for line in sys.stdin:
        name, share = json.loads(line)
        begun = time.perf_counter()
        CASES[name](share)
        print(json.dumps(time.perf_counter() - begun), flush=True)


class Tree:
    """The process that times cases with one tree's sources."""

    def __init__(self, tree: Path, cache: Path):
        environment = os.environ | {
            "PYTHONPATH": str(tree / "src"),
            "SLACKLINE_CACHE": str(cache),
        }
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", str(tree)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def seconds(self, case: str, share: float) -> float:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([case, share]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{case}: failed (see above)")
        return float(answer)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def extract(commit: str, into: Path) -> None:
    """The commit's sources in a folder."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit, "src"], cwd=ROOT, capture_output=True
    )
    if archive.returncode:
        raise SystemExit(f"{commit}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(into, filter="data")


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """How many times as fast as the other this tree is, from seconds of each round."""
    each = sorted(other / own for own, other in zip(ours, theirs, strict=True))
    return {"ratio": statistics.median(each), "lowest": each[0], "highest": each[-1]}


def measure(
    this: Tree, other: Tree, cases: Sequence[str], rounds: int, share: float
) -> dict[str, dict[str, float]]:
    """The ratios of every case; who goes first changes from round to round."""
    found = {}
    for case in cases:
        pairs: list[Mapping[Tree, float]] = []
        for round_ in range(rounds + 1):
            turn = (this, other) if round_ % 2 else (other, this)
            pairs.append({tree: tree.seconds(case, share) for tree in turn})
        ours, theirs = ([pair[tree] for pair in pairs[1:]] for tree in (this, other))
        found[case] = ratios(ours, theirs) | {"seconds": min(ours)}
        shown = "  ".join(f"{name} {value:.3f}" for name, value in found[case].items())
        print(f"{case:32}{shown}", flush=True)
    return found


def chosen(only: Sequence[str] | None) -> list[str]:
    """The cases whose names begin as asked; all of them by default."""
    names = [name for name in CASES if only is None or name.startswith(tuple(only))]
    if not names:
        raise SystemExit(f"no case begins with {' or '.join(only or [])}: {', '.join(CASES)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD", help="the other commit")
    parser.add_argument("--only", nargs="+", help="the cases whose names begin so")
    parser.add_argument("--rounds", type=int, default=8, help="turns of each tree, for every case")
    parser.add_argument("--share", type=float, default=1.0, help="of every case's steps")
    parser.add_argument("--at-least", type=float, help="exit with 1 if a ratio is lower")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(arguments.work)
        return
    cases = chosen(arguments.only)
    with tempfile.TemporaryDirectory() as folder:
        extract(arguments.commit, Path(folder, "tree"))
        this = Tree(ROOT, Path(folder, "this"))
        other = Tree(Path(folder, "tree"), Path(folder, "other"))
        found = measure(this, other, cases, arguments.rounds, arguments.share)
        this.close()
        other.close()
    slow = [name for name, each in found.items() if each["ratio"] < (arguments.at_least or 0.0)]
    if slow:
        raise SystemExit(f"slower than {arguments.at_least} of {arguments.commit}: {slow}")


if __name__ == "__main__":
    main()
