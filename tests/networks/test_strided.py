"""Strided blocks: against XLA's own convolution, with anchors, planes, and on NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackline.networks.impala import Impala, init_impala
from slackline.networks.strided import Strided, windows

SEEN = (20, 12, 3)
PICTURES = np.random.default_rng(0).integers(0, 256, (4, *SEEN)).astype(np.uint8)


def network(extra: int = 0, patch: int = 1, num_anchors: int = 1) -> Impala:
    sizes = (patch, (4, 6, 5), (7, 3))
    return init_impala(jax.random.key(1), SEEN, extra, *sizes, num_anchors, Strided)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def on_numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


@pytest.mark.parametrize(("height", "width"), [(6, 8), (5, 8), (6, 3), (1, 1)])
def test_it_and_its_gradients_are_those_of_a_convolution(height: int, width: int) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (3, height, width, 4))
    weight = jax.random.normal(keys[1], (1, 3, 3, 4, 2))
    bias = jax.random.normal(keys[2], (1, 2))

    def usual(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        found = jax.lax.conv_general_dilated(
            x,
            weight[0],
            (2, 2),
            ((1, height % 2), (1, width % 2)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        return jax.nn.relu(found + bias[0].reshape(1, 1, 1, 2))

    def ours(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        return Strided(weight, bias)(x, None)

    found, back = jax.vjp(ours, x, weight, bias)
    expected, usual_back = jax.vjp(usual, x, weight, bias)
    close(found, expected)
    assert found.shape == (3, -(-height // 2), -(-width // 2), 2)
    for mine, theirs in zip(back(found), usual_back(found), strict=True):
        close(mine, theirs)


def test_windows_literal() -> None:
    """A row of four pixels: the first and the third in the middle of their windows."""
    row = np.array([1.0, 2.0, 3.0, 4.0], np.float32).reshape(1, 1, 4, 1)
    for library in (np, jnp):
        found = windows(library.asarray(row))  # type: ignore[arg-type]
        assert found.shape == (1, 1, 2, 9)
        assert found[0, 0].tolist() == [
            [0, 0, 0, 0, 1, 2, 0, 0, 0],
            [0, 0, 0, 2, 3, 4, 0, 0, 0],
        ]


def test_only_the_last_block_and_the_head_have_anchors() -> None:
    found = network(patch=2, num_anchors=3)
    assert [block.weight.shape for block in (*found.shared, found.last)] == [  # type: ignore[union-attr]
        (1, 1, 1, 12, 4),
        (1, 3, 3, 4, 6),
        (3, 3, 3, 6, 5),
    ]
    assert found.head.layers[0].weight.shape == (3, 3 * 2 * 5, 7)  # of 10 × 6, 5 × 3, 3 × 2
    assert {leaf.shape[0] for leaf in jax.tree.leaves(found.anchored)} == {3}
    assert found.fits(SEEN, extra=0)
    assert not found.fits((20, 28, 3), extra=0)
    assert not found.fits((20, 12, 1), extra=0)


@pytest.mark.parametrize("patch", [1, 2])
@settings(max_examples=3, deadline=None)
@given(draws=st.lists(st.floats(0.05, 1.0), min_size=12, max_size=12))
def test_a_policy_for_every_row_is_each_policy_alone(patch: int, draws: list[float]) -> None:
    found = network(patch=patch, num_anchors=3)
    rows = np.array(draws, np.float32).reshape(4, 3)
    rows /= rows.sum(axis=1, keepdims=True)
    together = found(jnp.asarray(PICTURES), jnp.asarray(rows))
    close(on_numpy(found)(PICTURES, rows), together)
    for row, picture, output in zip(rows, PICTURES, together, strict=True):
        close(found.mix(jnp.asarray(row))(jnp.asarray(picture)), output)
        close(on_numpy(found).mix(row)(picture), output)


def test_z_beside_the_picture() -> None:
    found, zs = network(extra=2), jnp.eye(2)[jnp.array([0, 1, 0, 1])]
    together = found.beside(jnp.asarray(PICTURES), zs)
    for picture, z, output in zip(PICTURES, zs, together, strict=True):
        close(on_numpy(found.given(z))(picture), output)
    same = found.beside(jnp.asarray(PICTURES[[0, 0]]), zs[:2])
    assert np.abs(same[0] - same[1]).max() > 1e-3
