"""Running observation normalisation: Welford's moments, merged batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from slackline.networks.normaliser import Normaliser
from slackline.parallel import collectives
from slackline.types import Array

SMALLEST_STD = 1e-3
"""Lower bound of the standard deviation: an observation that hardly changes in training must not
become huge when it does at test time."""


class Moments(NamedTuple):
    """Count, mean and sum of squared deviations of all observations so far."""

    count: Array
    mean: Array
    deviations: Array

    @property
    def std(self) -> Array:
        variance = self.deviations / jnp.maximum(self.count, 1.0)
        return jnp.where(self.count > 0, jnp.maximum(jnp.sqrt(variance), SMALLEST_STD), 1.0)

    def normalise(self, observation: Array) -> Array:
        """Scale to mean 0 and standard deviation 1; unchanged before the first update."""
        return (observation - self._like(self.mean, observation)) / self._like(
            self.std, observation
        )

    def absorb(self, observations: Array, axis: str | None = None) -> Moments:
        """The moments with a batch (..., size) merged in; with `axis`, those of all devices
        on that mesh axis."""
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
