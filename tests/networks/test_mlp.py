"""Anchored layers: the fused product, the mixed network and the initialisation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

from slackline.networks.mlp import MLP, Layer, NormedMLP, drawn_together, init_mlp, layer_norm

SIZES = (3, 5, 4, 2)

seeds = st.integers(0, 2**31 - 1)


def explicit(network: MLP, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Outputs for one x (in,), its weights written out as Σ_k c_k θ_k."""
    for i, layer in enumerate(network.layers):
        weight = sum(c * w for c, w in zip(coefficients, np.asarray(layer.weight), strict=True))
        bias = sum(c * b for c, b in zip(coefficients, np.asarray(layer.bias), strict=True))
        x = x @ weight + bias
        if i < len(network.layers) - 1:
            x = np.maximum(x, 0.0)
    return x


def rows(seed: int, num_anchors: int, batch: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and coefficients (of either sign, sum 1) for a batch."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(batch, SIZES[0])).astype(np.float32)
    coefficients = generator.normal(size=(batch, num_anchors)).astype(np.float32)
    coefficients[:, -1] = 1.0 - coefficients[:, :-1].sum(axis=1)
    return x, coefficients


@properties
@given(seed=seeds, num_anchors=st.integers(2, 4))
def test_fused_layers_equal_weights_mixed_per_sample(seed: int, num_anchors: int) -> None:
    network = init_mlp(jax.random.key(seed), SIZES, num_anchors)
    x, coefficients = rows(seed, num_anchors)
    expected = [explicit(network, *row) for row in zip(x, coefficients, strict=True)]
    outputs = network(jnp.asarray(x), jnp.asarray(coefficients))
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


@properties
@given(seed=seeds, num_anchors=st.integers(2, 4))
def test_mixed_once_equals_a_row_of_the_batch(seed: int, num_anchors: int) -> None:
    network = init_mlp(jax.random.key(seed), SIZES, num_anchors)
    x, coefficients = rows(seed, num_anchors)
    batch = network(jnp.asarray(x), jnp.asarray(coefficients))
    for i in (0, 3):
        plain = network.mix(jnp.asarray(coefficients[i]))
        np.testing.assert_allclose(plain(jnp.asarray(x[i])), batch[i], rtol=1e-4, atol=1e-5)


def test_fused_layer_literal() -> None:
    """1·x → 2x + 10 with the first anchor, −x + 1 with the second."""
    layer = Layer(jnp.array([[[2.0]], [[-1.0]]]), jnp.array([[10.0], [1.0]]))
    x = jnp.array([[3.0], [3.0], [3.0]])
    coefficients = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]])
    # 0.25 · 16 + 0.75 · (−2) = 2.5
    np.testing.assert_allclose(layer.mixed(x, coefficients), [[16.0], [-2.0], [2.5]])


def test_more_than_one_batch_axis() -> None:
    network = init_mlp(jax.random.key(0), SIZES, 3)
    x = jax.random.normal(jax.random.key(1), (2, 4, 3))
    coefficients = jax.random.dirichlet(jax.random.key(2), jnp.ones(3), (2, 4))
    flat = network(x.reshape(8, 3), coefficients.reshape(8, 3))
    np.testing.assert_allclose(network(x, coefficients).reshape(8, 2), flat, rtol=1e-5)


@pytest.mark.parametrize("num_anchors", [2, 3, 5])
def test_corner_is_that_anchor(num_anchors: int) -> None:
    network = init_mlp(jax.random.key(0), SIZES, num_anchors)
    x = jax.random.normal(jax.random.key(1), (7, 3))
    for k in range(num_anchors):
        anchor = MLP(tuple(Layer(w[k : k + 1], b[k : k + 1]) for w, b in network.layers))
        corner = jnp.broadcast_to(jnp.eye(num_anchors)[k], (7, num_anchors))
        np.testing.assert_allclose(network(x, corner), anchor(x), rtol=1e-5, atol=1e-6)
        for leaf, expected in zip(
            jax.tree.leaves(network.mix(jnp.eye(num_anchors)[k])),
            jax.tree.leaves(anchor),
            strict=True,
        ):
            np.testing.assert_array_equal(leaf, expected)


