"""Over the devices of a mesh axis; without an axis there is only this one."""

from __future__ import annotations

from typing import Any

import jax


def total(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.psum(tree, axis)


def mean(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.pmean(tree, axis)


def least(tree: Any, axis: str | None) -> Any:
    return tree if axis is None else jax.lax.pmin(tree, axis)
