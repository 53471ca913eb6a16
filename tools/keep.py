"""Keep runs in results/: settings, scores and a thinned training curve, without weights.

    python tools/keep.py runs/senses/* results/senses        # copies each run that has scores
    python tools/keep.py --thin results                      # thins the curves that are there

A curve keeps its first and last line and at most LINES in all, as they were written (each line has
a checksum of its own).
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np

LINES = 100
CURVE = "progress.jsonl"
KEPT = ("run.json", "scores.parquet")


def thinned(lines: list[str]) -> list[str]:
    """At most LINES of them, evenly, the first and the last among them."""
    if len(lines) <= LINES:
        return lines
    places = np.unique(np.linspace(0, len(lines) - 1, LINES).round().astype(int))
    return [lines[k] for k in places]


def thin(curve: Path) -> None:
    curve.write_text("".join(thinned(curve.read_text().splitlines(keepends=True))))


def keep(run: Path, folder: Path) -> None:
    """The run as a folder of the same name below `folder`."""
    there = folder / run.name
    there.mkdir(parents=True)
    for name in KEPT:
        shutil.copy(run / name, there / name)
    if (run / CURVE).exists():  # what is made of another run has none
        shutil.copy(run / CURVE, there / CURVE)
        thin(there / CURVE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--thin", action="store_true", help="thin what is in the folder already")
    asked = parser.parse_args()
    for run in asked.runs:
        if all((run / name).exists() for name in KEPT):
            keep(run, asked.folder)
    if asked.thin:
        for curve in asked.folder.rglob(CURVE):
            thin(curve)


if __name__ == "__main__":
    main()
