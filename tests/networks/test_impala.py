"""IMPALA's network: anchors, planes, gradients and NumPy, against plain formulas."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackline.methods.auxiliary import cosine_penalty
from slackline.methods.catalogue import method
from slackline.networks.impala import convolved, halved, in_patches, init_impala

SEEN = (20, 16, 3)
PICTURES = np.random.default_rng(0).integers(0, 256, (5, *SEEN)).astype(np.uint8)


def network(extra: int = 0, patch: int = 1, num_anchors: int = 1) -> Any:
    return init_impala(jax.random.key(1), SEEN, extra, patch, (4, 6, 5), (7, 3), num_anchors)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_sizes() -> None:
    """20 × 16 becomes 10 × 8, 5 × 4 and 3 × 2; halves of odd sizes are rounded up."""
    found = network()
    assert found(jnp.asarray(PICTURES)).shape == (5, 3)
    assert found.head.layers[0].weight.shape == (1, 3 * 2 * 5, 7)
    assert [block.entry.weight.shape for block in (*found.shared, found.last)] == [
        (1, 3, 3, 3, 4),
        (1, 3, 3, 4, 6),
        (1, 3, 3, 6, 5),
    ]
    assert network(patch=2).shared[0].entry.weight.shape == (1, 3, 3, 12, 4)


def test_only_the_last_block_and_the_head_have_anchors() -> None:
    found = network(num_anchors=3)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(found.shared)} == {1}
    assert {leaf.shape[0] for leaf in jax.tree.leaves(found.anchored)} == {3}
    assert len(jax.tree.leaves(found)) == len(jax.tree.leaves((found.shared, found.anchored)))
    entry = np.asarray(found.last.entry.weight).reshape(3, -1)
    assert np.abs(np.corrcoef(entry) - np.eye(3)).max() < 0.3  # drawn independently


@pytest.mark.parametrize("patch", [1, 2])
@settings(max_examples=5, deadline=None)
@given(draws=st.lists(st.floats(0.05, 1.0), min_size=15, max_size=15))
def test_a_policy_for_every_row_is_each_policy_alone(patch: int, draws: list[float]) -> None:
    found = network(patch=patch, num_anchors=3)
    rows = np.array(draws, np.float32).reshape(5, 3)
    rows /= rows.sum(axis=1, keepdims=True)
    together = found(jnp.asarray(PICTURES), jnp.asarray(rows))
    for row, picture, output in zip(rows, PICTURES, together, strict=True):
        plain = found.mix(jnp.asarray(row))
        assert {leaf.shape[0] for leaf in jax.tree.leaves(plain)} == {1}
        close(plain(jnp.asarray(picture)), output)


def test_a_corner_is_the_anchor_and_anchors_differ() -> None:
    found = network(num_anchors=2)
    first = jax.tree.map(lambda x: x[:1], found)
    ends = [
        found(jnp.asarray(PICTURES), jnp.tile(jnp.array(row), (5, 1)))
        for row in ([1.0, 0.0], [0.0, 1.0])
    ]
    close(ends[0], first(jnp.asarray(PICTURES)))
    assert np.abs(ends[0] - ends[1]).max() > 1e-2


@pytest.mark.parametrize("patch", [1, 2])
def test_numpy_alone_says_the_same(patch: int) -> None:
    plain = network(patch=patch)
    found: Any = jax.tree.map(np.asarray, plain)(PICTURES)
    assert type(found) is np.ndarray
    close(found, plain(jnp.asarray(PICTURES)))
    close(jax.tree.map(np.asarray, plain)(PICTURES[0]), found[0])


def test_z_beside_the_picture() -> None:
    """One z of a batch, and the network that has it built in, on either library."""
    found = network(extra=2)
    zs = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    together = found.beside(jnp.asarray(PICTURES), zs)
    for picture, z, output in zip(PICTURES, zs, together, strict=True):
        alone = found.given(z)
        close(alone(jnp.asarray(picture)), output)
        close(jax.tree.map(np.asarray, alone)(picture), output)
    same = found.beside(jnp.asarray(PICTURES[[0, 0]]), zs[:2])
    assert np.abs(same[0] - same[1]).max() > 1e-3


def test_leading_axes_are_kept() -> None:
    found, rows = network(num_anchors=2), jnp.full((2, 2, 2), 0.5)
    pictures = jnp.asarray(PICTURES[:4].reshape(2, 2, *SEEN))
    close(found(pictures, rows)[1, 0], found.mix(jnp.array([0.5, 0.5]))(pictures[1, 0]))


def test_the_value_is_the_last_output() -> None:
    found = network()
    close(found.without_value()(jnp.asarray(PICTURES)), found(jnp.asarray(PICTURES))[:, :-1])


def test_the_penalty_is_of_what_has_anchors() -> None:
    """Shared tensors would count as orthogonal, and dilute it."""
    found = network(num_anchors=2)
    equal: Any = found._replace(
        last=jax.tree.map(lambda x: jnp.stack([x[0], x[0]]), found.last),
        head=jax.tree.map(lambda x: jnp.stack([x[0], x[0]]), found.head),
    )
    line = method("lop", beta=1.0)
    nothing: Any = None
    loss = line.auxiliary.policy_loss((), line.latent, equal, nothing, nothing)
    np.testing.assert_allclose(loss, 1.0, rtol=1e-5)
    np.testing.assert_allclose(loss, cosine_penalty((equal.last, equal.head)), rtol=1e-6)


def test_a_convolution_and_its_gradients_are_xlas() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (3, 6, 5, 4))
    weight = jax.random.normal(keys[1], (3, 3, 4, 2))
    slope = jax.random.normal(keys[2], (3, 6, 5, 2))

    def usual(x: jax.Array, weight: jax.Array) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout)

    ours, back = jax.vjp(convolved, x, weight)
    expected, usual_back = jax.vjp(usual, x, weight)
    close(ours, expected)
    for found, wanted in zip(back(slope), usual_back(slope), strict=True):
        close(found, wanted)
    close(convolved(np.asarray(x), np.asarray(weight)), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1, 5, 2, 0, 3, 4], [5, 3, 4]),
        ([1, 5, 2, 0, 3], [5, 3, 3]),
        ([7], [7]),
        ([-3, -1], [-1]),
    ],
)
def test_halving_literal(row: list[int], expected: list[int]) -> None:
    for library in (np, jnp):
        x = library.asarray(row, np.float32)[None, :, None, None]
        found = halved(x, axis=1)  # type: ignore[arg-type]
        assert found[0, :, 0, 0].tolist() == expected
        assert halved(x.swapaxes(1, 2), axis=2)[0, 0, :, 0].tolist() == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1, 5, 2, 0, 3, 4], [0, 1, 0, 0, 10, 100]),
        ([1, 5, 2, 0, 3], [0, 1, 0, 0, 110]),
        ([2, 2], [1, 0]),
    ],
)
def test_gradients_of_halving_go_to_what_was_kept(row: list[int], expected: list[int]) -> None:
    x = jnp.asarray(row, jnp.float32)[None, :, None, None]
    weights = jnp.array([1.0, 10.0, 100.0])[: -(-len(row) // 2)]
    gradient = jax.grad(lambda x: jnp.sum(halved(x, axis=1)[0, :, 0, 0] * weights))(x)
    assert gradient[0, :, 0, 0].tolist() == expected


def test_patches_literal() -> None:
    """Colours stay together; a square goes row by row."""
    picture = np.arange(2 * 4 * 2).reshape(1, 2, 4, 2)
    found = in_patches(picture, channels=8)  # type: ignore[arg-type]
    assert found.shape == (1, 1, 2, 8)
    assert found[0, 0].tolist() == [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
