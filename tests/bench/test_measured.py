"""Arrays out of the score table, in literal numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from slackline.bench.measured import Measured, beside_single, measure, selection_returns
from slackline.errors import SlacklineError
from slackline.store.scores import SCHEMA


def table(
    tried: dict[tuple[int, str], list[list[float]]], fresh: dict[tuple[int, str], float]
) -> pl.DataFrame:
    """(seed, variation) -> selection returns (K, M), and -> one fresh return."""
    head = {"suite": "cartpole", "method": "lop", "shots": 2, "z": [0.0]}
    select = [
        {"phase": "select", "seed": s, "variation": v, "candidate": k, "episode": m, "return": r}
        for (s, v), of_k in tried.items()
        for k, returns in enumerate(of_k)
        for m, r in enumerate(returns)
    ]
    score = [
        {"phase": "score", "seed": s, "variation": v, "candidate": 0, "episode": 0, "return": r}
        for (s, v), r in fresh.items()
    ]
    return pl.DataFrame([head | row for row in select + score], schema=SCHEMA)


TRIED = {
    # Seed 4 is best on Train with its second candidate, seed 1 with its first.
    (4, "Train"): [[1.0, 2.0], [3.0, 4.0]],
    (4, "B"): [[10.0, 20.0], [30.0, 50.0]],
    (4, "A"): [[5.0, 5.0], [7.0, 9.0]],
    (1, "Train"): [[9.0, 1.0], [2.0, 2.0]],
    (1, "B"): [[0.0, 1.0], [60.0, 70.0]],
    (1, "A"): [[2.0, 4.0], [8.0, 8.0]],
}
FRESH = {(s, v): 100.0 * s + ord(v[0]) for s, v in TRIED}


def test_arrays_are_ordered_by_seed_and_variation() -> None:
    found = measure(table(TRIED, FRESH), ["A", "B"])
    np.testing.assert_array_equal(found.changed, [[165.0, 166.0], [465.0, 466.0]])
    assert found.train is not None
    np.testing.assert_array_equal(found.train, [184.0, 484.0])
    assert found.tried.shape == (2, 2, 2, 2)
    np.testing.assert_array_equal(found.tried[1, 0], TRIED[4, "A"])
    np.testing.assert_array_equal(found.tried[0, 1], TRIED[1, "B"])


def test_default_z_is_chosen_on_train_and_scored_elsewhere() -> None:
    found = measure(table(TRIED, FRESH), ["A", "B"]).default
    np.testing.assert_array_equal(found, [[3.0, 0.5], [8.0, 40.0]])


def test_without_train_there_is_no_default() -> None:
    untrained = {place: value for place, value in TRIED.items() if place[1] != "Train"}
    found = measure(table(untrained, {k: v for k, v in FRESH.items() if k in untrained}), ["A"])
    assert (found.train, found.default, found.headroom) == (None, None, None)


def test_train_of_some_seeds_only_does_not_count() -> None:
    partly = {place: value for place, value in TRIED.items() if place != (1, "Train")}
    fresh = {place: FRESH[place] for place in partly}
    assert measure(table(partly, fresh), ["A", "B"]).train is None


def test_where_there_is_no_choice_default_and_oracle_are_the_score() -> None:
    alone = {place: value[:1] for place, value in TRIED.items()}
    found = measure(table(alone, FRESH), ["A", "B"])
    assert found.default is found.oracle is found.changed
    once = {place: [value[0][:1]] for place, value in TRIED.items()}
    assert measure(table(once, FRESH), ["A", "B"]).oracle is None


def test_missing_selection_episodes_are_refused() -> None:
    broken = TRIED | {(1, "B"): [[0.0, 1.0]]}
    with pytest.raises(SlacklineError, match="lop on cartpole at K = 2: selection episodes"):
        selection_returns(table(broken, FRESH), ["A", "B"])


def test_unequal_numbers_of_episodes_are_cut_to_the_smallest() -> None:
    longer = TRIED | {(1, "B"): [[0.0, 1.0, 500.0], [60.0, 70.0, 500.0]]}
    found = selection_returns(table(longer, FRESH), ["A", "B"])
    np.testing.assert_array_equal(found[0, 1], TRIED[1, "B"])


def of(changed: float, train: float | None) -> Measured:
    """Three seeds without noise, one candidate."""
    scores = np.full((3, 2), changed)
    unchanged = None if train is None else np.full(3, train)
    return Measured(scores, scores[:, :, None, None], unchanged, None)


def test_a_row_is_of_returns_of_costs_or_of_neither() -> None:
    found = beside_single(of(6.0, 9.0), of(4.0, 10.0))
    assert found.of == "returns"
    assert found.changed.ratio is not None
    assert found.train is not None
    assert found.train.ratio is not None
    assert (found.changed.ratio.value, found.train.ratio.value) == (1.5, 0.9)
    costs = beside_single(of(-4.0, -10.0), of(-6.0, -9.0))
    assert costs.of == "costs"
    assert costs.changed.ratio is not None
    assert costs.train is not None
    assert costs.train.ratio is not None
    assert (costs.changed.ratio.value, costs.train.ratio.value) == (1.5, 0.9)
    # FruitBot: positive in training, negative on new levels.
    mixed = beside_single(of(-1.0, 1.5), of(-2.5, 1.0))
    assert (mixed.of, mixed.changed.ratio) == (None, None)
    assert mixed.changed.difference.value == 1.5
    assert mixed.changed.better == 1.0


def test_without_train_the_changes_decide() -> None:
    found = beside_single(of(-1.0, None), of(-2.0, None))
    assert (found.of, found.train) == ("costs", None)
