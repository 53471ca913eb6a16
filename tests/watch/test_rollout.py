"""Episodes that are watched are those of the plain policies, and stand still after their end."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.envs.cartpole import CartPole, CartPoleState
from slackline.networks import MLP, Layer
from slackline.suites import suite
from slackline.watch.rollout import Episodes, roll_out

HORIZON = 60


def leaning(direction: float) -> MLP:
    """A network that always pushes to one side."""
    weight, bias = np.zeros((1, 4, 2), np.float32), np.array([[0.0, direction]], np.float32)
    return MLP((Layer(jnp.asarray(weight), jnp.asarray(bias)),))


@pytest.fixture(scope="module")
def rolled() -> tuple[CartPoleState, np.ndarray, np.ndarray]:
    networks = jax.tree.map(lambda *leaves: jnp.stack(leaves), leaning(1.0), leaning(-1.0))
    params = jax.tree.map(jnp.asarray, suite("cartpole").jax_env.default_params())
    run = jax.jit(roll_out, static_argnums=(0, 1))
    return jax.tree.map(np.asarray, run(CartPole(), HORIZON, networks, params, jax.random.key(3)))


def test_all_policies_start_alike_and_part(rolled) -> None:
    states, rewards, ended = rolled
    assert states.angle.shape == (HORIZON + 1, 2)
    assert rewards.shape == ended.shape == (HORIZON, 2)
    for leaf in states:
        assert leaf[0, 0] == leaf[0, 1]
    assert states.velocity[5, 0] > 0 > states.velocity[5, 1]


def test_states_are_those_of_the_environment_step_by_step(rolled) -> None:
    states, _, ended = rolled
    env = CartPole()
    params = env.default_params()
    state = jax.tree.map(lambda leaf: leaf[0, 0], states)
    for time in range(int(ended[:, 0].argmax()) + 1):
        _, state, _, over = env.step(jax.random.key(0), state, jnp.int32(1), params)
        for ours, theirs in zip(states, state, strict=True):
            np.testing.assert_allclose(ours[time + 1, 0], theirs, rtol=1e-5, atol=1e-6)
        assert bool(over) == ended[time, 0]


def test_nothing_moves_and_nothing_is_earned_after_the_end(rolled) -> None:
    states, rewards, ended = rolled
    for k in range(2):
        length = int(ended[:, k].argmax()) + 1
        assert 5 < length < 20
        assert rewards[:, k].sum() == length
        assert ended[length - 1 :, k].all()
        for leaf in states:
            assert (leaf[length:, k] == leaf[length, k]).all()


def test_returns_until_a_step_and_the_past_of_one_policy() -> None:
    rewards = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    leaf: Any = np.arange(8.0).reshape(4, 2)
    states = CartPoleState(leaf, leaf, leaf, leaf)
    found = Episodes(states, rewards, np.array([3, 2]), np.array([False, True]))
    np.testing.assert_array_equal(found.returns, [9.0, 6.0])
    np.testing.assert_array_equal(found.return_until(2), [4.0, 6.0])
    np.testing.assert_array_equal(found.return_until(0), [0.0, 0.0])
    np.testing.assert_array_equal(found.past(1, 2).angle, [1.0, 3.0, 5.0])
