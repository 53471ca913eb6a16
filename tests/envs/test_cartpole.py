"""CartPole against Gymnasium's CartPole-v1, the standard and every variation."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.envs.cartpole import CartPole, CartPoleParams, CartPoleState
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN, setting

ENV, SUITE = CartPole(), suite("cartpole")
CHANGES = {
    "Train": {},
    "HeavyPole": {"masspole": 1.0},
    "LightPole": {"masspole": 0.001},
    "LongPole": {"length": 1.0},
    "ShortPole": {"length": 0.05},
    "StrongPush": {"force_mag": 20.0},
    "WeakPush": {"force_mag": 1.0},
}
"""The paper's table in Gymnasium's names, written out once more."""
NUM_EPISODES, NUM_STEPS = 40, 30
NEAR = 1e-5
"""So close to a limit, single and double precision may disagree on which side a state is."""

step = jax.jit(ENV.step)
step_many = jax.jit(jax.vmap(ENV.step, in_axes=(None, 0, 0, None)))


def gymnasium_cartpole(changes: dict[str, float]) -> Any:
    env: Any = gymnasium.make("CartPole-v1").unwrapped
    for name, value in changes.items():
        setattr(env, name, value)
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length
    env.reset(seed=0)
    return env


def params_of(name: str) -> CartPoleParams:
    return SUITE.variation(name).apply(ENV.default_params())


def visited(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Our (states, actions, next states, fallen) along random episodes, (num, ...)."""
    params, key = params_of(name), jax.random.key(0)
    resets = jax.random.split(jax.random.key(1), NUM_EPISODES)
    _, state = jax.vmap(ENV.reset, in_axes=(0, None))(resets, params)
    # A push that rarely changes drives some episodes over the edges.
    wiggly = np.random.default_rng(0).integers(2, size=(NUM_STEPS, NUM_EPISODES))
    stubborn = np.broadcast_to(np.arange(NUM_EPISODES) % 2, wiggly.shape)
    actions = np.where(np.arange(NUM_EPISODES) % 4 < 2, wiggly, stubborn)
    rows = []
    for action in actions:
        observation, after, reward, fallen = step_many(key, state, jnp.asarray(action), params)
        np.testing.assert_array_equal(observation, np.stack(after, axis=-1))
        np.testing.assert_array_equal(reward, np.ones(NUM_EPISODES))
        rows.append((np.stack(state, axis=-1), action, observation, fallen))
        state = after
    states, taken, observations, fallen = (np.concatenate(x) for x in zip(*rows, strict=True))
    return states, taken, observations, fallen


def test_the_suite_lists_the_papers_variations() -> None:
    assert {v.name for v in (*SUITE.variations, TRAIN)} == set(CHANGES)
    assert SUITE.horizon == 200


@pytest.mark.parametrize("name", CHANGES)
def test_steps_as_gymnasium_does(name: str) -> None:
    reference = gymnasium_cartpole(CHANGES[name])
    skipped, falls = 0, 0
    states, actions, observations, fallen = visited(name)
    for state, action, observation, fell in zip(states, actions, observations, fallen, strict=True):
        reference.state = state.astype(np.float64)
        reference.steps_beyond_terminated = None
        expected, _, terminated, _, _ = reference.step(int(action))
        scale = 1.0 + np.abs(expected)
        np.testing.assert_allclose(observation / scale, expected / scale, rtol=0, atol=3e-6)
        angle, position = abs(reference.state[2]), abs(reference.state[0])
        gap = min(
            abs(angle - reference.theta_threshold_radians), abs(position - reference.x_threshold)
        )
        if gap < NEAR:
            skipped += 1
        else:
            assert fell == terminated
        falls += bool(terminated)
    assert skipped < 0.01 * len(states)
    assert 0.02 * len(states) < falls < 0.98 * len(states) or name == "WeakPush"


@pytest.mark.parametrize("name", CHANGES)
def test_episodes_stay_with_gymnasium(name: str) -> None:
    """Without correcting the state on the way, to the end; the two never drift apart."""
    params, reference = params_of(name), gymnasium_cartpole(CHANGES[name])
    generator = np.random.default_rng(1)
    lengths = set()
    for seed in range(5):
        observation, state = ENV.reset(jax.random.key(seed), params)
        reference.reset(seed=0)
        reference.state = np.asarray(observation, np.float64)
        for time in range(100):
            action = int(generator.integers(2))
            observation, state, _, fell = step(jax.random.key(0), state, jnp.int32(action), params)
            expected, _, terminated, _, _ = reference.step(action)
            np.testing.assert_allclose(observation, expected, rtol=1e-3, atol=1e-3)
            assert bool(fell) == terminated
            if terminated:
                lengths.add(time)
                break
    assert lengths


def test_falls_at_twelve_degrees_and_at_the_edges() -> None:
    def fallen(position: float, degrees: float) -> bool:
        state = CartPoleState(*map(jnp.float32, (position, 0.0, np.deg2rad(degrees), 0.0)))
        return bool(ENV.step(jax.random.key(0), state, jnp.int32(1), CartPoleParams())[3])

    assert not fallen(0.0, 11.9)
    assert not fallen(0.0, -11.9)
    assert fallen(0.0, 12.1)
    assert fallen(0.0, -12.1)
    assert not fallen(2.39, 0.0)
    assert fallen(2.41, 0.0)
    assert fallen(-2.41, 0.0)


def test_reset_is_uniform_near_rest() -> None:
    keys = jax.random.split(jax.random.key(0), 2000)
    observation, state = jax.vmap(ENV.reset, in_axes=(0, None))(keys, CartPoleParams())
    np.testing.assert_array_equal(observation, np.stack(state, axis=-1))
    assert np.abs(observation).max() <= 0.05
    np.testing.assert_allclose(observation.mean(axis=0), np.zeros(4), atol=0.005)
    np.testing.assert_allclose(observation.std(axis=0), 0.1 / 12**0.5, rtol=0.05)


MOVING = CartPoleState(*map(jnp.float32, (0.1, -0.3, 0.05, 0.4)))
PHYSICS = ("gravity", "cart_mass", "pole_mass", "length", "force", "time_step")


@pytest.mark.parametrize("field", PHYSICS)
def test_changing_a_constant_changes_the_next_state_and_setting_it_as_it_was_does_not(
    field: str,
) -> None:
    key, push, standard = jax.random.key(0), jnp.int32(1), CartPoleParams()
    before = np.asarray(step(key, MOVING, push, standard)[0])
    value = getattr(standard, field)
    same = setting("Same", **{field: value}).apply(standard)
    np.testing.assert_array_equal(step(key, MOVING, push, same)[0], before)
    twice = setting("Twice", **{field: 2.0 * value}).apply(standard)
    assert (np.asarray(step(key, MOVING, push, twice)[0]) != before).any()


def test_derived_masses_follow() -> None:
    heavy = params_of("HeavyPole")
    assert heavy.total_mass == 2.0
    assert heavy.pole_moment == 0.5