def test_one_anchor_needs_no_coefficients() -> None:
    network = init_mlp(jax.random.key(0), SIZES)
    x = jax.random.normal(jax.random.key(1), (7, 3))
    expected = [explicit(network, row, np.ones(1)) for row in np.asarray(x)]
    np.testing.assert_allclose(network(x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(network(x), network(x, jnp.ones((7, 1))))


def test_initial_weights_are_uniform_within_one_over_root_fan_in() -> None:
    fan_in, bound = 100, 0.1
    layer = init_mlp(jax.random.key(0), (fan_in, 200), 3).layers[0]
    assert layer.weight.shape == (3, fan_in, 200)
    assert layer.bias.shape == (3, 200)
    for values in map(np.asarray, layer):
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.98 * bound
        np.testing.assert_allclose(values.mean(), 0.0, atol=0.1 * bound)
        np.testing.assert_allclose(values.std(), bound / np.sqrt(3), rtol=0.05)


def test_anchors_layers_and_tensors_are_independent() -> None:
    """No two of them are copies of each other, not even in part."""
    network = init_mlp(jax.random.key(0), (50, 50, 50), 4)
    weights = [np.asarray(w[k]).ravel() for w, _ in network.layers for k in range(4)]
    correlation = np.corrcoef(weights) - np.eye(len(weights))
    assert np.abs(correlation).max() < 0.1  # 5 σ for 2500 entries
    biases = [np.asarray(b[k]) for _, b in network.layers for k in range(4)]
    assert np.abs(np.corrcoef(biases) - np.eye(8)).max() < 0.7
    assert not np.isclose(weights[0][:50], biases[0]).any()


def test_layers_keep_strict_dtypes(strict_dtypes: None) -> None:
    network = init_mlp(jax.random.key(0), SIZES, 2)
    assert network(jnp.ones((2, 3)), jnp.full((2, 2), 0.5)).dtype == jnp.float32


def test_anchors_can_start_alike() -> None:
    anchors = init_mlp(jax.random.key(0), (30, 40, 5), 3)
    jax.tree.map(np.testing.assert_array_equal, drawn_together(anchors, 1.0), anchors)
    for x in jax.tree.leaves(drawn_together(anchors, 0.0)):
        np.testing.assert_array_equal(x, np.broadcast_to(x[:1], x.shape))
    first, *others = drawn_together(anchors, 0.6).layers[0].weight
    for other in others:
        correlation = np.corrcoef(np.ravel(first), np.ravel(other))[0, 1]
        np.testing.assert_allclose(correlation, 0.8, atol=0.05)
        np.testing.assert_allclose(np.std(other), np.std(first), rtol=0.1)


def test_layer_norm_literal() -> None:
    """Mean 2 and variance 1; what does not vary becomes 0."""
    expected = np.array([[-1.0, 1.0], [0.0, 0.0]]) / np.sqrt([[1.0 + 1e-5], [1.0]])
    for kind in (np, jnp):
        x: Any = kind.array([[1.0, 3.0], [5.0, 5.0]], kind.float32)
        np.testing.assert_allclose(layer_norm(x), expected, rtol=1e-6)


@properties
@given(seed=seeds)
def test_a_normed_network_is_normed_before_every_relu(seed: int) -> None:
    network = NormedMLP(init_mlp(jax.random.key(seed), SIZES, 2).layers)
    x, coefficients = rows(seed, 2)
    batch = network(jnp.asarray(x), jnp.asarray(coefficients))
    for i in (0, 3):
        plain = network.mix(jnp.asarray(coefficients[i]))
        assert isinstance(plain, NormedMLP)
        hidden: Any = x[i]
        for layer in plain.layers[:-1]:
            hidden = np.maximum(layer_norm(hidden @ layer.weight[0] + layer.bias[0]), 0.0)
        last = plain.layers[-1]
        expected = hidden @ last.weight[0] + last.bias[0]
        np.testing.assert_allclose(batch[i], expected, rtol=1e-3, atol=1e-4)
        seen: Any = x[i]
        on_numpy = jax.tree.map(np.asarray, plain)(seen)
        np.testing.assert_allclose(on_numpy, expected, rtol=1e-3, atol=1e-4)


def test_a_normed_network_stays_normed_where_an_input_is_given() -> None:
    network = NormedMLP(init_mlp(jax.random.key(0), SIZES).layers)
    x, z = jnp.ones((4, 2)), jnp.array([0.3])
    given_z = network.given(z)
    assert isinstance(given_z, NormedMLP)
    np.testing.assert_allclose(
        given_z(x), network.beside(x, jnp.full((4, 1), 0.3)), rtol=1e-4, atol=1e-5
    )
