"""Files of one run in the folder of another: refused, with both runs named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import refused, told

import slackline as sl
from slackline.errors import SlacklineError

SMALL = ("--steps", "320", "--hyper.num-envs", "4", "--hyper.num-steps", "4")
BRIEF = ("--shots", "2", "--episodes", "1", "--score-episodes", "2")


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Alike but for their seeds, 0 and 5; both adapted."""
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder, seed in ((mine, "0"), (other, "5")):
        words = ("cartpole", "--method", "lop", "--first-seed", seed, *SMALL, "--out", str(folder))
        told(capsys, "train", *words)
        told(capsys, "adapt", str(folder), *BRIEF)
    return mine, other


def test_anothers_policies_are_not_loaded_or_exported(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = runs
    shutil.copy(other / "subspace.safetensors", mine / "subspace.safetensors")
    with pytest.raises(SlacklineError, match=r"saved by a run with seeds \[5\], and this one has"):
        sl.load(mine)
    said = refused(capsys, "export", str(mine), "--to", "c", "--z", "0.5")
    assert "saved by a run with seeds [5]" in said


def test_anothers_scores_are_neither_shown_nor_added_to(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = runs
    shutil.copy(other / "scores.parquet", mine / "scores.parquet")
    before = (mine / "scores.parquet").read_bytes()
    for words in (("report", str(mine)), ("adapt", str(mine), "--variation", "LongPole", *BRIEF)):
        said = refused(capsys, *words)
        assert "has scores of lop with seeds [5], and this is a run of lop with seeds [0]" in said
    assert (mine / "scores.parquet").read_bytes() == before
