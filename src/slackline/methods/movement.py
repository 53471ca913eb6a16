"""How the anchors move in training: where they start, and in which coordinates they are updated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from slackline.arrays import jax, jnp
from slackline.io.decode import check, number
from slackline.networks.mlp import drawn_together
from slackline.types import Array

T = TypeVar("T")


@dataclass(frozen=True)
class Movement:
    """Every anchor by itself, as in the paper: nothing but the losses moves it."""

    def __post_init__(self) -> None:
        check(self)

    def start(self, anchors: T, apart: float | Array) -> T:
        """Fresh anchors from independent ones; `apart` is the hyper-parameter."""
        return drawn_together(anchors, apart)

    def at(self, progress: Array) -> Movement:
        """What is in force at `progress` in [0, 1] of the training."""
        return self

    def gradients(self, gradients: T) -> T:
        """Gradients of the anchors in the coordinates that the optimiser works in."""
        return gradients

    def updates(self, updates: T) -> T:
        """The anchors' updates from the optimiser's, which are in those coordinates."""
        return updates


@dataclass(frozen=True)
class Together(Movement):
    """Anchors that start together and learn as one: a centre and small differences.

    Adam's steps are mostly noise. Where every anchor has its own, anchors drift apart, and the line
    learns like two networks with half of the data each. Here Adam works on the centre c, which sees
    the gradient that a single policy would, and on the differences, whose steps are damped:
    θ = Bᵀ y with y_0 = c (see `coordinates`).
    """

    start_apart: float = number(0.1, low=0.0, high=1.0)
    """How far apart anchors start: 0 in the same point, 1 independently of each other."""
    damping: float = number(0.1, low=0.0, high=1.0)
    """Step size of the differences between anchors, as a share of the centre's, until `opens`."""
    late_damping: float = number(0.4, low=0.0, high=1.0)
    """The same from `opens` on: more lets the anchors open wider, and costs return."""
    opens: float = number(0.5, low=0.0, high=1.0)
    """Share of the training after which they open; the penalty's option of that name."""

    def start(self, anchors: T, apart: float | Array) -> T:
        return drawn_together(anchors, self.start_apart)

    def at(self, progress: Array) -> Damped:
        return Damped(jnp.where(progress < self.opens, self.damping, self.late_damping))


@dataclass(frozen=True)
class Damped(Movement):
    """Anchors as a centre and differences, at one moment of the training."""

    damping: float | Array

    def gradients(self, gradients: T) -> T:
        """∂/∂y = B ∂/∂θ"""
        return jax.tree.map(lambda x: _combined(coordinates(x.shape[0]), x), gradients)

    def updates(self, updates: T) -> T:
        """Bᵀ (Δy_0, κ Δy_1, …, κ Δy_{N−1})"""

        def back(x: Array) -> Array:
            damped = jnp.concatenate([x[:1], self.damping * x[1:]])
            return _combined(coordinates(x.shape[0]).T, damped)

        return jax.tree.map(back, updates)


def coordinates(num_anchors: int) -> np.ndarray:
    """The matrix B (N, N) of θ = Bᵀ y: y_0 is the anchors' centre, the rest what differs.

    Row 0 is ones. The others are Helmert's contrasts, orthogonal and of sum zero, scaled so that
    independent steps of size 1 along all of them move every anchor by about 1. Two anchors are
    θ_1 = c + y_1 and θ_2 = c − y_1.
    """
    rows = [np.ones(num_anchors)]
    for k in range(1, num_anchors):
        contrast = np.r_[np.ones(k), -k, np.zeros(num_anchors - k - 1)]
        rows.append(contrast / np.linalg.norm(contrast) * (num_anchors / (num_anchors - 1)) ** 0.5)
    return np.stack(rows)


def _combined(matrix: np.ndarray, anchors: Array) -> Array:
    return jnp.tensordot(jnp.asarray(matrix, anchors.dtype), anchors, 1)
