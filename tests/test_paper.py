"""The paper's tables, looked up by our names."""

from __future__ import annotations

import pytest

from slackline.paper import paper_average, paper_ratio, paper_score
from slackline.suites import suite


@pytest.mark.parametrize("name", ["cartpole", "acrobot", "pendulum", "maze2d"])
def test_every_variation_has_its_row(name: str) -> None:
    for variation in suite(name).variations:
        for method in ("single", "lop", "diayn_r"):
            assert paper_score(name, method, variation.name, 10) is not None
    assert paper_score(name, "lop", "Train", 10) is None


def test_cells() -> None:
    assert paper_score("acrobot", "lop", "Short", 10) == (-60.7, 0.6)
    assert paper_score("pendulum", "single", "Long", 10) == (-82.1, 20.4)
    assert paper_score("maze2d", "single", "Maze5", 10) == (-100.0, 0.0)
    assert paper_score("cartpole", "lc", "LongPole", 10) is None
    assert paper_score("pendulum-continuous", "lop", "Long", 10) is None


def test_a_method_printed_by_beta_is_read_at_one() -> None:
    assert paper_score("maze2d", "lop", "Maze2", 10) == (-30.2, 11.6)
    assert paper_score("maze2d", "diayn_r", "Maze4", 10) == (-72.8, 33.8)


def test_averages() -> None:
    assert paper_average("acrobot", "lop", 10) == -93.2
    assert paper_average("maze2d", "single", 10) == -83.2
    assert paper_average("maze2d", "lop", 10) == -33.64
    assert paper_average("maze2d", "diayn_r", 10) == -48.88  # the summary's −42.2 is of β = 0.1
    assert paper_average("maze2d", "lc", 10) is None
    assert paper_average("pendulum-continuous", "lop", 10) is None


def test_ratios_are_the_papers() -> None:
    """1.38 on HalfCheetah and 1.21 on Ant, negative returns counted as zero."""
    assert paper_ratio("halfcheetah", "lop", 10) == pytest.approx(1.38, abs=0.005)
    assert paper_ratio("ant", "lop", 10) == pytest.approx(1.21, abs=0.005)
    assert paper_ratio("halfcheetah", "ensemble", 10) is None
    assert paper_ratio("pendulum", "lop", 10) is None
    assert paper_ratio("pendulum-continuous", "lop", 10) is None
