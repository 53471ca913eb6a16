"""Over the devices of a mesh axis; without an axis there is only this one."""

from __future__ import annotations

from typing import Any

import jax
from jax.flatten_util import ravel_pytree


def total(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.psum(tree, axis)


def mean(tree: Any, axis: str | None) -> Any:
    """As one vector: every collective is a meeting of all devices, however small its array."""
    if axis is None:
        return tree
    vector, back = ravel_pytree(tree)
    return back(jax.lax.pmean(vector, axis))


def least(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.pmin(tree, axis)


def largest_divisor(number: int, limit: int) -> int:
    """How many of `number` things to take at once, at most `limit` and always as many."""
    return max(n for n in range(1, limit + 1) if number % n == 0)
