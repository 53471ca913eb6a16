"""How much faster a grid is with two workers, and on a Ray cluster of two nodes of this machine.

python benchmarks/workers.py [--seeds 10] [--steps 2M]

Four cells of CartPole, one device each, from nothing (compiled programs are cached by a first run
that is not counted). Keep the machine idle.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = {
    "one worker": ["--workers", "1"],
    "two workers": ["--workers", "2"],
    "Ray, two nodes": ["--engine", "ray"],
}


def seconds(out: Path, words: list[str]) -> float:
    """One benchmark from nothing."""
    began = time.monotonic()
    command = [sys.executable, "-m", "slackline.cli", "bench", "cartpole", "--methods", "single"]
    command += ["lop", "--devices", "1", "--out", str(out), *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def main() -> None:
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", default="2M")
    asked = parser.parse_args()
    half = str(max(1, asked.seeds // 2))
    grid = ["--seeds", str(asked.seeds), "--seeds-per-cell", half, "--steps", asked.steps]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    with tempfile.TemporaryDirectory() as folder:
        seconds(Path(folder) / "first", [*grid, "--workers", "2"])
        for number, (name, way) in enumerate(WAYS.items()):
            place = ["--address", cluster.address] if "ray" in way else []
            took = seconds(Path(folder) / str(number), [*grid, *way, *place])
            print(f"{name}: {took:.1f} s")
    cluster.shutdown()


if __name__ == "__main__":
    main()
