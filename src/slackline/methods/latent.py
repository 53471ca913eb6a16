"""Latent spaces: how z is drawn at the start of an episode, and which K values adaptation tries."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Array
from slackline.errors import require_count


class Latent(abc.ABC):
    """A set of z's with a sampling law."""

    size: int
    """How many numbers make up one z."""

    num_anchors: int
    """How many anchors `weights` speaks of."""

    describe: str
    """What a z looks like, for error messages."""

    @abc.abstractmethod
    def sample(self, key: Array, num: int) -> Array:
        """Draw z for `num` episodes: (num, size)."""

    @abc.abstractmethod
    def weights(self, z: Array) -> Array:
        """Anchor coefficients of z: (..., size) -> (..., num_anchors)."""

    @abc.abstractmethod
    def candidates(self, shots: int) -> np.ndarray:
        """At most `shots` values spread uniformly over the space: (K, size)."""

    @abc.abstractmethod
    def contains(self, z: np.ndarray) -> bool:
        """Whether z (size,) belongs to the space."""


@dataclass(frozen=True)
class Point(Latent):
    """A single policy: z is empty and there is one candidate."""

    size = 0
    num_anchors = 1
    describe = "an empty array (there is only one policy)"

    def sample(self, key: Array, num: int) -> Array:
        return jnp.zeros((num, 0))

    def weights(self, z: Array) -> Array:
        return jnp.ones((*z.shape[:-1], 1))

    def candidates(self, shots: int) -> np.ndarray:
        return np.zeros((1, 0), np.float32)

    def contains(self, z: np.ndarray) -> bool:
        return z.shape == (0,)


@dataclass(frozen=True)
class Simplex(Latent):
    """z = (z_1 … z_N), non-negative with sum 1, flat over the simplex. N = 2 is a line."""

    anchors: int

    def __post_init__(self) -> None:
        require_count("anchors", self.anchors, low=2, high=64)

    @property
    def size(self) -> int:
        return self.anchors

    @property
    def num_anchors(self) -> int:
        return self.anchors

    @property
    def describe(self) -> str:
        line = " (or one number in [0, 1], the first of them)" if self.anchors == 2 else ""
        return f"{self.anchors} non-negative numbers with sum 1{line}"

    def sample(self, key: Array, num: int) -> Array:
        """The spacings of N − 1 sorted uniforms follow the flat Dirichlet law."""
        cuts = jax.random.uniform(key, (num, self.anchors - 1))
        if self.anchors > 2:
            cuts = jnp.sort(cuts, axis=-1)
        edges = [jnp.zeros((num, 1)), cuts, jnp.ones((num, 1))]
        return jnp.diff(jnp.concatenate(edges, axis=-1), axis=-1)

    def weights(self, z: Array) -> Array:
        return z

    def candidates(self, shots: int) -> np.ndarray:
        if self.anchors == 2:
            first = np.linspace(0.0, 1.0, shots) if shots > 1 else np.array([0.5])
            return np.stack([first, 1.0 - first], axis=-1).astype(np.float32)
        return np.asarray(self.sample(jax.random.key(0), shots))

    def contains(self, z: np.ndarray) -> bool:
        in_range = z.shape == (self.anchors,) and bool((z >= -1e-6).all())
        return in_range and abs(float(z.sum()) - 1.0) <= 1e-4
