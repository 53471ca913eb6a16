"""Weak and late motors, noisy and biased sensors, around environments that are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import AIM_SUITE

from slackline.adapt.kshot import Partly, adapt_many, changing_numbers
from slackline.envs.api import Continuous, Env
from slackline.envs.brax import HalfCheetah
from slackline.envs.cartpole import CartPole
from slackline.envs.impaired import Impaired, ImpairedParams
from slackline.envs.minigrid import MultiRoom
from slackline.errors import SlacklineError
from slackline.suites.impairments import (
    inside,
    latency,
    sensor_bias,
    sensor_noise,
    weak_motor,
)
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN, Variation
from slackline.types import Array


class EchoParams(NamedTuple):
    limit: float = 7.0


class Echo(Env):
    """Shows what reached its two motors, adds it up in its state, and pays the sum of it."""

    observation_size = 3
    action = Continuous(2, low=(-1.0, 0.5), high=(1.0, 2.0))

    def default_params(self) -> EchoParams:
        return EchoParams()

    def reset(self, key: Array, params: EchoParams) -> tuple[Array, Array]:
        return jnp.zeros(3), jnp.zeros(())

    def step(
        self, key: Array, state: Array, action: Array, params: EchoParams
    ) -> tuple[Array, Array, Array, Array]:
        after = state + jnp.sum(action)
        drawn = jax.random.uniform(key)
        seen = jnp.concatenate([action, drawn[None]])
        return seen, after, jnp.sum(action), after > params.limit

    def time_limit(self, params: EchoParams, horizon: int) -> int:
        return min(horizon, int(params.limit))


ACTIONS = jnp.array([[0.1, 0.6], [0.2, 0.7], [0.3, 0.8], [0.4, 0.9], [0.5, 1.0]])


def played(env: Env, params: Any, actions: Array = ACTIONS, seed: int = 0) -> tuple[Any, ...]:
    """Observations (T + 1, ...), rewards (T,) and what ended (T,)."""

    @jax.jit
    def run(params: Any) -> tuple[Any, ...]:
        first, state = env.reset(jax.random.key(seed), params)

        def step(state: Any, timed: tuple[Array, Array]) -> tuple[Any, tuple[Array, ...]]:
            key = jax.random.fold_in(jax.random.key(seed + 1), timed[0])
            observation, state, reward, terminated = env.step(key, state, timed[1], params)
            return state, (observation, reward, terminated)

        _, (seen, rewards, ended) = jax.lax.scan(step, state, (jnp.arange(len(actions)), actions))
        return jnp.concatenate([first[None], seen]), rewards, ended

    return tuple(map(np.asarray, run(params)))


def impaired(*changes: Any) -> ImpairedParams:
    params = Impaired(Echo()).default_params()
    for change in changes:
        params = change(params)
    return params


def test_in_order_it_is_the_environment_inside() -> None:
    """Bit for bit."""
    env = suite("pendulum-continuous").jax_env
    actions = jnp.asarray(np.random.default_rng(0).uniform(-1.0, 1.0, (50, 1)), jnp.float32)
    wrapped = Impaired(env)
    plain = played(env, env.default_params(), actions)
    for found, expected in zip(
        played(wrapped, wrapped.default_params(), actions), plain, strict=True
    ):
        np.testing.assert_array_equal(found, expected)


class Compiled(HalfCheetah):
    """One program for every step, so that whoever takes it gets the same rounding."""

    def default_params(self) -> Any:
        return ()

    def reset(self, key: Array, params: Any) -> tuple[Array, Any]:
        return _reset(key)

    def step(self, key: Array, state: Any, action: Array, params: Any) -> Any:
        return _step(key, state, action)


ROBOT = HalfCheetah()
_reset = jax.jit(lambda key: ROBOT.reset(key, ROBOT.default_params()))
_step = jax.jit(lambda key, state, action: ROBOT.step(key, state, action, ROBOT.default_params()))


def test_in_order_a_robot_moves_as_it_does_without() -> None:
    plain: Env = Compiled()
    wrapped = Impaired(plain)
    key, params = jax.random.key(0), wrapped.default_params()
    (expected, state), (found, inside_of) = plain.reset(key, ()), wrapped.reset(key, params)
    np.testing.assert_array_equal(found, expected)
    for action in np.random.default_rng(0).uniform(-1.0, 1.0, (20, 6)).astype(np.float32):
        expected, state, *paid = plain.step(key, state, jnp.asarray(action), ())
        found, inside_of, *got = wrapped.step(key, inside_of, jnp.asarray(action), params)
        np.testing.assert_array_equal(found, expected)
        assert got == paid
    for leaf, other in zip(*map(jax.tree.leaves, (state, inside_of.inner)), strict=True):
        np.testing.assert_array_equal(leaf, other)


@pytest.mark.parametrize("steps", range(4))
def test_late_actions_arrive_in_order(steps: int) -> None:
    """Until the first one does the motors are idle: at 0, or the nearest that they can do."""
    seen, rewards, _ = played(Impaired(Echo()), impaired(latency(steps)))
    idle = [[0.0, 0.5]] * steps
    arrived = np.array([*idle, *ACTIONS.tolist()])[: len(ACTIONS)]
    np.testing.assert_allclose(seen[1:, :2], arrived, rtol=1e-6)
    np.testing.assert_allclose(rewards, arrived.sum(axis=1), rtol=1e-6)


def test_a_weak_motor_does_less_and_chains() -> None:
    seen, _, _ = played(Impaired(Echo()), impaired(weak_motor(1, 0.5), weak_motor(1, 0.5)))
    np.testing.assert_allclose(seen[1:, :2], ACTIONS * jnp.array([[1.0, 0.25]]), rtol=1e-6)
    dead, _, _ = played(Impaired(Echo()), impaired(weak_motor(0, 0.0), latency(1)))
    np.testing.assert_array_equal(dead[1:, 0], 0.0)


def test_biased_sensors_change_what_is_seen_and_nothing_else() -> None:
    plain = played(Impaired(Echo()), impaired())
    biased = played(Impaired(Echo()), impaired(sensor_bias([0.5, 0.0, -2.0])))
    np.testing.assert_allclose(biased[0] - plain[0], [[0.5, 0.0, -2.0]] * 6, atol=1e-6)
    np.testing.assert_array_equal(biased[1], plain[1])
    np.testing.assert_array_equal(biased[2], plain[2])


def test_noise_is_as_large_as_it_says_and_fresh_in_every_step() -> None:
    actions = jnp.tile(ACTIONS[:1], (4000, 1))
    plain = played(Impaired(Echo()), impaired(), actions)
    noisy = played(Impaired(Echo()), impaired(sensor_noise([0.5, 0.0, 2.0])), actions)
    noise = noisy[0] - plain[0]
    np.testing.assert_allclose(noise.std(axis=0), [0.5, 0.0, 2.0], rtol=0.05)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.1)
    assert abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 0.05
    assert abs(np.corrcoef(noise[:, 0], noise[:, 2])[0, 1]) < 0.05
    np.testing.assert_array_equal(noisy[1], plain[1])
    again = played(Impaired(Echo()), impaired(sensor_noise([0.5, 0.0, 2.0])), actions)
    np.testing.assert_array_equal(again[0], noisy[0])
    other = played(Impaired(Echo()), impaired(sensor_noise([0.5, 0.0, 2.0])), actions, seed=5)
    assert (other[0][1:, 0] != noisy[0][1:, 0]).all()


def test_what_the_environment_inside_says_of_itself_survives() -> None:
    env = Impaired(Echo())
    assert (env.observation_size, env.observation_shape) == (3, (3,))
    assert env.action == Echo.action
    assert env.time_limit(impaired(), 100) == 7
    short = inside(lambda params: params._replace(limit=3.0))
    assert env.time_limit(impaired(short), 100) == 3
    _, _, ended = played(env, impaired(short))
    np.testing.assert_array_equal(ended, np.cumsum(np.asarray(ACTIONS).sum(axis=1)) > 3.0)
    assert not env.reads_elements
    assert Impaired(HalfCheetah()).reads_elements
    assert Impaired(HalfCheetah()) == Impaired(HalfCheetah())
    assert hash(Impaired(HalfCheetah())) == hash(Impaired(HalfCheetah()))


CHANGES = [
    Variation("Late", "", latency(2)),
    Variation("Weak", "", weak_motor(0, 0.25)),
    Variation("Noisy", "", sensor_noise([0.0, 0.3, 0.0])),
    Variation("Biased", "", sensor_bias([0.0, 0.3, 0.0])),
]


@pytest.mark.parametrize("reads_elements", [False, True])
def test_variations_side_by_side_are_what_they_are_alone(reads_elements: bool) -> None:
    """As adapting traces them: only numbers that change, and arrays of known and traced ones."""

    class Reader(Echo):
        pass

    Reader.reads_elements = reads_elements
    env = Impaired(Reader())
    every = [v.apply(env.default_params()) for v in (TRAIN, *CHANGES)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *every)
    partly = Partly(env, changing_numbers(stacked, env.default_params()))
    for i, params in enumerate(every):
        part = jax.tree.map(lambda leaf, i=i: leaf[i], partly.part_of(stacked))
        for found, alone in zip(played(partly, part), played(env, params), strict=True):
            np.testing.assert_allclose(found, alone, rtol=1e-6)


def test_policies_adapt_to_impairments() -> None:
    """A motor that is weak needs another z, where the return of every z is known."""
    from slackline.methods.catalogue import CATALOGUE
    from slackline.networks.mlp import MLP, Layer
    from slackline.subspace import Subspace

    weak = Variation("Weak", "", weak_motor(0, 0.5))
    hard = replace(AIM_SUITE, name="aim-hard", env=Impaired(AIM_SUITE.jax_env), variations=(weak,))
    bias = np.array([[-2.0], [2.0]], np.float32)
    policy = MLP((Layer(np.zeros((2, 1, 1), np.float32), bias),))  # type: ignore[arg-type]
    line = Subspace("aim", CATALOGUE["lop"], 0, AIM_SUITE.jax_env.action, policy, policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slackline.adapt.kshot.home_of", lambda _: AIM_SUITE)
        found = adapt_many([line], [weak, TRAIN], 5, 1, 1, suite=hard)
    told = 1.0 + 2.0 * np.tanh(found.candidates @ bias[:, 0])
    for v, gain in enumerate((0.5, 1.0)):
        expected = -((gain * told - 2.0) ** 2)
        np.testing.assert_allclose(found.returns[0, v, :, 0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Impaired(CartPole()), r"actions of CartPole are Discrete\(num_actions=2\); mot"),
        (lambda: Impaired(MultiRoom()), "actions of MultiRoom are Discrete"),
        (lambda: weak_motor(0, 1.5), "gain of a motor is 1.5; .*at most 1"),
        (lambda: weak_motor(0, float("nan")), "gain of a motor is nan"),
        (lambda: impaired(weak_motor(2, 0.5)), "motor is 2; .*from 0 to 1"),
        (lambda: impaired(weak_motor(-1, 0.5)), "motor is -1; .*from 0 to 1"),
        (lambda: latency(4), "latency is 4; .*from 0 to 3"),
        (lambda: latency(1.5), "latency is 1.5; .*from 0 to 3"),  # type: ignore[arg-type]
        (lambda: sensor_noise([-0.1] * 3), "standard deviation of a sensor's noise is -0.1"),
        (lambda: sensor_bias([float("inf")]), "bias of a sensor is inf"),
        (lambda: impaired(sensor_bias([0.0])), "bias has 1 numbers; there must be 3"),
        (lambda: impaired(sensor_noise([0.0] * 4)), "noise has 4 numbers; there must be 3"),
    ],
)
def test_bad_values_are_named(make: Any, message: str) -> None:
    with pytest.raises(SlacklineError, match=message):
        make()
