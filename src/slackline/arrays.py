"""NumPy or JAX, by the arrays that are given.

`jax` and `jnp` here are imported when something of theirs is first used, so that a trained line
loads and acts where JAX is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slackline.errors import imported


class LateModule:
    """A module that is imported once something of it is used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(imported(self._name), attribute)


if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax, jnp = LateModule("jax"), LateModule("jax.numpy")


def namespace(*arrays: Any) -> Any:
    """The library to compute with: NumPy where all arrays are NumPy's, else jax.numpy."""
    return np if all(isinstance(x, np.ndarray | np.generic) for x in arrays) else jnp


def tree_map(function: Any, tree: Any, *rest: Any) -> Any:
    """`jax.tree.map` for networks, which are nested tuples of arrays; it needs no JAX."""
    if tree is None:
        return None
    if not isinstance(tree, tuple):
        return function(tree, *rest)
    parts = [tree_map(function, *each) for each in zip(tree, *rest, strict=True)]
    return tree._make(parts) if hasattr(tree, "_make") else tuple(parts)  # type: ignore[attr-defined]
