"""Blocks of environments: small enough that one stays in the cache, distributed over devices.

Also what else is computed part by part: sums of gradients, minibatches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from slackline.parallel.mesh import largest_divisor
from slackline.types import Array


@dataclass(frozen=True)
class Blocks:
    """The blocks that the environments of one seed are divided into."""

    num: int
    """On all devices together."""
    axis: str | None = None
    """The mesh axis over which they are distributed, if any."""

    def keys(self, key: Array) -> Array:
        """A key for each block of this device; the same blocks get the same keys on any mesh."""
        if self.num == 1:
            return key[None]
        num, first = self.num, jnp.int32(0)
        if self.axis is not None:
            num //= jax.lax.axis_size(self.axis)
            first = jax.lax.axis_index(self.axis) * num
        return jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(num))

    def minibatches(self, key: Array, size: int, epochs: int, num: int) -> Array:
        """Which rows of each block every minibatch takes, (epochs × num, blocks, size / num).

        Every minibatch has an equal share of every block, shuffled within it, so that blocks can
        be on different devices and the numbers do not depend on which.
        """

        def of_an_epoch(key: Array) -> Array:
            orders = jax.vmap(lambda key: shuffle(key, size))(self.keys(key))
            return jnp.moveaxis(orders.reshape(orders.shape[0], num, -1), 0, 1)

        rows = jax.vmap(of_an_epoch)(jax.random.split(key, epochs))
        return rows.reshape(epochs * num, rows.shape[2], -1)


def one_by_one(function: Callable[[Any], Any], blocks: Any) -> Any:
    """Map over the leading axis in a loop: only one block at a time has to fit in the cache."""
    if jax.tree.leaves(blocks)[0].shape[0] == 1:  # nothing to loop over
        return jax.tree.map(lambda x: x[None], function(jax.tree.map(lambda x: x[0], blocks)))
    return jax.lax.map(function, blocks)


def mean_of_parts(function: Callable[[Any], Any], rows: Any, limit: int) -> Any:
    """The mean of `function` over equal parts of the rows (B, ...), at most `limit` rows each.

    What is a mean over rows itself (a loss, its gradient) is that of all rows, in less memory.
    """
    num = jax.tree.leaves(rows)[0].shape[0]
    few = largest_divisor(num, limit)
    if few == num:
        return function(rows)
    parts = jax.tree.map(lambda x: x.reshape(num // few, few, *x.shape[1:]), rows)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, function(part)), None

    total, _ = jax.lax.scan(add, zeros_as(function, rows), parts)
    return jax.tree.map(lambda x: x * (few / num), total)


def zeros_as(function: Callable[..., Any], *arguments: Any) -> Any:
    """Zeros with the shapes of the function's results, without computing them."""
    shapes = jax.eval_shape(function, *arguments)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def picked(x: Array, rows: Array) -> Array:
    """Some rows (blocks, n) of every block of x (blocks, rows, ...), merged: (blocks × n, ...)"""
    return merge_blocks(jax.vmap(lambda x, rows: x[rows])(x, rows))


def merge_blocks(x: Array) -> Array:
    """(blocks, rows, ...) -> (blocks × rows, ...)"""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def shuffle(key: Array, size: int) -> Array:
    """0, …, size − 1 in random order.

    As `jax.random.permutation`, which sorts twice and slowly: here plain numbers are sorted once,
    random in their upper bits, and their lower bits say where they came from. (What is equal
    above, two numbers in 2 ** (32 − lower), stays in order.)
    """
    lower = (size - 1).bit_length()
    if lower > 16:
        return jax.random.permutation(key, size)
    numbers = jax.random.bits(key, (size,)) << lower | jnp.arange(size, dtype=jnp.uint32)
    return (jnp.sort(numbers, stable=False) & jnp.uint32(2**lower - 1)).astype(jnp.int32)
