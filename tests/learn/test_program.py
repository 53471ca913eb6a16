"""The program around the learner: strides and devices do not matter, ensembles are independent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from slackline.envs.cartpole import CartPole
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner
from slackline.learn.program import Program, Progress, over_seeds
from slackline.methods.catalogue import CATALOGUE
from slackline.store.files import to_tensors

HYPER = replace(
    Hyper(algorithm="ppo"),
    num_envs=4,
    num_steps=4,
    epochs=2,
    minibatches=2,
    hidden=(4,),
    critic_hidden=(4,),
)
LEARNER = Learner(CartPole(), 50, CATALOGUE["lop"])


def leaves(tree: Any) -> list[np.ndarray]:
    return list(to_tensors(tree).values())


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(LEARNER, HYPER, [0, 7])


def test_strides_do_not_matter(program: Program) -> None:
    whole, progress = program.advance(program.init(), 10)
    part, first = program.advance(program.init(), 3)
    part, second = program.advance(part, 7)
    for a, b in zip(leaves(whole), leaves(part), strict=True):
        np.testing.assert_array_equal(a, b)
    sums = jax.tree.map(np.add, first.episodes, second.episodes)
    for a, b in zip(leaves(progress.episodes), leaves(sums), strict=True):
        np.testing.assert_allclose(a, b)
    means = jax.tree.map(lambda x, y: 0.3 * np.asarray(x) + 0.7 * np.asarray(y), first, second)
    for a, b in zip(leaves(progress.losses), leaves(means.losses), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_every_step_is_counted(program: Program) -> None:
    """Steps taken = steps of the episodes that ended + those of the ones still running."""
    state, progress = program.advance(program.init(), 10)
    total = np.asarray(progress.episodes.length_sum) + np.asarray(state.running.elapsed).sum(
        axis=(1, 2)
    )
    np.testing.assert_array_equal(total, 10 * HYPER.steps_per_iteration)


def test_devices_do_not_matter(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jax.local_device_count() == 2
    two, _ = program.advance(program.init(), 10)
    assert len(two.running.elapsed.sharding.device_set) == 2
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    alone = Program(replace(LEARNER, env=CartPole()), HYPER, [0, 7])  # another to the cache
    one, _ = alone.advance(alone.init(), 10)
    assert len(one.running.elapsed.sharding.device_set) == 1
    for a, b in zip(leaves(two), leaves(one), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("num_seeds", "devices"), [(1, 1), (2, 2), (3, 1), (4, 2)])
def test_seeds_are_split_over_as_many_devices_as_divide_them(num_seeds: int, devices: int) -> None:
    double = over_seeds(num_seeds, lambda x, factor: x * factor, "s-")
    result = double(np.arange(float(num_seeds), dtype=np.float32), np.float32(2.0))
    assert len(result.sharding.device_set) == devices
    np.testing.assert_array_equal(result, 2.0 * np.arange(num_seeds))


def test_shapes_are_those_of_the_state(program: Program) -> None:
    state, shapes = program.init(), program.shapes()
    assert jax.tree.structure(state) == jax.tree.structure(shapes)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(shapes), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


def test_members_of_an_ensemble_start_apart() -> None:
    """Seeds × members copies, no two alike; a seed's members do not depend on the other seeds."""
    learner = Learner(CartPole(), 50, CATALOGUE["ensemble"].member)
    both = Program(learner, HYPER, [0, 1], members=3).init()
    second = Program(learner, HYPER, [1], members=3).init()
    weights = np.asarray(both.networks.policy.layers[0].weight).reshape(6, -1)
    assert len(np.unique(weights, axis=0)) == 6
    for a, b in zip(leaves(both), leaves(second), strict=True):
        np.testing.assert_array_equal(a[3:], b)
    observations = np.asarray(both.running.observation).reshape(6, -1)
    assert len(np.unique(observations, axis=0)) == 6


def test_progress_is_per_seed(program: Program) -> None:
    _, progress = program.advance(program.init(), 5)
    assert isinstance(progress, Progress)
    assert all(leaf.shape == (2,) for leaf in jax.tree.leaves(progress))
    assert np.asarray(progress.losses.critic)[0] != np.asarray(progress.losses.critic)[1]
