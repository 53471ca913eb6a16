"""How the anchors move in training: where they start, how their updates differ, how far apart they
are held."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp

from slackline.envs.api import Array
from slackline.errors import SlacklineError, require_number
from slackline.networks import drawn_together

T = TypeVar("T")


@dataclass(frozen=True)
class Movement:
    """Every anchor by itself, as in the paper: nothing but the losses moves it."""

    def start(self, anchors: T, apart: float | Array) -> T:
        """Fresh anchors from independent ones; `apart` is the hyper-parameter."""
        return drawn_together(anchors, apart)

    def damp(self, updates: T) -> T:
        """What is left of an optimiser's updates of the anchors."""
        return updates

    def hold(self, anchors: T, progress: Array) -> T:
        """The anchors after an iteration, at `progress` in [0, 1] of the training."""
        return anchors


@dataclass(frozen=True)
class Fan(Movement):
    """Anchors that start together, learn as one, and open late: a centre and small differences.

    Adam's steps are mostly noise, and every anchor has its own: left alone, anchors drift apart and
    the line learns like two networks with half of the data each. Here the part of the updates that
    differs from anchor to anchor is damped, and the angle between anchors is not left to chance or
    to a penalty: after every iteration, tensor by tensor, what differs is scaled to it.
    """

    angle: float = 60.0
    """Degrees between any two anchors at the end of training."""
    closed: float = 5.0
    """Degrees between them until they begin to open."""
    opens: float = 0.5
    """Share of the training after which they begin to open."""
    opened: float = 0.9
    """Share of the training after which they are open."""
    damping: float = 0.2
    """Factor on the part of the updates that differs from anchor to anchor."""

    def __post_init__(self) -> None:
        require_number("angle", self.angle, above=0.0, high=90.0)
        require_number("closed", self.closed, above=0.0, high=90.0)
        require_number("damping", self.damping, low=0.0, high=1.0)
        require_number("opens", self.opens, low=0.0, high=1.0)
        require_number("opened", self.opened, low=0.0, high=1.0)
        if self.opens >= self.opened:
            raise SlacklineError(
                f"opens is {self.opens:g}; it must be less than opened, {self.opened:g}"
            )

    def start(self, anchors: T, apart: float | Array) -> T:
        return drawn_together(anchors, math.sin(math.radians(self.closed)))

    def damp(self, updates: T) -> T:
        def damped(x: Array) -> Array:
            mean = jnp.mean(x, axis=0, keepdims=True)
            return mean + self.damping * (x - mean)

        return jax.tree.map(damped, updates)

    def hold(self, anchors: T, progress: Array) -> T:
        share = jnp.clip((progress - self.opens) / (self.opened - self.opens), 0.0, 1.0)
        degrees = self.closed + (self.angle - self.closed) * share
        return held_apart(anchors, jnp.deg2rad(degrees))


def held_apart(anchors: T, angle: float | Array) -> T:
    """Anchors with the angle between any two set to `angle` radians, tensor by tensor.

    With the centre c = mean_k θ_k and differences d_k = θ_k − c that are orthogonal to it, equally
    long and equally spread, cos(angle) = (1 − q / (N − 1)) / (1 + q), where q = |d|² / |c|²; so the
    differences are scaled until mean_k |d_k|² = q |c|². The centre stays. Tensors that the anchors
    share (1, ...), and differences of zero, stay as they are.
    """

    def held(x: Array) -> Array:
        others = x.shape[0] - 1
        if others == 0:
            return x
        cosine = jnp.cos(angle)
        ratio = others * (1.0 - cosine) / (others * cosine + 1.0)
        centre = jnp.mean(x, axis=0, keepdims=True)
        differences = x - centre
        wanted = ratio * jnp.sum(jnp.square(centre))
        present = jnp.mean(jnp.sum(jnp.square(differences), axis=tuple(range(1, x.ndim))))
        scale = jnp.where(present > 0.0, jnp.sqrt(wanted / jnp.maximum(present, 1e-30)), 1.0)
        return centre + scale * differences

    return jax.tree.map(held, anchors)
