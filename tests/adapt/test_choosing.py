"""What is believed of noisy returns, what is dared, and whether adapting helped."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hands import by_hand

from slackline.adapt.helped import helped
from slackline.methods.latent import Interval, Simplex, halved
from slackline.methods.training_returns import TrainingReturns
from slackline.store.scores import SCHEMA, merge_scores, read_scores

LINE = Interval()
Z = LINE.candidates(9)


def training(mean: np.ndarray, std: float = 0.0) -> TrainingReturns:
    return TrainingReturns(Z, mean, np.full(len(Z), std), 10)


PEAK = training(100.0 - 80.0 * np.square(Z[:, 0] - 0.25))


def test_nested_orders_extend_each_other() -> None:
    np.testing.assert_array_equal(halved(5), [0.5, 0.0, 1.0, 0.25, 0.75])
    for latent in (Interval(), Simplex(2), Simplex(3)):
        for num in range(1, 20):
            np.testing.assert_array_equal(latent.nested(num), latent.nested(20)[:num])


def test_default_is_the_best_in_training_and_the_middle_of_what_is_as_good() -> None:
    np.testing.assert_array_equal(PEAK.default, [0.25])
    np.testing.assert_array_equal(training(np.full(9, 200.0)).default, [0.5])
    noisy = training(np.array([5.0, 100, 99, 98.5, 99, 20, 10, 10, 5]), std=7.0)
    assert 0.25 <= noisy.default[0] <= 0.375, "one standard error is 2.2"


def test_one_lucky_episode_does_not_win() -> None:
    """Noise of 50 at the default z; elsewhere one return that is a little better than its mean."""
    adapter = by_hand(LINE, "bayes", 20, PEAK)
    generator = np.random.default_rng(0)
    while adapter.remaining:
        z = adapter.ask()
        adapter.tell(z, float(generator.normal(0.0, 50.0)) - 80.0 * float((z[0] - 0.25) ** 2))
    assert abs(float(adapter.best().z[0]) - 0.25) < 0.3


@pytest.mark.parametrize("name", ["bayes", "nested", "halving"])
def test_a_large_difference_is_found_within_a_few_episodes(name: str) -> None:
    """CartPole's long pole: 20 with the default z, 200 on the other half of the line."""
    adapter = by_hand(LINE, name, 8, PEAK)
    while adapter.remaining:
        z = adapter.ask()
        adapter.tell(z, 200.0 if z[0] > 0.6 else 20.0)
    choice = adapter.best()
    assert choice.z[0] > 0.6
    assert choice.probability > 0.9
    assert choice.mean == pytest.approx(200.0, abs=20.0)


@pytest.mark.parametrize("anchors", [3, 6, 12])
def test_one_good_corner_of_many_is_found(anchors: int) -> None:
    """The centre returns 20, the last anchor 200: as many episodes as corners and a few will do."""
    adapter = by_hand(Simplex(anchors, spread="corners"), "bayes", anchors + 8)
    while adapter.remaining:
        z = adapter.ask()
        adapter.tell(z, 20.0 + 180.0 * float(z[-1]) ** 2)
    choice = adapter.best()
    assert choice.z[-1] > 0.9
    assert choice.probability > 0.9


def test_safe_asks_for_nothing_that_is_predicted_to_be_bad() -> None:
    """The return falls to both sides of 0.25; below 60 is forbidden, and found by the others."""

    def play(z: float) -> float:
        return 100.0 - 300.0 * (z - 0.25) ** 2

    daring, careful = by_hand(LINE, "nested", 12, PEAK), by_hand(LINE, "safe", 12, PEAK, floor=60.0)
    for adapter in (daring, careful):
        while adapter.remaining:
            z = adapter.ask()
            adapter.tell(z, play(float(z[0])))
    assert daring.state.returns.min() < 0.0
    assert careful.state.returns.min() > 50.0, "a step too far at most"
    assert careful.worst == careful.state.returns.min()
    np.testing.assert_array_equal(careful.state.asked[0], PEAK.default)


def test_whether_it_helped_in_words() -> None:
    better = helped(np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.5, 3.0]))
    assert (better.verdict, better.keep_default) == ("helped", False)
    assert better.gain == pytest.approx(11.0 / 6.0)
    # Gains of 2, 1.5 and 2: standard error 1/6, Student's t with two degrees of freedom 4.3027.
    assert better.low == pytest.approx(11.0 / 6.0 - 4.3027 / 6.0, abs=1e-4)
    assert helped(np.zeros(4), np.full(4, 2.0)).verdict == "hurt"
    vague = helped(np.array([0.0, 9.0]), np.array([1.0, 2.0]))
    assert (vague.verdict, vague.keep_default) == ("made no difference", True)
    assert "use the default z" in str(vague)
    one = helped(np.array([9.0]), np.array([1.0]))
    assert (one.verdict, one.keep_default) == ("cannot tell", True)
    assert math.isnan(one.low)
    assert helped(np.ones(1), np.ones(1)).verdict == "made no difference"


@pytest.mark.parametrize(
    "change",
    [
        {"z": [[0.5, 0.5]]},
        {"mean": [1.0]},
        {"mean": [math.nan] * 9},
        {"std": [-1.0] * 9},
        {"episodes": 0},
        {"episodes": "ten"},
        {"z": []},
    ],
)
def test_training_returns_that_no_file_may_have(change: dict) -> None:
    good = PEAK.to_json()
    again = TrainingReturns.from_json(good, 1)
    np.testing.assert_allclose(again.mean, PEAK.mean, rtol=1e-5)
    with pytest.raises(ValueError):  # noqa: PT011
        TrainingReturns.from_json(good | change, 1)


def test_tables_of_earlier_versions_mean_the_grid(tmp_path: Path) -> None:
    row = {"suite": "cartpole", "method": "lop", "seed": 0, "variation": "LongPole", "shots": 10}
    row |= {"phase": "score", "candidate": 0, "z": [0.5, 0.5], "episode": 0, "return": 1.0}
    path = tmp_path / "scores.parquet"
    earlier = {name: kind for name, kind in SCHEMA.items() if name in row}
    pl.DataFrame([row], schema=earlier).write_parquet(path)
    assert read_scores(path)["adapter"].to_list() == ["grid"]
    other = pl.DataFrame([row | {"adapter": "bayes"}], schema=SCHEMA)
    assert sorted(merge_scores(path, other)["adapter"]) == ["bayes", "grid"]
    assert merge_scores(path, other).height == 2, "what the same adapter had is replaced"
