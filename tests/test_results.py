"""What the documents say was measured is what the stored runs say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from slackline import cli

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

import ours  # noqa: E402  # type: ignore[import-not-found]


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


def test_results_stay_small() -> None:
    files = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if "checkpoint" not in path.name) < 20e6
