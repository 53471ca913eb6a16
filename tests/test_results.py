"""What is kept in results/ is small and names no machine; documents say what is there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from slackline import cli
from slackline.store.run import RunFolder

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import ours  # noqa: E402  # type: ignore[import-not-found]

RESULTS = ROOT / "results"
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
    told = folder.read()["provenance"]
    for command in (told.get("command", ""), *told.get("adaptations", {}).values()):
        assert not re.search(r"(^|[ =])/", command), command


def test_the_summary_is_that_of_the_stored_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = json.loads((ROOT / "results" / "summary.json").read_text())
    out = tmp_path / "summary.json"
    assert cli.run(["report", str(ROOT / "results"), "--summary", str(out)]) == 0
    capsys.readouterr()
    again = json.loads(out.read_text())
    for row in (*stored, *again):
        del row["folders"]  # relative to the file
    assert again == stored


@pytest.mark.parametrize("document", ["README.md", "results/README.md"])
def test_the_table_of_a_document_is_that_of_the_summary(document: str) -> None:
    assert len(ours.rows()) >= 5
    assert ours.table() in (ROOT / document).read_text()
