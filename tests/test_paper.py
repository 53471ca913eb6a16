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


@pytest.mark.parametrize(
    ("shots", "averages"),
    [
        (5, {"single": 3338, "lop": 4035, "diayn_r": 3451, "lc": 3909}),
        (10, {"single": 3338, "lop": 4031, "diayn_r": 3759, "lc": 4020}),
        (20, {"single": 3338, "lop": 4174, "diayn_r": 2878, "lc": 4150}),
    ],
)
def test_averages_of_the_ant_are_those_the_paper_prints(
    shots: int, averages: dict[str, float]
) -> None:
    assert {method: paper_average("ant", method, shots) for method in averages} == averages


def test_averages_of_the_half_cheetah_at_any_k() -> None:
    assert [paper_average("halfcheetah", "lop", k) for k in (5, 10, 20)] == [10413, 10589, 10691]


def test_ratios_are_the_papers() -> None:
    """1.38 on HalfCheetah and 1.21 on Ant, negative returns counted as zero."""
    assert paper_ratio("halfcheetah", "lop", 10) == pytest.approx(1.38, abs=0.005)
    assert paper_ratio("ant", "lop", 10) == pytest.approx(1.21, abs=0.005)
    assert paper_ratio("halfcheetah", "ensemble", 10) is None
    assert paper_ratio("pendulum", "lop", 10) is None
    assert paper_ratio("pendulum-continuous", "lop", 10) is None
