"""Acrobot against Gymnasium's Acrobot-v1, the standard and every variation."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.envs.acrobot import Acrobot, AcrobotParams, AcrobotState
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN

ENV = Acrobot()
SUITE = suite("acrobot")
PARAMS = AcrobotParams()
GYMNASIUM_NAMES = {
    "mass": ("LINK_MASS_1", "LINK_MASS_2"),
    "length": ("LINK_LENGTH_1", "LINK_LENGTH_2"),
    "inertia": ("LINK_MOI",),
}
CHANGES = {
    "Train": {},
    "Heavy": {"mass": 1.5},
    "HighInertia": {"inertia": 1.5},
    "Light": {"mass": 0.5},
    "Long": {"length": 1.5},
    "LowInertia": {"inertia": 0.5},
    "Short": {"length": 0.5},
}
"""The paper's table, written out once more."""


def gymnasium_acrobot(changes: dict[str, float]) -> Any:
    env: Any = gymnasium.make("Acrobot-v1").unwrapped
    for field, value in changes.items():
        for name in GYMNASIUM_NAMES[field]:
            setattr(env, name, value)
    env.reset(seed=0)
    return env


def replay(env: Any, states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """Gymnasium's (observations, states, rewards, terminated) after one step from each state."""
    rows = []
    for state, action in zip(states, actions, strict=True):
        env.state = state.astype(np.float64)
        observation, reward, terminated, _, _ = env.step(int(action))
        rows.append((observation, env.state, reward, terminated))
    return tuple(map(np.asarray, zip(*rows, strict=True)))


def visited(env: Any, rng: np.random.Generator, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """States along one random Gymnasium episode, and the actions taken in them."""
    env.reset(seed=int(rng.integers(2**31)))
    actions, states = rng.integers(3, size=steps), []
    for action in actions:
        states.append(env.state)
        env.step(int(action))
    return np.array(states), actions


def anywhere(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """States from the whole space: angles wrap, velocities are cut, the line is reached."""
    bound = np.pi * np.array([1, 1, 4, 9])
    return rng.uniform(-bound, bound, (count, 4)), rng.integers(3, size=count)


def test_the_suite_lists_the_papers_variations() -> None:
    assert SUITE.horizon == 500
    assert [v.name for v in SUITE.variations] == list(CHANGES)[1:]
    assert SUITE.variation("Short").description == "length = 0.5"


def both(name: str, dtype: Any) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[Any, ...]]:
    """(states, Gymnasium's results, ours) from the same states with the same actions."""
    rng = np.random.default_rng(sorted(CHANGES).index(name))
    reference = gymnasium_acrobot(CHANGES[name])
    parts = [visited(reference, rng, 300), visited(reference, rng, 300), anywhere(rng, 600)]
    states, actions = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    states = states.astype(np.float32)
    step = jax.jit(jax.vmap(ENV.step, in_axes=(None, 0, 0, None)))
    ours = step(
        jax.random.key(0),
        AcrobotState(*jnp.asarray(states.T, dtype)),
        jnp.asarray(actions, jnp.int32),
        SUITE.variation(name).apply(AcrobotParams()),
    )
    return states, replay(reference, states, actions), ours


@pytest.mark.parametrize("name", CHANGES)
def test_steps_as_gymnasium_does(name: str) -> None:
    """In double precision, as Gymnasium computes, nothing may differ."""
    with jax.enable_x64(True):
        _, (observations, after, rewards, terminated), ours = both(name, jnp.float64)
    np.testing.assert_allclose(np.stack(ours[1], axis=-1), after, atol=1e-9)
    np.testing.assert_allclose(ours[0], observations, rtol=1e-6, atol=1e-6)  # theirs is float32
    np.testing.assert_array_equal(ours[2], rewards)
    np.testing.assert_array_equal(ours[3], terminated)
    assert terminated.any()
    assert not terminated.all()
    assert (np.abs(after[:, 2]) == 4 * np.pi).any(), "no state where the velocity is cut"


@pytest.mark.usefixtures("strict_dtypes")
@pytest.mark.parametrize("name", CHANGES)
def test_single_precision_is_enough(name: str) -> None:
    states, (observations, *_), ours = both(name, jnp.float32)
    assert all(leaf.dtype == jnp.float32 for leaf in (ours[0], *ours[1], ours[2]))
    fastest = np.abs(states[:, 2:]).max(axis=1, keepdims=True)  # fast arms magnify rounding
    np.testing.assert_allclose(ours[0] / (1 + fastest), observations / (1 + fastest), atol=5e-4)
    slow = fastest[:, 0] < 2.0
    np.testing.assert_allclose(ours[0][slow], observations[slow], atol=2e-5)


def test_an_episode_stays_with_gymnasium() -> None:
    """Without putting the state back: errors must not build up over four seconds."""
    reference = gymnasium_acrobot({})
    step = jax.jit(lambda state, action: ENV.step(jax.random.key(0), state, action, PARAMS))
    actions = np.random.default_rng(0).integers(3, size=20)
    state = AcrobotState(*jnp.asarray(reference.state))
    for action in actions:
        expected, *_ = reference.step(int(action))
        observation, state, reward, terminated = step(state, jnp.int32(action))
        np.testing.assert_allclose(observation, expected, atol=1e-3)
        assert (float(reward), bool(terminated)) == (-1.0, False)


def test_reset_hangs_down_with_noise() -> None:
    keys = jax.random.split(jax.random.key(0), 1000)
    observations, states = jax.vmap(ENV.reset, in_axes=(0, None))(keys, AcrobotParams())
    values = np.stack(states, axis=-1)
    assert np.abs(values).max() <= 0.1
    np.testing.assert_allclose(values.std(axis=0), 0.2 / np.sqrt(12), rtol=0.1)
    np.testing.assert_allclose(observations[:, 1], np.sin(values[:, 0]), rtol=1e-5)
    np.testing.assert_allclose(observations[:, 4:], values[:, 2:])


def test_energy_is_kept_without_a_motor() -> None:
    """E = ½ θ̇ᵀ M(θ) θ̇ + potential is constant but for the integrator's error."""

    def energy(state: AcrobotState) -> float:
        a, b, u, v = map(float, state)
        m11 = 0.25 + (1 + 0.25 + np.cos(b)) + 2
        m12, m22 = 0.25 + 0.5 * np.cos(b) + 1, 0.25 + 1
        kinetic = 0.5 * (m11 * u * u + 2 * m12 * u * v + m22 * v * v)
        return kinetic - 9.8 * (1.5 * np.cos(a) + 0.5 * np.cos(a + b))

    params = AcrobotParams(time_step=0.02)
    state = AcrobotState(*map(jnp.float32, (1.0, -0.5, 0.3, 0.2)))
    step = jax.jit(lambda state: ENV.step(jax.random.key(0), state, jnp.int32(1), params)[1])
    before = energy(state)
    for _ in range(200):
        state = step(state)
    assert energy(state) == pytest.approx(before, abs=1e-3)


def test_variations_change_only_what_they_say() -> None:
    for name, changes in CHANGES.items():
        variation = TRAIN if name == "Train" else SUITE.variation(name)
        assert variation.apply(AcrobotParams()) == AcrobotParams()._replace(**changes)
