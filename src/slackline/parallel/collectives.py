"""Sums, means and minima over the devices of a mesh axis; without an axis there is one device."""

from __future__ import annotations

from typing import Any

import jax
from jax.flatten_util import ravel_pytree


def total(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.psum(tree, axis)


def mean(tree: Any, axis: str | None) -> Any:
    """The mean over devices, of the whole tree as one vector: each collective synchronises all
    devices, so one is cheaper than one per leaf."""
    if axis is None:
        return tree
    vector, back = ravel_pytree(tree)
    return back(jax.lax.pmean(vector, axis))


def least(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.pmin(tree, axis)
