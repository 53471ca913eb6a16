"""The grid adapter: its budget, its choice, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

from slackline.adapt.adapter import GridAdapter
from slackline.errors import SlacklineError
from slackline.methods.latent import Categorical, Interval, Latent, Members, Point, Simplex

SPACES = [Point(), Simplex(2), Simplex(3), Interval(), Categorical(10), Members(4)]


def spend(adapter: GridAdapter, returns: dict[int, list[float]]) -> None:
    """Ask until the budget is spent; candidate k returns returns[k] in turn."""
    told = {k: iter(values) for k, values in returns.items()}
    while adapter.remaining:
        z = adapter.ask()
        k = int(np.flatnonzero((adapter.candidates == z).all(axis=-1))[0])
        adapter.tell(z, next(told[k]))


@properties
@given(
    latent=st.sampled_from(SPACES),
    shots=st.integers(1, 6),
    episodes=st.integers(1, 3),
    moves=st.lists(st.tuples(st.booleans(), st.floats(-1e6, 1e6), st.integers(0, 9)), max_size=60),
)
def test_budget_is_never_exceeded_and_best_is_the_best_mean(
    latent: Latent, shots: int, episodes: int, moves: list[tuple[bool, float, int]]
) -> None:
    """Asks and tells in any order, several episodes out at once."""
    adapter = GridAdapter(latent, shots=shots, episodes=episodes)
    budget = len(adapter.candidates) * episodes
    assert len(adapter.candidates) <= shots
    out: list[np.ndarray] = []
    told: dict[bytes, list[float]] = {}
    asked = 0
    for ask, episode_return, which in moves:
        if ask:
            if asked == budget:
                with pytest.raises(SlacklineError, match=f"budget of {budget} episodes is spent"):
                    adapter.ask()
                continue
            out.append(adapter.ask())
            asked += 1
        elif out:
            z = out.pop(which % len(out))
            adapter.tell(z, episode_return)
            told.setdefault(z.tobytes(), []).append(episode_return)
        assert adapter.remaining == budget - asked
        if told:
            mean = np.mean(told[adapter.best().tobytes()])
            assert mean >= max(map(np.mean, told.values())) - 1e-6
    assert sum(map(len, adapter.returns)) <= asked <= budget


def test_every_candidate_is_tried_as_often_as_told() -> None:
    adapter = GridAdapter(Interval(), shots=3, episodes=2)
    asked = [float(adapter.ask()[0]) for _ in range(6)]
    assert sorted(asked) == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    assert adapter.remaining == 0


def test_best_is_the_best_mean_not_the_best_episode() -> None:
    adapter = GridAdapter(Interval(), shots=3, episodes=2)
    spend(adapter, {0: [10.0, -10.0], 1: [2.0, 3.0], 2: [-1.0, 4.0]})
    np.testing.assert_array_equal(adapter.best(), [0.5])
    assert adapter.returns == [[10.0, -10.0], [2.0, 3.0], [-1.0, 4.0]]


def test_all_negative_returns() -> None:
    """A candidate without an episode is not the best because it has lost nothing."""
    adapter = GridAdapter(Interval(), shots=3)
    adapter.tell(adapter.ask(), -50.0)
    adapter.tell(adapter.ask(), -20.0)
    np.testing.assert_array_equal(adapter.best(), [0.5])


def test_ties_go_to_the_first() -> None:
    adapter = GridAdapter(Interval(), shots=4)
    spend(adapter, {0: [1.0], 1: [7.0], 2: [7.0], 3: [7.0]})
    np.testing.assert_allclose(adapter.best(), [1 / 3], rtol=1e-6)


def test_episodes_may_be_out_at_once_and_come_back_in_any_order() -> None:
    adapter = GridAdapter(Simplex(2), shots=3)
    first, second, third = adapter.ask(), adapter.ask(), adapter.ask()
    adapter.tell(third, 1.0)
    adapter.tell(first, 3.0)
    adapter.tell(second, 2.0)
    np.testing.assert_array_equal(adapter.best(), first)
    assert adapter.returns == [[3.0], [2.0], [1.0]]


def test_ask_beyond_the_budget() -> None:
    adapter = GridAdapter(Interval(), shots=2)
    adapter.tell(adapter.ask(), 0.0)
    adapter.ask()
    with pytest.raises(SlacklineError, match=r"budget of 2 episodes is spent; call best\(\)"):
        adapter.ask()


@pytest.mark.parametrize("z", [[0.3, 0.7], [0.5], 0.5, [1.0, 0.0, 0.0], [math.nan, math.nan]])
def test_tell_of_a_z_that_is_no_candidate(z: Any) -> None:
    adapter = GridAdapter(Simplex(2), shots=3)
    adapter.ask()
    with pytest.raises(SlacklineError, match="was never asked"):
        adapter.tell(z, 1.0)
    assert not any(adapter.returns)


@pytest.mark.parametrize("z", ["middle", [[0.5], [0.5, 0.0]], {"z": 1}])
def test_tell_of_what_is_not_even_numbers(z: Any) -> None:
    adapter = GridAdapter(Simplex(2), shots=3)
    adapter.ask()
    with pytest.raises(SlacklineError, match="was never asked"):
        adapter.tell(z, 1.0)


def test_tell_of_a_candidate_not_asked_yet() -> None:
    adapter = GridAdapter(Simplex(2), shots=3)
    adapter.ask()
    with pytest.raises(SlacklineError, match=r"has no episode out: ask\(\) for it"):
        adapter.tell(adapter.candidates[2], 1.0)


def test_tell_twice() -> None:
    adapter = GridAdapter(Interval(), shots=2)
    z = adapter.ask()
    adapter.tell(z, 1.0)
    with pytest.raises(SlacklineError, match="has no episode out"):
        adapter.tell(z, 1.0)
    assert adapter.returns == [[1.0], []]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_return_that_is_no_number(bad: float) -> None:
    adapter = GridAdapter(Interval(), shots=2)
    z = adapter.ask()
    with pytest.raises(SlacklineError, match="it must be a finite number"):
        adapter.tell(z, bad)
    adapter.tell(z, 1.0)  # the episode is still out
    np.testing.assert_array_equal(adapter.best(), z)


def test_best_before_anything_is_told() -> None:
    adapter = GridAdapter(Interval(), shots=2)
    adapter.ask()
    with pytest.raises(SlacklineError, match="nothing was told yet"):
        adapter.best()


@pytest.mark.parametrize("latent", SPACES, ids=repr)
def test_z_that_went_through_text_is_recognised(latent: Latent) -> None:
    adapter = GridAdapter(latent, shots=4)
    told = 0.0
    while adapter.remaining:
        z = adapter.ask()
        text = json.loads(json.dumps([round(float(x), 7) for x in z]))
        adapter.tell(text, told)
        told += 1.0
    assert [r for returns in adapter.returns for r in returns] == list(np.arange(told))


@pytest.mark.parametrize("shots", [1000, 200_000])
def test_neighbours_of_a_fine_grid_are_told_apart(shots: int) -> None:
    adapter = GridAdapter(Interval(), shots=shots)
    asked = [adapter.ask() for _ in range(shots)]
    adapter.tell(asked[-1], 1.0)
    assert adapter.returns[-1] == [1.0]


def test_what_ask_gives_is_a_copy() -> None:
    adapter = GridAdapter(Interval(), shots=2)
    z = adapter.ask()
    z += 0.3
    np.testing.assert_array_equal(adapter.candidates, [[0.0], [1.0]])


@pytest.mark.parametrize(("shots", "episodes"), [(0, 1), (1, 0), (-1, 1), (10_000_000, 1)])
def test_impossible_budgets(shots: int, episodes: int) -> None:
    with pytest.raises(SlacklineError, match="must be a whole number"):
        GridAdapter(Interval(), shots=shots, episodes=episodes)
