"""Action distributions against SciPy, numerical integration and sampling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from probes import properties
from scipy import integrate, special, stats

from slackline.envs.api import Continuous, Discrete
from slackline.networks.distributions import Categorical, Distribution, TanhNormal, distribution_of

THREE = Categorical(Discrete(3))
LOGITS = np.log(np.array([0.2, 0.5, 0.3], np.float32)) + 7.0  # unnormalised
LINE = TanhNormal(Continuous(1))


def test_kind_follows_the_space() -> None:
    assert distribution_of(Discrete(4)) == Categorical(Discrete(4))
    assert distribution_of(Continuous(2)) == TanhNormal(Continuous(2))
    assert distribution_of(Discrete(4)).num_outputs == 4
    assert distribution_of(Continuous(2)).num_outputs == 2


def sampled(distribution: Distribution, outputs: jax.Array, std: float = 0.5) -> jax.Array:
    noise = distribution.noise(jax.random.key(0), outputs.shape[:-1])
    return distribution.sample(noise, outputs, std)


def test_categorical_samples_as_often_as_it_says() -> None:
    num = 30_000
    actions = sampled(THREE, jnp.broadcast_to(LOGITS, (num, 3)))
    assert actions.dtype == jnp.int32
    counts = np.bincount(np.asarray(actions), minlength=3)
    assert stats.chisquare(counts, num * np.array([0.2, 0.5, 0.3])).pvalue > 1e-4


def test_categorical_never_samples_the_impossible() -> None:
    logits = jnp.broadcast_to(jnp.array([-1e9, 0.0, -1e9]), (1000, 3))
    np.testing.assert_array_equal(sampled(THREE, logits), np.ones(1000))


def test_categorical_literal() -> None:
    outputs = jnp.broadcast_to(LOGITS, (3, 3))
    found = THREE.log_prob(outputs, jnp.arange(3), 0.5)
    np.testing.assert_allclose(found, np.log([0.2, 0.5, 0.3]), rtol=1e-5)
    np.testing.assert_allclose(THREE.entropy(jnp.asarray(LOGITS), 0.5), 1.0296531, rtol=1e-5)
    assert int(THREE.mode(jnp.asarray(LOGITS))) == 1


@properties
@given(logits=arrays.arrays(np.float32, 3, elements=st.floats(-20, 20, width=32)))
def test_categorical_agrees_with_scipy(logits: np.ndarray) -> None:
    probability = special.softmax(logits.astype(np.float64))
    found = THREE.log_prob(jnp.broadcast_to(logits, (3, 3)), jnp.arange(3), 0.5)
    np.testing.assert_allclose(found, special.log_softmax(logits), rtol=1e-4, atol=1e-5)
    entropy = THREE.entropy(jnp.asarray(logits), 0.5)
    np.testing.assert_allclose(entropy, stats.entropy(probability), atol=1e-4)


def density(a: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Of an action a = tanh(u) in (−1, 1): that of u, which TanhNormal has, times du/da."""
    u = jnp.asarray(np.arctanh(a), jnp.float32)[..., None]
    of_u = np.exp(np.asarray(LINE.log_prob(jnp.full_like(u, mean), u, std), np.float64))
    return of_u / (1.0 - a**2)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.5), (0.8, 0.3), (-1.0, 0.7), (0.3, 1.0)])
def test_tanh_density_integrates_to_one(mean: float, std: float) -> None:
    # By a = sin(θ), which resolves the ends.
    theta = np.linspace(-np.pi / 2, np.pi / 2, 20_001)[1:-1]
    total = integrate.trapezoid(density(np.sin(theta), mean, std) * np.cos(theta), theta)
    np.testing.assert_allclose(total, 1.0, atol=2e-3)


def test_tanh_density_matches_a_histogram() -> None:
    mean, std, num = 0.4, 0.5, 40_000
    u = sampled(LINE, jnp.full((num, 1), mean), std)
    counts, edges = np.histogram(np.asarray(LINE.to_env(u)), bins=20, range=(-1.0, 1.0))
    fine = np.linspace(edges[:-1], edges[1:], 201)[..., :]
    fine = np.clip(fine, -0.99999, 0.99999)
    share = integrate.trapezoid(density(fine, mean, std), fine, axis=0)
    often = share * num > 20
    assert often.sum() > 10
    assert (np.abs(counts - share * num)[often] < 5 * np.sqrt(share * num)[often]).all()


def test_tanh_log_prob_sums_over_actions() -> None:
    two = TanhNormal(Continuous(2))
    mean, u = jnp.array([0.1, -0.4]), jnp.array([0.5, 0.2])
    each = [LINE.log_prob(mean[i, None], u[i, None], 0.5) for i in (0, 1)]
    np.testing.assert_allclose(two.log_prob(mean, u, 0.5), sum(each), rtol=1e-5)
    expected = stats.norm.logpdf(u, mean, 0.5)
    np.testing.assert_allclose(two.log_prob(mean, u, 0.5), expected.sum(), rtol=1e-5)


def test_tanh_log_prob_rises_towards_the_action() -> None:
    slope = jax.grad(lambda mean: LINE.log_prob(mean, jnp.array([8.0]), 0.5))(jnp.array([8.25]))
    np.testing.assert_allclose(slope, [-1.0], rtol=1e-4)


def test_tanh_entropy_is_that_of_the_gaussian() -> None:
    two = TanhNormal(Continuous(2))
    expected = 2 * stats.norm(scale=0.3).entropy()
    np.testing.assert_allclose(two.entropy(jnp.zeros((4, 2)), 0.3), np.full(4, expected), rtol=1e-5)


def test_to_env_keeps_the_bounds() -> None:
    wide = TanhNormal(Continuous(1, low=-1.0, high=3.0))
    u = jnp.array([-50.0, 0.0, 50.0, float(np.arctanh(0.5))])
    np.testing.assert_allclose(wide.to_env(u), [-1.0, 1.0, 3.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(LINE.to_env(u), [-1.0, 0.0, 1.0, 0.5], rtol=1e-6)


def test_sampled_actions_spread_as_told() -> None:
    u = np.asarray(sampled(LINE, jnp.full((20_000, 1), 2.0), 0.3))
    np.testing.assert_allclose([u.mean(), u.std()], [2.0, 0.3], atol=0.01)


@pytest.mark.parametrize("space", [Discrete(3), Continuous(3, low=-2.0, high=5.0)], ids=repr)
def test_numpy_and_jax_choose_the_same_action(space: Discrete | Continuous) -> None:
    distribution = distribution_of(space)
    outputs = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    in_numpy = distribution.to_env(distribution.mode(outputs))  # type: ignore[arg-type]
    in_jax = distribution.to_env(distribution.mode(jnp.asarray(outputs)))
    assert isinstance(in_numpy, np.ndarray)
    assert in_numpy.dtype == in_jax.dtype
    np.testing.assert_allclose(in_numpy, in_jax, rtol=1e-5)
