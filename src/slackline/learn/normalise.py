"""Running observation normalisation: Welford's moments, merged batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from slackline.networks.normaliser import Normaliser
from slackline.parallel import collectives
from slackline.types import Array

SMALLEST_STD = 1e-3
"""An observation that hardly moves in training must not blow up when it does at test time."""


class Moments(NamedTuple):
    """Of every observation seen so far: how many, their mean and the sum of squared deviations."""

    count: Array
    mean: Array
    deviations: Array

    @property
    def std(self) -> Array:
        variance = self.deviations / jnp.maximum(self.count, 1.0)
        return jnp.where(self.count > 0, jnp.maximum(jnp.sqrt(variance), SMALLEST_STD), 1.0)

    def normalise(self, observation: Array) -> Array:
        """Mean 0 and standard deviation 1, as far as is known; unchanged before anything is."""
        return (observation - self._like(self.mean, observation)) / self._like(
            self.std, observation
        )

    def absorb(self, observations: Array, axis: str | None = None) -> Moments:
        """The moments with a batch (..., size) merged in, the whole of it where `axis` shares it
        out among devices."""
        batch = observations.reshape(-1, observations.shape[-1])
        num = collectives.total(jnp.float32(batch.shape[0]), axis)
        mean = collectives.total(jnp.sum(batch, axis=0), axis) / num
        squared = jnp.square(batch - self._like(mean, batch))
        deviations = collectives.total(jnp.sum(squared, axis=0), axis)
        count, shift = self.count + num, mean - self.mean
        return Moments(
            count,
            self.mean + shift * (num / count),
            self.deviations + deviations + jnp.square(shift) * (self.count * num / count),
        )

    def frozen(self) -> Normaliser:
        return Normaliser(self.mean[None], self.std[None])

    @staticmethod
    def _like(row: Array, batch: Array) -> Array:
        return jnp.broadcast_to(row, batch.shape)


def no_moments(size: int) -> Moments:
    return Moments(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))
