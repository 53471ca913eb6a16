"""Advantages and losses in literal numbers and against slow references."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

from slackline.algorithms.a2c import a2c_surrogate
from slackline.algorithms.losses import gae, normalise, value_loss
from slackline.algorithms.ppo import ppo_surrogate

T, N = 6, 3


def column(*values: float | bool) -> jax.Array:
    return jnp.array(values)[:, None]


NEVER = column(False, False, False)


def test_gae_literal() -> None:
    """δ = (1 + 0.5·2 − 1, 2 + 0.5·3 − 2, 3 + 0.5·4 − 3) = (1, 1.5, 2); γλ = 0.25."""
    found = gae(column(1, 2, 3), column(1, 2, 3), column(2, 3, 4), NEVER, NEVER, 0.5, 0.5)
    np.testing.assert_allclose(found, [[1.5], [2.0], [2.0]])


def test_termination_does_not_bootstrap_and_truncation_does() -> None:
    ends = column(False, True, False)
    arrays = (column(1.0, 2.0, 3.0), column(1.0, 2.0, 3.0), column(2.0, 30.0, 4.0))
    terminated = gae(*arrays, ends, NEVER, 0.5, 0.5)
    truncated = gae(*arrays, NEVER, ends, 0.5, 0.5)
    # δ_1 = 2 − 2 = 0 where it terminated, 2 + 0.5·30 − 2 = 15 where it was cut; no A_2 in either.
    np.testing.assert_allclose(terminated, [[1.0], [0.0], [2.0]])
    np.testing.assert_allclose(truncated, [[1.0 + 0.25 * 15.0], [15.0], [2.0]])


def test_a_terminated_step_ignores_a_value_that_is_no_number() -> None:
    found = gae(
        column(1.0), column(0.5), column(float("nan")), column(True), column(False), 0.9, 0.9
    )
    np.testing.assert_allclose(found, [[0.5]])


def slow_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    next_values: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    discount: float,
    gae_lambda: float,
) -> np.ndarray:
    """A_t = Σ_{l ≥ 0} (γλ)^l δ_{t+l}, the sum stopping where the episode ends."""
    advantage = np.zeros_like(rewards)
    for env in range(rewards.shape[1]):
        for t in range(len(rewards)):
            for later in range(t, len(rewards)):
                end = 0.0 if terminated[later, env] else discount * next_values[later, env]
                delta = rewards[later, env] + end - values[later, env]
                advantage[t, env] += (discount * gae_lambda) ** (later - t) * delta
                if terminated[later, env] or truncated[later, env]:
                    break
    return advantage


@properties
@given(
    seed=st.integers(0, 2**31 - 1),
    ending=st.floats(0.0, 0.6),
    discount=st.floats(0.0, 1.0),
    gae_lambda=st.floats(0.0, 1.0),
)
def test_gae_equals_the_slow_sum(
    seed: int, ending: float, discount: float, gae_lambda: float
) -> None:
    generator = np.random.default_rng(seed)
    rewards, values, next_values = generator.normal(size=(3, T, N))
    ended = generator.random((T, N)) < ending
    terminated = ended & (generator.random((T, N)) < 0.5)
    truncated = ended & ~terminated
    expected = slow_gae(rewards, values, next_values, terminated, truncated, discount, gae_lambda)
    found = gae(
        jnp.asarray(rewards, jnp.float32),
        jnp.asarray(values, jnp.float32),
        jnp.asarray(next_values, jnp.float32),
        jnp.asarray(terminated),
        jnp.asarray(truncated),
        discount,
        gae_lambda,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def random_arrays() -> tuple[jax.Array, jax.Array, jax.Array]:
    rewards, values = jax.random.normal(jax.random.key(0), (2, T, N))
    last = jax.random.normal(jax.random.key(1), (1, N))
    return rewards, values, jnp.concatenate([values[1:], last])


def test_lambda_zero_is_the_one_step_error() -> None:
    rewards, values, next_values = random_arrays()
    never = jnp.zeros((T, N), bool)
    found = gae(rewards, values, next_values, never, never, 0.9, 0.0)
    np.testing.assert_allclose(found, rewards + 0.9 * next_values - values, rtol=1e-5)


def test_lambda_one_is_the_discounted_return_minus_the_value() -> None:
    rewards, values, next_values = random_arrays()
    never = jnp.zeros((T, N), bool)
    found = gae(rewards, values, next_values, never, never, 0.9, 1.0)
    returns, expected = np.asarray(next_values[-1]), []
    for t in reversed(range(T)):
        returns = np.asarray(rewards[t]) + 0.9 * returns
        expected.append(returns - np.asarray(values[t]))
    np.testing.assert_allclose(found, expected[::-1], rtol=1e-4, atol=1e-5)


def test_normalise_literal() -> None:
    np.testing.assert_allclose(
        normalise(jnp.array([1.0, 2.0, 3.0])), [-(1.5**0.5), 0.0, 1.5**0.5], atol=1e-6
    )
    np.testing.assert_array_equal(normalise(jnp.full(3, 7.0)), np.zeros(3))


def test_a2c_literal() -> None:
    """−(−1·2 + −3·−1) / 2 = −0.5, with gradient −A/2."""
    log_prob, advantage = jnp.array([-1.0, -3.0]), jnp.array([2.0, -1.0])
    np.testing.assert_allclose(a2c_surrogate(log_prob, advantage), -0.5)
    np.testing.assert_allclose(jax.grad(a2c_surrogate)(log_prob, advantage), [-1.0, 0.5])


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected", "slope"),
    [
        # Inside the clip range: −ρA, slope −ρA in log π.
        (1.1, 2.0, -2.2, -2.2),
        (0.9, -2.0, 1.8, 1.8),
        # Good and already likelier than 1 + ε: clipped, no gradient.
        (1.5, 2.0, -2.4, 0.0),
        # Good but unlikelier than 1 − ε: not clipped.
        (0.5, 2.0, -1.0, -1.0),
        # Bad and already unlikelier than 1 − ε: clipped, no gradient.
        (0.5, -2.0, 1.6, 0.0),
        # Bad but likelier than 1 + ε: not clipped.
        (1.5, -2.0, 3.0, 3.0),
    ],
)
def test_ppo_literal(ratio: float, advantage: float, expected: float, slope: float) -> None:
    old = jnp.array([-1.3])
    new = old + jnp.log(jnp.array([ratio]))
    value, gradient = jax.value_and_grad(ppo_surrogate)(new, old, jnp.array([advantage]), 0.2)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(gradient, [slope], rtol=1e-5, atol=1e-7)


def test_ppo_averages() -> None:
    found = ppo_surrogate(jnp.log(jnp.array([1.5, 0.5])), jnp.zeros(2), jnp.array([2.0, -2.0]), 0.2)
    np.testing.assert_allclose(found, (-2.4 + 1.6) / 2, rtol=1e-5)


def test_value_loss_literal() -> None:
    np.testing.assert_allclose(value_loss(jnp.array([1.0, 2.0]), jnp.array([3.0, 1.0])), 2.5)
