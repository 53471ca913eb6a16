"""What is optimised beside the return."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from slackline.envs.api import Array
from slackline.errors import SlacklineError, require_number

Penalty = Literal["tensor", "vector"]


class Auxiliary(abc.ABC):
    """An extra term of the policy's loss."""

    @abc.abstractmethod
    def loss(self, anchors: object) -> Array:
        """The term for the policy's anchors, a pytree whose leaves have a leading axis N."""


@dataclass(frozen=True)
class Nothing(Auxiliary):
    """Only the return counts."""

    def loss(self, anchors: object) -> Array:
        return jnp.zeros(())


@dataclass(frozen=True)
class CosinePenalty(Auxiliary):
    """β Σ_{i≠j} cos²(θ_i, θ_j), which pushes the anchors apart."""

    beta: float = 1.0
    penalty: Penalty = "tensor"
    """Compare the anchors tensor by tensor (as the authors' code) or as whole vectors (the formula)."""

    def __post_init__(self) -> None:
        require_number("beta", self.beta, low=0.0, high=1e6)
        if self.penalty not in ("tensor", "vector"):
            raise SlacklineError(f"penalty is {self.penalty!r}; it must be tensor or vector")

    def loss(self, anchors: object) -> Array:
        return self.beta * cosine_penalty(anchors, self.penalty)


def cosine_penalty(anchors: object, penalty: Penalty = "tensor") -> Array:
    """Σ_{i<j} cos²(θ_i, θ_j) over unordered pairs, averaged over tensors or of the whole vector.

    A line has one pair, so its penalty lies in [0, 1].
    """
    flat = [jnp.reshape(leaf, (leaf.shape[0], -1)) for leaf in jax.tree.leaves(anchors)]
    if penalty == "vector":
        flat = [jnp.concatenate(flat, axis=1)]
    return jnp.mean(jnp.stack([_pairwise_cosine_squared(tensor) for tensor in flat]))


def _pairwise_cosine_squared(vectors: Array) -> Array:
    """Σ_{i<j} cos²(v_i, v_j) for vectors (N, D)."""
    gram = vectors @ vectors.T
    squared_norms = jnp.diag(gram)
    products = squared_norms[:, None] * squared_norms[None, :]
    return jnp.sum(jnp.triu(jnp.square(gram) / jnp.maximum(products, 1e-12), k=1))
