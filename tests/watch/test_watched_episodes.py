"""Episodes that are watched are those of the plain policies, and stand still after their end."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import slackline as sl
from slackline.envs.cartpole import CartPole, CartPoleState
from slackline.rollout import CompiledRunner, Film, Fixed, Jobs, Played
from slackline.suites.resolve import suite
from slackline.watch.episodes import Episodes, episodes_of, run_episodes

HORIZON = 60


@pytest.fixture(scope="module")
def filmed() -> Episodes:
    """Two policies: one always pushes to the right, the other to the left."""
    runner = CompiledRunner(Fixed(CartPole(), CartPole().default_params()), HORIZON)
    sides, keys = jnp.array([[1], [0]]), jnp.broadcast_to(jax.random.key(3), 2)

    def run() -> Played:
        return runner.episodes(lambda _, z: z[:, 0], Jobs((), sides, keys), Film(HORIZON))

    return episodes_of(jax.jit(run)())


def test_all_policies_start_alike_and_part(filmed: Episodes) -> None:
    states = filmed.states
    assert states.angle.shape == (HORIZON + 1, 2)
    assert filmed.rewards.shape == (HORIZON, 2)
    for leaf in states:
        assert leaf[0, 0] == leaf[0, 1]
    assert states.velocity[5, 0] > 0 > states.velocity[5, 1]


def test_states_are_those_of_the_environment_step_by_step(filmed: Episodes) -> None:
    states, length = filmed.states, int(filmed.lengths[0])
    env = CartPole()
    params = env.default_params()
    state = jax.tree.map(lambda leaf: leaf[0, 0], states)
    for time in range(length):
        _, state, _, over = env.step(jax.random.key(0), state, jnp.int32(1), params)
        for ours, theirs in zip(states, state, strict=True):
            np.testing.assert_allclose(ours[time + 1, 0], theirs, rtol=1e-5, atol=1e-6)
        assert bool(over) == (time == length - 1)


def test_nothing_moves_and_nothing_is_earned_after_the_end(filmed: Episodes) -> None:
    for k in range(2):
        length = int(filmed.lengths[k])
        assert 5 < length < 20
        assert filmed.rewards[:, k].sum() == length
        assert filmed.terminated[k]
        for leaf in filmed.states:
            assert (leaf[length:, k] == leaf[length, k]).all()


@pytest.mark.parametrize("method", ["single", "lop", "diayn_r"])
def test_each_policy_is_the_plain_one_at_its_z(method: str) -> None:
    line = sl.train("cartpole", method=method, steps=3200)
    zs = line.method.latent.candidates(2)
    longer = suite("cartpole").variation("LongPole")
    found = run_episodes(line, longer, zs)
    env = CartPole()
    params = longer.apply(env.default_params())
    for k, z in enumerate(zs):
        policy = line.at(z)
        for time in range(int(found.lengths[k])):
            before = jax.tree.map(lambda leaf, k=k, time=time: leaf[time, k], found.states)
            action = jnp.asarray(policy(np.array(before)))
            _, after, _, _ = env.step(jax.random.key(0), before, action, params)
            for ours, theirs in zip(found.states, after, strict=True):
                np.testing.assert_allclose(ours[time + 1, k], theirs, rtol=1e-5, atol=1e-6)


def test_returns_until_a_step_and_the_past_of_one_policy() -> None:
    rewards = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    leaf: Any = np.arange(8.0).reshape(4, 2)
    states = CartPoleState(leaf, leaf, leaf, leaf)
    found = Episodes(states, rewards, np.array([3, 2]), np.array([False, True]))
    np.testing.assert_array_equal(found.returns, [9.0, 6.0])
    np.testing.assert_array_equal(found.return_until(2), [4.0, 6.0])
    np.testing.assert_array_equal(found.return_until(0), [0.0, 0.0])
    np.testing.assert_array_equal(found.past(1, 2).angle, [1.0, 3.0, 5.0])
