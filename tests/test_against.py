"""The ratios of benchmarks/against.py; what it runs takes minutes and is not for CI."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import against  # type: ignore[import-not-found]


class Fake:
    """A tree whose rounds take known seconds."""

    def __init__(self, *seconds: float):
        self.left = list(seconds)

    def seconds(self, case: str, share: float) -> float:
        return self.left.pop(0)


def test_ratios_are_the_others_seconds_over_ours_round_by_round() -> None:
    found = against.ratios([1.0, 2.0, 4.0], [2.0, 2.0, 2.0])
    assert found == {"ratio": 1.0, "lowest": 0.5, "highest": 2.0}


def test_the_round_that_compiles_does_not_count() -> None:
    this, other = Fake(100.0, 2.0, 2.0), Fake(1.0, 3.0, 5.0)
    found = against.measure(this, other, ["case"], rounds=2, share=1.0)  # type: ignore[arg-type]
    assert found["case"] == {"ratio": 2.0, "lowest": 1.5, "highest": 2.5, "seconds": 2.0}
    assert not this.left
    assert not other.left


def test_cases_are_chosen_by_how_they_begin() -> None:
    assert against.chosen(["adapt/cart"]) == ["adapt/cartpole/lop"]
    assert against.chosen(None) == list(against.CASES)
    with pytest.raises(SystemExit, match="no case begins with fly"):
        against.chosen(["fly"])


def test_a_commit_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no-such-commit"):
        against.extract("no-such-commit", tmp_path)
