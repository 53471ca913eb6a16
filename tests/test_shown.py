"""Numbers and refusals in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent / "report"))

from fake_store import Store  # type: ignore[import-not-found]

from slackline.errors import unknown
from slackline.report.results import load_results
from slackline.report.tables import _advice
from slackline.report.words import conditions
from slackline.shown import counted


def test_one_is_not_many() -> None:
    assert [counted(num, "seed") for num in (0, 1, 2, 2000)] == [
        *("0 seeds", "1 seed", "2 seeds", "2,000 seeds"),
    ]


@pytest.mark.parametrize("seeds", [1, 11])
def test_a_page_counts_seeds_and_episodes(tmp_path: Path, seeds: int) -> None:
    store = Store(tmp_path)
    store.add("lop", seeds=seeds, select_episodes=1)
    (result,) = load_results(tmp_path).suites
    said = conditions(result, 10)
    assert f"Trained with {counted(seeds, 'seed')} × 10,240 steps for each method" in said
    assert "at most 10 values of z, 1 episode each" in said
    assert "scored on 5 fresh episodes." in said


def test_names_are_suggested_only_where_one_is_near() -> None:
    near = unknown("adapter", "baye", ["grid", "bayes"])
    assert str(near) == "unknown adapter 'baye'; did you mean bayes? (known: grid, bayes)"
    assert str(unknown("adapter", "cma", ["grid"])) == "unknown adapter 'cma' (known: grid)"


def test_where_to_use_the_default_z() -> None:
    def row(name: str, keep: bool) -> dict[str, Any]:
        return {"variation": name, "default": {"keep_default": keep}}

    assert _advice([row("Long", True)]) == (
        "The episodes show no gain anywhere: use the default z. "
    )
    assert "no gain on Long: use" in _advice([row("Long", True), row("Short", False)])
    assert _advice([row("Long", False)]) == ""
