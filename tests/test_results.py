"""What is kept in results/: small, readable, and free of the paths of a machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slackline.store.run import RunFolder

RESULTS = Path(__file__).parent.parent / "results"
RUNS = sorted(file.parent for file in RESULTS.rglob("run.json"))
LIMIT = 20_000_000
"""Bytes of everything in the folder."""


def test_results_stay_small() -> None:
    assert RUNS
    assert sum(file.stat().st_size for file in RESULTS.rglob("*") if file.is_file()) < LIMIT


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.relative_to(RESULTS)))
def test_a_kept_run_is_whole_and_names_no_machine(run: Path) -> None:
    folder = RunFolder(run)
    config, curve = folder.config(), folder.read_progress()  # of what is made of another run: none
    assert len(curve) <= 100
    whole = config.iterations * config.hyper.steps_per_iteration
    assert not curve or curve[-1]["steps"] == whole
    assert folder.scores_file.exists()
    command = folder.read()["provenance"].get("command", "slackline")
    assert not re.search(r"(^|[ =])/", command), command
