"""Analyses that play episodes, where the return of every z is known."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from known import acting_alike, line, return_of, single

from slackline.analyses.along_z import AlongZ
from slackline.analyses.classifier import Classifier
from slackline.analyses.shots import Shots, best_so_far, first_of_each, random_zs
from slackline.analyses.sweep import Sweep, holds, spans
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE
from slackline.suites.knobs import knob_named, knobs_of
from slackline.suites.suite import Suite

LINE, SINGLE = CATALOGUE["lop"].title, CATALOGUE["single"].title
TARGETS = {"Low": -0.9, "Middle": 1.1, "High": 2.9}


# Return against K


def test_the_best_of_the_first_k() -> None:
    returns = np.array([[3.0, 1.0, 3.0, 4.0], [-1.0, -2.0, -0.5, -0.5]])
    np.testing.assert_array_equal(best_so_far(returns), [[0, 0, 0, 3], [0, 0, 2, 2]])


def test_each_of_those_that_were_kept_is_played_once() -> None:
    kept = np.array([[[5, 5, 2, 5]], [[1, 1, 1, 1]]])
    distinct, which = first_of_each(kept)
    np.testing.assert_array_equal(distinct, [[[2, 5]], [[1, 1]]])
    np.testing.assert_array_equal(np.take_along_axis(distinct, which, axis=2), kept)


def test_the_return_at_k_is_that_of_the_best_random_z() -> None:
    kind, subject = Shots(most=8, draws=3, points=101), line()
    found = kind.of([subject, single()], list(TARGETS)).numbers[LINE]
    zs = np.stack([random_zs(each, 3, 8) for each in subject.subspaces])[..., 0]
    for v, target in enumerate(TARGETS.values()):
        best = np.maximum.accumulate(return_of(zs, target), axis=-1).mean(axis=1)
        np.testing.assert_allclose(found["by_shots"][:, v], best, rtol=1e-4, atol=1e-4)
        oracle = return_of(np.linspace(0, 1, 101), target).max()
        np.testing.assert_allclose(found["oracle"][:, v], oracle, rtol=1e-4, atol=1e-4)


def test_more_shots_never_return_less_where_nothing_is_random() -> None:
    found = Shots(most=20, draws=2, points=11).of([line()], ["Low"]).numbers[LINE]
    assert (np.diff(found["by_shots"], axis=-1) >= -1e-6).all()


def test_finitely_many_policies_come_once_each() -> None:
    members = CATALOGUE["ensemble"].latent.size
    subspace = acting_alike("ensemble", tuple(np.linspace(-1, 1, members)))
    zs = random_zs(subspace, 4, 100)
    assert zs.shape == (4, members, members)
    np.testing.assert_array_equal(zs.sum(axis=1), 1.0)


# Along z


def test_regret_and_the_worst_episode_are_the_known_ones() -> None:
    found = AlongZ(points=101, shots=3).of([line(), single()], list(TARGETS)).numbers[LINE]
    tried, dense = np.linspace(0, 1, 3), np.linspace(0, 1, 101)
    for v, target in enumerate(TARGETS.values()):
        best, chosen = return_of(dense, target).max(), return_of(tried, target).max()
        np.testing.assert_allclose(found["returns"][0, v], return_of(dense, target), atol=1e-3)
        np.testing.assert_allclose(found["regret"][:, v], best - chosen, atol=1e-3)
        np.testing.assert_allclose(
            found["worst_episode"][:, v], return_of(tried, target).min(), rtol=1e-4
        )


# The classifier


def test_a_classifier_tells_apart_what_is_apart_and_nothing_else() -> None:
    kind = Classifier(interactions=1000, passes=20, learning_rate=0.02, moments=4)
    apart = np.arange(5.0)[:, None, None] + np.zeros((1, 5, 200, 2))
    alike = np.random.default_rng(0).normal(size=(2, 1, 5, 200, 2))
    assert np.asarray(kind.learn(apart, apart))[0, -1] > 0.95
    guessing = np.asarray(kind.learn(alike[0], alike[1]))[0, -1]
    assert abs(guessing - 0.2) < 0.06


def test_states_are_collected_from_as_many_episodes_as_it_takes() -> None:
    """An episode of Aim has one step, and what is seen is always 1: all policies look alike."""
    kind = Classifier(interactions=50, passes=1, batch=10, moments=2)
    found = kind.of([line()], ["Low"])
    assert found.numbers[LINE]["environments"] == ["Train", "Low"]
    np.testing.assert_allclose(found.numbers[LINE]["accuracy"], 0.2)
    with pytest.raises(SlacklineError, match="with one policy; there is nothing to tell apart"):
        kind.of([single()])


# Sweeps


def test_stretches_that_hold_end_where_straight_lines_cross() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0])
    assert holds(values, np.array([0.0, 2.0, 2.0, 0.0]), 1.0) == [(0.5, 2.5)]
    assert holds(values, np.array([2.0, 0.0, 0.0, 4.0]), 1.0) == [(0.0, 0.5), (2.25, 3.0)]
    assert holds(values, np.zeros(4), 1.0) == []
    assert spans([], values) == "nowhere"
    assert spans([(0.0, 3.0)], values) == "0 to 3 (all that was tried)"
    assert spans([(0.0, 0.5), (2.25, 3.0)], values) == "0 to 0.5, 2.25 to 3"


def test_a_line_holds_where_one_of_its_policies_does() -> None:
    kind = Sweep("target", -0.5, 1.5, points=5, shots=21)
    found = kind.of([line(), single()]).numbers
    targets = 2.0 * np.linspace(-0.5, 1.5, 5)  # factors of 2, its value in training
    for p, target in enumerate(targets):
        best = return_of(np.linspace(0, 1, 21), target).max()
        np.testing.assert_allclose(found["runs"][LINE]["adapted"][:, p], best, atol=1e-3)
    alone = -((1.0 + 2.0 * np.tanh(0.5) - targets) ** 2)
    np.testing.assert_allclose(found["runs"][SINGLE]["adapted"][0], alone, rtol=1e-3, atol=1e-4)
    # The single policy misses by a little unchanged; broken is half as much again.
    unchanged = -((2.0 * np.tanh(0.5) - 1.0) ** 2)
    assert found["broken_below"] == pytest.approx(1.5 * unchanged, rel=1e-3)


def test_values_themselves_instead_of_factors() -> None:
    suite = line().suite
    usual = suite.jax_env.default_params()
    assert knob_named(suite, "target").at(0.5)(usual).target == 1.0
    assert knob_named(suite, "target", absolute=True).at(0.5)(usual).target == 0.5
    assert knob_named(suite, "noise").at(0.5)(usual).noise == 0.5, "it is 0 in training"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"change": "gravity"}, "unknown change of aim 'gravity'"),
        ({"start": 2.0}, "from is 2 and to is 2; from must be less than to"),
    ],
)
def test_a_sweep_that_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SlacklineError, match=says):
        Sweep(**{"change": "target", "start": 1.0, "stop": 2.0, **given}).of([line()])


@pytest.mark.parametrize("name", ["cartpole", "acrobot", "pendulum", "pendulum-continuous"])
def test_every_knob_changes_just_what_it_names(name: str) -> None:
    from slackline.suites import builtin

    suite = builtin(name)
    usual, knobs = suite.jax_env.default_params(), knobs_of(suite)
    assert knobs
    for knob in knobs.values():
        changed = knob.variation(1.25).apply(usual)
        assert [f for f in usual._fields if getattr(usual, f) != getattr(changed, f)] == [knob.name]


@pytest.mark.parametrize("name", ["halfcheetah", "halfcheetah-hard", "ant", "halfcheetah-mujoco"])
def test_knobs_of_robots(name: str) -> None:
    pytest.importorskip("brax")
    pytest.importorskip("envpool")
    from slackline.suites import builtin

    suite: Suite = builtin(name)
    knobs = knobs_of(suite)
    assert {"gravity", "friction", "dead_sensors"} <= set(knobs)
    assert ("torso" in knobs) == name.startswith("halfcheetah")
    assert ("latency" in knobs) == name.endswith("hard")
    usual = suite.env.default_params()
    for knob in knobs.values():
        value = 1.0 if knob.whole else 0.5
        changed = knob.variation(value).apply(usual)
        pairs = zip(jax.tree.leaves(changed), jax.tree.leaves(usual), strict=False)
        differs = [not np.array_equal(a, b) for a, b in pairs]
        assert any(differs) or len(jax.tree.leaves(changed)) != len(jax.tree.leaves(usual))


def test_latency_is_counted_in_whole_steps() -> None:
    pytest.importorskip("brax")
    from slackline.suites import builtin

    with pytest.raises(SlacklineError, match=r"latency is 1.5; it must be a whole number"):
        knobs_of(builtin("halfcheetah-hard"))["latency"].variation(1.5)
