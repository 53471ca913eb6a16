"""The speeds that `slackline bench --dry-run` reckons with, from runs that are kept.

python benchmarks/speeds.py results            prints them
python benchmarks/speeds.py results --write    writes src/slackline/data/speeds.json

The median over runs of the same suite, preset and method: environment steps of all seeds per
second, compiling included. Runs with too few seeds to fill the machine are slower by seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from slackline.bench.costs import measured
from slackline.store.run import RunFolder

FILE = Path(__file__).parents[1] / "src" / "slackline" / "data" / "speeds.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--machine", default="two cores of a shared x86-64 machine, no GPU")
    asked = parser.parse_args()
    runs = [
        RunFolder(f.parent) for folder in asked.folders for f in sorted(folder.rglob("run.json"))
    ]
    speeds = dict(sorted(measured(runs).items()))
    text = json.dumps({"machine": asked.machine, "speeds": speeds}, indent=2) + "\n"
    if asked.write:
        FILE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
