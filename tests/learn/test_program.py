"""The program around the learner: strides and devices do not matter, ensembles are independent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from probes import Exploding

from slackline.envs.brax import HalfCheetah
from slackline.envs.cartpole import CartPole
from slackline.envs.pendulum import Pendulum
from slackline.io.tensors import to_tensors
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner
from slackline.learn.program import Program, Progress
from slackline.methods.catalogue import CATALOGUE
from slackline.parallel.mesh import SEED, WHOLE, Layout, compiled, layout_of

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


def on_devices(num: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "local_device_count", lambda: num)


def test_seeds_on_other_devices_learn_the_same(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    two, _ = program.advance(program.init(), 10)
    assert len(two.running.elapsed.sharding.device_set) == 2
    on_devices(1, monkeypatch)
    alone = Program(LEARNER, HYPER, [0, 7])
    one, _ = alone.advance(alone.init(), 10)
    assert len(one.running.elapsed.sharding.device_set) == 1
    for a, b in zip(leaves(two), leaves(one), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


BLOCKY = replace(
    HYPER,
    num_envs=16,
    num_steps=8,
    block=4,
    normalise_advantage=True,
    normalise_observation=True,
    action_std=0.3,
)


@pytest.mark.parametrize("method", ["lop", "diayn_r"])
def test_blocks_on_other_devices_learn_the_same(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One seed on 1, 2 and 4 devices: the same z's, and the same curves up to rounding."""
    learner = Learner(Pendulum(), 20, CATALOGUE[method])
    curves, zs, states = {}, {}, {}
    for num in (1, 2, 4):
        on_devices(num, monkeypatch)
        program = Program(learner, BLOCKY, [3])
        state, curve = program.init(), []
        for _ in range(6):
            state, progress = program.advance(state, 1)
            curve.append(np.stack([*progress.losses, *progress.episodes]))
        assert len(state.running.z.sharding.device_set) == num
        curves[num], zs[num], states[num] = np.stack(curve), np.asarray(state.running.z), state
    assert curves[1][:, 5].sum() == 32  # episodes ended, so z's were drawn anew
    for num in (2, 4):
        np.testing.assert_array_equal(zs[num], zs[1])
        np.testing.assert_allclose(curves[num], curves[1], rtol=2e-3, atol=2e-3)
        for a, b in zip(leaves(states[num]), leaves(states[1]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-2)


def test_a_robot_learns_the_same_on_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner(HalfCheetah(), 5, CATALOGUE["lop"])
    found = {}
    for num in (1, 2, 4):
        on_devices(num, monkeypatch)
        program = Program(learner, BLOCKY, [3])
        state, progress = program.advance(program.init(), 2)
        assert len(state.running.z.sharding.device_set) == num
        assert (np.asarray(progress.episodes.count) > 0).all(), "z's were drawn anew"
        found[num] = (state.running.z, state.moments, progress.losses)
    for num in (2, 4):
        np.testing.assert_array_equal(found[num][0], found[1][0])
        for a, b in zip(leaves(found[num]), leaves(found[1]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3)


def test_seeds_in_turn_are_seeds_alone() -> None:
    """With several blocks each, copies follow one another on a device and share nothing."""
    learner = Learner(Pendulum(), 20, CATALOGUE["lop"])
    together = Program(learner, BLOCKY, range(8))
    assert layout_of(8, BLOCKY.num_blocks) == Layout(seeds=4, blocks=1, side_by_side=False)
    state, progress = together.advance(together.init(), 2)
    alone = Program(learner, BLOCKY, [5])
    own, own_progress = alone.advance(alone.init(), 2)
    for a, b in zip(leaves((state, progress)), leaves((own, own_progress)), strict=True):
        np.testing.assert_allclose(a[5:6], b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("copies", "blocks", "devices", "expected"),
    [
        (1, 1, 4, (1, 1, True)),
        (6, 1, 4, (3, 1, True)),
        (1, 16, 4, (1, 4, False)),
        (2, 16, 4, (2, 2, False)),
        (5, 16, 2, (1, 2, False)),
        (6, 16, 2, (2, 1, False)),
        (1, 3, 2, (1, 1, False)),
    ],
)
def test_as_many_devices_as_can_be_used(
    copies: int,
    blocks: int,
    devices: int,
    expected: tuple[int, int, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_devices(devices, monkeypatch)
    assert layout_of(copies, blocks) == expected


def test_the_first_unsound_step_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns infinite at its 5th step, and what comes later does not hide that."""
    on_devices(2, monkeypatch)
    learner = Learner(Exploding(), 20, CATALOGUE["single"])
    hyper = replace(BLOCKY, num_steps=2, minibatches=1, epochs=1)
    program = Program(learner, hyper, [0])
    for iterations, sound in ((1, 2), (2, 4), (3, 4), (5, 4)):
        _, progress = program.advance(program.init(), iterations)
        assert int(progress.episodes.sound[0]) == sound


@pytest.mark.parametrize(("num_seeds", "devices"), [(1, 1), (2, 2), (3, 3), (6, 3), (4, 4)])
def test_seeds_are_split_over_as_many_devices_as_divide_them(num_seeds: int, devices: int) -> None:
    layout = layout_of(num_seeds)
    double = compiled(lambda x, factor: x * factor, layout, (SEED, WHOLE), SEED)
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
    weights = np.asarray(jax.tree.leaves(both.networks.policy)[0]).reshape(6, -1)
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
