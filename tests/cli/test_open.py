"""slackline adapt --open: a single policy as a line of vigour, in a run folder of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import refused, told

from slackline.store.run import RunFolder
from slackline.store.scores import read_scores

BRIEF = ("--shots", "3", "--episodes", "1", "--score-episodes", "2")


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from slackline import cli

    out = tmp_path_factory.mktemp("runs") / "single"
    words = "train pendulum-continuous --method single --seeds 2 --steps 3k --out"
    assert cli.run([*words.split(), str(out)]) == 0
    return out


def test_a_single_policy_is_opened_adapted_and_compared_with_itself(
    single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "line"
    said = told(capsys, "adapt", str(single), "--open", *BRIEF, "--out", str(out))
    assert "vigour on pendulum-continuous, adapted with K = 3: 2 seeds" in said
    assert RunFolder(out).config().method == "vigour"
    assert not (single / "scores.parquet").exists()
    tried = read_scores(out / "scores.parquet").filter(phase="select", variation="Train", seed=1)
    assert sorted(tried["candidate"]) == [0, 1, 2]
    told(capsys, "adapt", str(single), *BRIEF[2:])
    summary = tmp_path / "summary.json"
    told(capsys, "report", str(single), str(out), "--summary", str(summary))
    row = next(row for row in json.loads(summary.read_text()) if row["method"] == "vigour")
    assert row["ours"]
    assert row["paired"], "seed by seed with the policies that it is made of"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--open", "--open and --out FOLDER belong together"),
        ("--open --perturb 0.1 --out new", "--open and --perturb exclude each other"),
    ],
)
def test_opening_refuses_bad_input(
    single: Path, words: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in refused(capsys, "adapt", str(single), *words.split())
    assert not Path("new").exists()
