"""The paper's tables, looked up by our names."""

from __future__ import annotations

import pytest

from slackline.methods.catalogue import method
from slackline.paper import (
    paper_accuracy,
    paper_average,
    paper_ratio,
    paper_score,
    paper_train,
    printed_betas,
    printed_methods,
    printed_shots,
)
from slackline.suites.resolve import suite


@pytest.mark.parametrize("name", ["cartpole", "acrobot", "pendulum", "maze2d"])
def test_every_variation_has_its_row(name: str) -> None:
    for variation in suite(name).variations:
        for ours in ("single", "lop", "diayn_r"):
            assert paper_score(name, method(ours), variation.name, 10) is not None
    assert paper_score(name, method("lop"), "Train", 10) is None


def test_cells() -> None:
    assert paper_score("acrobot", method("lop"), "Short", 10) == (-60.7, 0.6)
    assert paper_score("pendulum", method("single"), "Long", 10) == (-82.1, 20.4)
    assert paper_score("maze2d", method("single"), "Maze5", 10) == (-100.0, 0.0)
    assert paper_score("cartpole", method("lc"), "LongPole", 10) is None
    assert paper_score("pendulum-continuous", method("lop"), "Long", 10) is None


def test_a_method_printed_by_beta_is_read_at_the_runs() -> None:
    line, skills = method("lop"), method("diayn_r")
    assert paper_score("maze2d", line, "Maze2", 10) == (-30.2, 11.6)
    assert paper_score("maze2d", line.with_options(beta=0.01), "Maze2", 10) == (-23.6, 3.6)
    assert paper_score("maze2d", skills, "Maze4", 10) == (-72.8, 33.8)
    assert paper_score("ant", method("lc", beta=0.1), "BigGravity", 10) == (7137, 96)
    assert paper_score("ant", method("lc", beta=1.0), "BigGravity", 10) != (7137, 96)


def test_a_beta_that_the_paper_has_not_has_no_number() -> None:
    line = method("lop", beta=0.3)
    assert paper_score("maze2d", line, "Maze2", 10) is None
    assert paper_average("maze2d", line, 10) is None, "not the summary's, which is of another β"
    assert paper_score("cartpole", line, "LongPole", 10) is None, "the paper's is of β = 1"
    assert paper_average("cartpole", line, 10) is None
    assert paper_score("cartpole", method("lop"), "LongPole", 10) == (56.1, 72.2)


def test_where_the_paper_does_not_say_which_beta_any_is_shown() -> None:
    skills = method("diayn_r", beta=0.01)
    assert paper_score("fruitbot", skills, "Levels100", 10) == (12.1, 5.2)
    assert paper_score("halfcheetah", method("lc", beta=1.0), "BigFeet", 10) is None
    assert paper_score("halfcheetah", method("lc", beta=10.0), "BigFeet", 10) == (8340, 888)


def test_what_the_paper_prints() -> None:
    assert printed_betas("ant", "lc") == [0.1, 1.0, 10.0]
    assert printed_betas("maze2d", "lop") == [0.01, 0.1, 1.0]
    assert printed_betas("cartpole", "lop") == printed_betas("gym:X-v0", "lop") == []
    assert printed_shots("ant") == [5, 10, 20]
    assert printed_shots("halfcheetah-mujoco") == []
    assert "ensemble" in printed_methods("halfcheetah", 5) - printed_methods("halfcheetah", 10)
    assert printed_methods("ant", 20) == {"single", "lop", "diayn_r", "lc"}
    assert paper_train("ant", method("diayn_r", beta=10.0)) == 4430
    assert paper_train("ant", method("lop", beta=0.3)) is None
    assert paper_train("halfcheetah", method("lop")) is None
    assert paper_accuracy("halfcheetah", method("lop"), changed=True) == 0.87
    assert paper_accuracy("halfcheetah", method("lc"), changed=True) is None


def test_averages() -> None:
    assert paper_average("acrobot", method("lop"), 10) == -93.2
    assert paper_average("maze2d", method("single"), 10) == -83.2
    assert paper_average("maze2d", method("lop"), 10) == -33.64
    assert paper_average("maze2d", method("diayn_r"), 10) == -48.88
    assert paper_average("maze2d", method("diayn_r", beta=0.1), 10) == -42.2, "as in its summary"
    assert paper_average("maze2d", method("lc"), 10) is None
    assert paper_average("pendulum-continuous", method("lop"), 10) is None


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
    options = suite("ant").options
    ours = {name: method(name, **options.get(name, {})) for name in averages}
    assert {name: paper_average("ant", m, shots) for name, m in ours.items()} == averages


def test_softened_changes_are_shown_beside_the_papers() -> None:
    line = method("lop")
    for find in (paper_average, paper_ratio):
        assert find("halfcheetah-soft", line, 10) == find("halfcheetah", line, 10) is not None
    for variation in suite("halfcheetah-soft").variations:
        soft = paper_score("halfcheetah-soft", line, variation.name, 10)
        assert soft == paper_score("halfcheetah", line, variation.name, 10) is not None
    assert paper_score("halfcheetah-mujoco", line, "BigFeet", 10) is None


def test_averages_of_the_half_cheetah_at_any_k() -> None:
    assert [paper_average("halfcheetah", method("lop"), k) for k in (5, 10, 20)] == [
        10413,
        10589,
        10691,
    ]


def test_ratios_are_the_papers() -> None:
    """1.38 on HalfCheetah and 1.21 on Ant, negative returns counted as zero."""
    assert paper_ratio("halfcheetah", method("lop"), 10) == pytest.approx(1.38, abs=0.005)
    assert paper_ratio("ant", method("lop"), 10) == pytest.approx(1.21, abs=0.005)
    assert paper_ratio("halfcheetah", method("ensemble"), 10) is None
    assert paper_ratio("pendulum", method("lop"), 10) == pytest.approx(52.7 / 28.9, abs=0.01)
    assert paper_ratio("pendulum", method("single"), 10) is None
    assert paper_ratio("pendulum-continuous", method("lop"), 10) is None
