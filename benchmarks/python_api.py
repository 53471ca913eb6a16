"""The speed of training from Python beside that of the command, in one run. Prints JSON.

    python benchmarks/python_api.py

Each trains ten seeds of CartPole's line in a process of its own, twice: the second finds its
programs in the cache, and counts. Steps a second of the training itself, compilation included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEEDS, STEPS = 10, 2_000_000
SUITE, METHOD = "cartpole", "fan"
COMMAND = [
    sys.executable,
    "-m",
    "slackline.cli",
    *("train", SUITE, "--method", METHOD, "--seeds", str(SEEDS), "--steps", str(STEPS)),
]
SCRIPT = f"""
import slackline as sl
sl.train_seeds({SUITE!r}, {METHOD!r}, seeds={SEEDS}, steps={STEPS}, out="run")
"""


def seconds(argv: list[str], cache: str) -> float:
    """Of a whole process, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"SLACKLINE_CACHE": cache}
        started = time.monotonic()
        subprocess.run(argv, cwd=folder, env=environment, check=True, capture_output=True)
        return time.monotonic() - started


def main() -> None:
    ways = {"command": [*COMMAND, "--out", "run"], "python": [sys.executable, "-c", SCRIPT]}
    with tempfile.TemporaryDirectory() as cache:
        for argv in ways.values():
            seconds(argv, str(Path(cache)))
        # Taking turns, so that whatever else slows the machine slows both.
        rounds = [{name: seconds(argv, cache) for name, argv in ways.items()} for _ in range(3)]
    best = {name: min(each[name] for each in rounds) for name in ways}
    rates = {name: round(SEEDS * STEPS / taken) for name, taken in best.items()}
    print(
        json.dumps({"steps_per_second": rates, "ratio": round(best["command"] / best["python"], 3)})
    )


if __name__ == "__main__":
    main()
