"""Files of an analysis: each run has its own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "report"))

from fake_store import Store  # type: ignore[import-not-found]

from slackline.analyses.analysis import Subject, distinct_names, labelled
from slackline.suites import builtin


def test_folders_of_one_name_are_told_apart_by_those_above() -> None:
    three = [Path("a/lop"), Path("b/lop"), Path("b/cop")]
    assert distinct_names(three) == ["a-lop", "b-lop", "cop"]
    assert distinct_names([Path("/x/a/lop"), Path("/y/a/lop")]) == ["x-a-lop", "y-a-lop"]
    assert distinct_names([Path("/lop"), Path("/lop")]) == ["lop-1", "lop-2"]
    assert distinct_names([Path("lop")]) == ["lop"]


def test_runs_in_folders_of_one_name_have_files_of_their_own(tmp_path: Path) -> None:
    runs = [Store(tmp_path / name).add("lop", folder="line") for name in ("first", "second")]
    found = labelled([Subject(run, builtin("cartpole")) for run in runs])
    assert [subject.file_name for subject in found] == ["first-line", "second-line"]
    assert Subject(runs[0], builtin("cartpole")).file_name == "line"
