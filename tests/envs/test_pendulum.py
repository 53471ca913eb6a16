"""Pendulum against Gymnasium's Pendulum-v1, discrete and continuous, and every variation."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.envs.api import Continuous, Discrete
from slackline.envs.pendulum import Pendulum, PendulumParams, PendulumState
from slackline.suites.resolve import suite

CHANGES = {
    "Train": {},
    "Light": {"mass": 0.5},
    "Long": {"length": 1.5},
    "Short": {"length": 0.5},
}
"""The paper's table, written out once more."""


def gymnasium_pendulum(changes: dict[str, float]) -> Any:
    env: Any = gymnasium.make("Pendulum-v1").unwrapped
    env.m, env.l = changes.get("mass", 1.0), changes.get("length", 1.0)
    return env


def torque_of(action: Any) -> np.ndarray:
    """What Gymnasium is given for one of our actions."""
    return np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[[action]] if np.ndim(action) == 0 else action


def some_actions(name: str, rng: np.random.Generator, count: int) -> np.ndarray:
    if name == "pendulum":
        return rng.integers(5, size=count).astype(np.int32)
    return rng.uniform(-2.5, 2.5, (count, 1)).astype(np.float32)  # some beyond the limit


@pytest.mark.parametrize("name", ["pendulum", "pendulum-continuous"])
def test_the_suites_list_the_papers_variations(name: str) -> None:
    found = suite(name)
    assert found.horizon == 200
    assert [v.name for v in found.variations] == list(CHANGES)[1:]
    for variation in found.variations:
        expected = PendulumParams()._replace(**CHANGES[variation.name])
        assert variation.apply(PendulumParams()) == expected
    kind = Discrete(5) if name == "pendulum" else Continuous(1, -2.0, 2.0)
    assert found.env.action == kind


@pytest.mark.usefixtures("strict_dtypes")
@pytest.mark.parametrize("variation", CHANGES)
@pytest.mark.parametrize("name", ["pendulum", "pendulum-continuous"])
def test_steps_as_gymnasium_does(name: str, variation: str) -> None:
    """Along whole episodes, each step from the state that Gymnasium is in."""
    env, params = suite(name).jax_env, suite(name).variation(variation).apply(PendulumParams())
    step = jax.jit(lambda state, action: env.step(jax.random.key(0), state, action, params))
    reference = gymnasium_pendulum(CHANGES[variation])
    rng = np.random.default_rng(7)
    for seed in range(3):
        reference.reset(seed=seed)
        state = PendulumState(*jnp.asarray(reference.state, jnp.float32))
        for action in some_actions(name, rng, 200):
            expected, reward, *_ = reference.step(torque_of(action))
            observation, state, ours, terminated = step(state, jnp.asarray(action))
            np.testing.assert_allclose(observation, expected, atol=2e-5)
            np.testing.assert_allclose(ours, reward, atol=2e-5, rtol=2e-6)
            assert not terminated
            angle, velocity = reference.state
            np.testing.assert_allclose(np.cos(state.angle - angle), 1.0, atol=1e-6)
            assert abs(float(state.angle)) <= np.pi + 1e-6
            # Left alone, rounding would grow at every swing past upright.
            wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
            state = PendulumState(jnp.float32(wrapped), jnp.float32(velocity))


def test_the_velocity_is_cut() -> None:
    reference, env = gymnasium_pendulum({}), Pendulum()
    reference.reset(seed=0)
    reference.state = np.array([1.5, 7.9])
    expected, *_ = reference.step(np.array([2.0]))
    state = PendulumState(jnp.float32(1.5), jnp.float32(7.9))
    observation, *_ = env.step(jax.random.key(0), state, jnp.array([2.0]), PendulumParams())
    assert float(observation[2]) == 8.0 == expected[2]
    np.testing.assert_allclose(observation, expected, rtol=1e-5)


def test_reset_is_uniform() -> None:
    keys = jax.random.split(jax.random.key(0), 2000)
    observations, states = jax.vmap(Pendulum().reset, in_axes=(0, None))(keys, PendulumParams())
    for values, bound in ((states.angle, np.pi), (states.velocity, 1.0)):
        assert np.abs(values).max() <= bound
        np.testing.assert_allclose(np.std(values), 2 * bound / np.sqrt(12), rtol=0.05)
    np.testing.assert_allclose(observations[:, 0], np.cos(states.angle), rtol=1e-4, atol=1e-6)


def test_the_reward_is_gymnasiums_unscaled() -> None:
    """Hanging down without a motor costs π² a step, so a wasted episode scores about −1974."""
    state = PendulumState(jnp.float32(np.pi), jnp.float32(0.0))
    env = suite("pendulum").jax_env
    _, _, reward, _ = env.step(jax.random.key(0), state, jnp.int32(2), PendulumParams())
    assert float(reward) == pytest.approx(-(np.pi**2), rel=1e-5)
    assert suite("pendulum").display_scale == 0.1
    assert "divided by 10" in suite("pendulum").note
