"""Observations as a trained policy normalises them: constants that its first layer absorbs."""

from __future__ import annotations

from typing import NamedTuple

from slackline.arrays import namespace
from slackline.networks.mlp import MLP, Layer
from slackline.types import Array


class Normaliser(NamedTuple):
    """The moments as a trained policy keeps them: frozen, (A, size), one row that all anchors share
    or, in an ensemble, a row for each member."""

    mean: Array
    std: Array

    def folded_into(self, policy: MLP) -> MLP:
        """The network that does on raw observations what `policy` does on normalised ones.

        (x − mean) / std · W + b is again an affine map of x, and mixing anchors commutes with it,
        so acting needs no normaliser. Inputs beyond the observation (z beside it) stay.
        """
        first, *rest = policy.layers
        size = self.mean.shape[-1]
        scaled = first.weight[:, :size] / self.std[:, :, None]
        xp = namespace(scaled)
        weight = xp.concatenate([scaled, first.weight[:, size:]], axis=1)
        shift = xp.sum(self.mean[:, :, None] * scaled, axis=1)
        return policy._replace(layers=(Layer(weight, first.bias - shift), *rest))
