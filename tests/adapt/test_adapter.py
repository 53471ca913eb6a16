"""Adapters by hand: budgets, choices, files, and what is refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import by_hand, fake_line
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

from slackline.adapt.asktell import AskTell, load_adapter
from slackline.adapt.catalogue import ADAPTERS, BUDGET, adapter_named
from slackline.api import Line
from slackline.errors import SlacklineError
from slackline.methods.latent import Bezier, Interval, Latent, Members, Point, Simplex, Skills
from slackline.methods.training_returns import TrainingReturns

SPACES = [Point(), Simplex(2), Simplex(3), Interval(), Bezier(3), Skills(10), Members(4)]
OPTIONS: dict[str, dict[str, Any]] = {"safe": {"floor": -1e6}}


def means_of(adapter: AskTell) -> dict[bytes, float]:
    told: dict[bytes, list[float]] = {}
    for z, r in zip(adapter.state.asked, adapter.state.returns, strict=True):
        if math.isfinite(r):
            told.setdefault(z.tobytes(), []).append(float(r))
    return {z: float(np.mean(rs)) for z, rs in told.items()}


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("latent", SPACES, ids=repr)
def test_every_adapter_keeps_to_its_budget_in_every_space(name: str, latent: Latent) -> None:
    """One at a time, several at once, told in another order: never more, always of the space."""
    adapter = by_hand(latent, name, 12, **OPTIONS.get(name, {}))
    generator = np.random.default_rng(0)
    assert adapter.best().z.shape == (latent.size,), "before anything is told"
    while adapter.remaining:
        z = adapter.ask_many(min(adapter.remaining, int(generator.integers(1, 4))))
        assert all(latent.contains(one) for one in z)
        for one in generator.permutation(z):
            adapter.tell(one, float(generator.normal()))
        choice = adapter.best()
        assert latent.contains(choice.z)
        assert latent.parse(choice if latent.size else None) is not None
    assert len(adapter.state.asked) == 12
    assert not len(adapter.out)
    with pytest.raises(SlacklineError, match="budget of 12 episodes is spent"):
        adapter.ask()


@properties
@given(
    latent=st.sampled_from(SPACES),
    shots=st.integers(1, 6),
    episodes=st.integers(1, 3),
    moves=st.lists(st.tuples(st.booleans(), st.floats(-1e6, 1e6), st.integers(0, 9)), max_size=60),
)
def test_the_grid_chooses_the_best_mean(
    latent: Latent, shots: int, episodes: int, moves: list[tuple[bool, float, int]]
) -> None:
    """Asks and tells in any order, several episodes out at once."""
    adapter = by_hand(latent, shots=shots, episodes=episodes)
    budget = len(latent.candidates(shots)) * episodes
    out: list[np.ndarray] = []
    for ask, episode_return, which in moves:
        if ask and not adapter.remaining:
            with pytest.raises(SlacklineError, match=f"budget of {budget} episodes is spent"):
                adapter.ask()
        elif ask:
            out.append(adapter.ask())
        elif out:
            adapter.tell(out.pop(which % len(out)), episode_return)
        assert adapter.remaining == budget - len(adapter.state.asked)
        means = means_of(adapter)
        if means:
            assert means[adapter.best().z.tobytes()] >= max(means.values()) - 1e-6


def test_the_grid_tries_every_candidate_as_often_as_told() -> None:
    adapter = by_hand(Interval(), shots=3, episodes=2)
    asked = [float(adapter.ask()[0]) for _ in range(6)]
    assert asked == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    assert adapter.remaining == 0


def test_a_budget_that_does_not_divide() -> None:
    asked = by_hand(Interval(), "grid", 7, shots=3).ask_many(7)[:, 0]
    np.testing.assert_array_equal(asked, [0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0])
    assert len(by_hand(Interval(), "grid", 2, shots=3).ask_many(2)) == 2


def test_the_grid_takes_the_best_mean_not_the_best_episode() -> None:
    adapter = by_hand(Interval(), shots=3, episodes=2)
    for z, r in zip(adapter.ask_many(6), [10.0, -10.0, 2.0, 3.0, -1.0, 4.0], strict=True):
        adapter.tell(z, r)
    choice = adapter.best()
    np.testing.assert_array_equal(choice.z, [0.5])
    assert choice.mean == 2.5
    # Squares of 200, 0.5 and 12.5 with three degrees of freedom, over two episodes.
    assert choice.error == pytest.approx(math.sqrt(213.0 / 3 / 2))
    assert choice.probability == 0.5, "it is the candidate nearest to the default z"
    assert adapter.worst == -10.0


def test_ties_go_to_the_first_and_losses_count() -> None:
    adapter = by_hand(Interval(), shots=4)
    for r in (-9.0, -7.0, -7.0):
        adapter.tell(adapter.ask(), r)
    np.testing.assert_allclose(adapter.best().z, [1 / 3], rtol=1e-6)


def test_nothing_told_is_the_default_z() -> None:
    z = np.array([[0.0], [0.25], [1.0]], np.float32)
    training = TrainingReturns(z, np.array([1.0, 9.0, 2.0]), np.zeros(3), 5)
    for name in ADAPTERS:
        adapter = by_hand(Interval(), name, 5, training, **OPTIONS.get(name, {}))
        np.testing.assert_array_equal(adapter.best().z, [0.25])
        middle = by_hand(Interval(), name, 5, **OPTIONS.get(name, {}))
        np.testing.assert_array_equal(middle.best().z, [0.5])
        assert middle.worst is None


def test_numpy_takes_a_choice_as_its_z() -> None:
    adapter = by_hand(Simplex(2), shots=3)
    np.testing.assert_array_equal(np.asarray(adapter.best()), adapter.best().z)


@pytest.mark.parametrize("z", [[0.3, 0.7], [0.5], 0.5, [1.0, 0.0, 0.0], [math.nan, math.nan]])
def test_tell_of_a_z_that_was_never_asked(z: Any) -> None:
    adapter = by_hand(Simplex(2), shots=3)
    adapter.ask()
    with pytest.raises(SlacklineError, match="was never asked"):
        adapter.tell(z, 1.0)
    assert not adapter.state.told.any()


@pytest.mark.parametrize("z", ["middle", [[0.5], [0.5, 0.0]], {"z": 1}])
def test_tell_of_what_is_not_even_numbers(z: Any) -> None:
    adapter = by_hand(Simplex(2), shots=3)
    adapter.ask()
    with pytest.raises(SlacklineError, match="was never asked"):
        adapter.tell(z, 1.0)


@pytest.mark.parametrize("name", ADAPTERS)
def test_tell_twice(name: str) -> None:
    adapter = by_hand(Interval(), name, 4, **OPTIONS.get(name, {}))
    z = adapter.ask()
    adapter.tell(z, 1.0)
    with pytest.raises(SlacklineError, match="has no episode to tell"):
        adapter.tell(z, 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300, -1e300, "many", None, True])
def test_a_return_that_is_no_sane_number(bad: Any) -> None:
    adapter = by_hand(Interval(), budget=4)
    z = adapter.ask()
    with pytest.raises(SlacklineError, match=r"episode_return is .*; it must be a finite number"):
        adapter.tell(z, bad)
    adapter.tell(z, 1.0)  # the episode is still out


def test_huge_but_sane_returns_leave_finite_numbers() -> None:
    adapter = by_hand(Interval(), "bayes", 8)
    for r in (1e29, -1e29, 0.0, 1e-9, 5.0):
        adapter.tell(adapter.ask(), r)
    choice = adapter.best()
    assert np.isfinite([choice.mean, choice.error, choice.probability]).all()


@pytest.mark.parametrize("latent", SPACES, ids=repr)
def test_z_that_went_through_text_is_recognised(latent: Latent) -> None:
    adapter = by_hand(latent, "nested", 6)
    for told in range(6):
        z = adapter.ask()
        text = json.loads(json.dumps([round(float(x), 7) for x in z]))
        adapter.tell(text if latent.size else None, float(told))
    np.testing.assert_array_equal(adapter.state.returns, np.arange(6.0))


@pytest.mark.parametrize("shots", [1000, 200_000])
def test_neighbours_of_a_fine_grid_are_told_apart(shots: int) -> None:
    adapter = by_hand(Interval(), shots=shots)
    asked = adapter.ask_many(shots)
    adapter.tell(asked[-1], 1.0)
    assert adapter.state.returns[-1] == 1.0


def test_what_ask_gives_is_a_copy() -> None:
    adapter = by_hand(Interval(), shots=2)
    z = adapter.ask()
    z += 0.3
    np.testing.assert_array_equal(adapter.state.asked, [[0.0]])


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"shots": 0}, "shots is 0; it must be a whole number"),
        ({"shots": 1, "episodes": 0}, "episodes is 0; it must be a whole number"),
        ({"budget": -1}, "budget is -1; it must be a whole number"),
        ({"budget": 10_000_000}, "budget is 10000000; it must be"),
        ({"name": "gird"}, "unknown adapter 'gird'; did you mean grid"),
        ({"name": "bayes", "episodes": 3}, "takes a budget of episodes instead"),
        ({"name": "grid", "floor": 3.0}, "adapter 'grid' has no option 'floor'"),
        ({"name": "safe"}, "needs a floor"),
        ({"name": "safe", "floor": math.nan}, "floor is nan; it must be a finite number"),
    ],
)
def test_impossible_adapters(asked: dict[str, Any], problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        by_hand(Interval(), **asked)


def test_what_is_used_where_nothing_is_named() -> None:
    cases: list[tuple[dict[str, Any], tuple[str, int]]] = [
        ({}, ("grid", 10)),
        ({"budget": 7}, ("bayes", 7)),
        ({"name": "halving"}, ("halving", BUDGET)),
    ]
    for asked, expected in cases:
        adapter = by_hand(Interval(), **asked)
        assert (adapter.adapter.name, adapter.remaining) == expected
    assert by_hand(Interval(), shots=4, episodes=2).adapter == adapter_named("grid", shots=4)
    ours: Any = Line.adapter
    assert (
        repr(ours(fake_line(Interval()))) == f"AskTell(Bayes(looks=5): 0 of {BUDGET} episodes told)"
    )
    assert ours(fake_line(Interval()), shots=4).adapter == adapter_named("grid", shots=4)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_saved_adapter_goes_on_as_if_it_had_not_stopped(name: str, tmp_path: Path) -> None:
    """At every episode, with one out."""
    straight = by_hand(Simplex(2), name, 9, **OPTIONS.get(name, {}))
    broken = by_hand(Simplex(2), name, 9, **OPTIONS.get(name, {}))
    for told in range(9):
        z = straight.ask()
        np.testing.assert_array_equal(broken.ask(), z)
        broken = load_adapter(broken.save(tmp_path / "state.json"), fake_line(Simplex(2)))
        np.testing.assert_array_equal(broken.out, [z])
        for adapter in (straight, broken):
            adapter.tell(z, float(np.sin(7.0 * told)))
        np.testing.assert_array_equal(broken.best().z, straight.best().z)


def test_state_files_that_cannot_be_used(tmp_path: Path) -> None:
    adapter = by_hand(Simplex(2), budget=3)
    adapter.tell(adapter.ask(), 2.0)
    path, line = adapter.save(tmp_path / "state.json"), fake_line(Simplex(2))
    good = json.loads(path.read_text())
    another = fake_line(Simplex(2), seed=1)
    with pytest.raises(SlacklineError, match="was saved for another line"):
        load_adapter(path, another)
    for change, problem in [
        ({"schema": 2}, "newer than 1"),
        ({"format": "slackline-run"}, "is not a slackline-adapter file"),
        ({"adapter": "os.system"}, "unusable state .unknown adapter"),
        ({"options": {"floor": 1}}, "has no option 'floor'"),
        ({"returns": [1e300]}, "return is 1e\\+300"),
        ({"returns": [1.0, 2.0]}, "unusable state"),
        ({"asked": [[2.0, -1.0]]}, "it must be 2 non-negative numbers"),
        ({"asked": [["x"]]}, "unusable state"),
        ({"asked": [[0.5, 0.5]] * 4, "returns": [1.0] * 4}, "more asks than its budget"),
        ({"budget": "many"}, "budget is 'many'"),
        ({"line": None}, "was saved for another line"),
    ]:
        path.write_text(json.dumps(good | change))
        with pytest.raises(SlacklineError, match=problem) as refusal:
            load_adapter(path, line)
        assert "\n" not in str(refusal.value)
    path.write_text("{")
    with pytest.raises(SlacklineError, match="is not valid JSON"):
        load_adapter(path, line)
    with pytest.raises(SlacklineError, match="no such file"):
        load_adapter(tmp_path / "nowhere.json", line)


def test_adapters_import_neither_jax_nor_polars() -> None:
    """All but the space itself, which is given to them."""
    code = (
        "import sys\n"
        "for name in ('jax', 'polars', 'scipy'): sys.modules[name] = None\n"
        "from slackline.adapt.asktell import AskTell, load_adapter\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
