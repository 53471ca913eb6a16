"""A line from cautious to bold: one policy whose actions are scaled.

Of all directions in a policy's parameters the scale of its last layer is one that matters on a
robot that changed: a lighter one, or one that lost a sensor, wants to be moved less vigorously.
Nothing has to be trained for it, so that the line costs nothing: at the gain 1 it is the single
policy that was trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackline.io.decode import check, number
from slackline.methods.conditioning import Anchors
from slackline.methods.latent import Latent
from slackline.networks.impala import Network
from slackline.networks.mlp import MLP, Layer, repeated


@dataclass(frozen=True)
class Vigour(Anchors):
    """Two anchors, made of one trained policy: its last layer × `bold` and × `cautious`.

    A last layer that is scaled scales the actions (before they are squashed), and mixing is linear:
    the policy at z = (z_1, z_2) acts with the gain z_1 bold + z_2 cautious.
    """

    cautious: float = number(0.4, low=0.0, high=1.0)
    """What actions are multiplied by at z = 0."""
    bold: float = number(1.2, low=1.0, high=100.0)
    """What actions are multiplied by at z = 1."""

    made_of_single = True
    continuous_only = True
    vectors_only = True

    def __post_init__(self) -> None:
        check(self)

    def spelt_out(self, latent: Latent, policy: Network, seed: int) -> Network:
        assert isinstance(policy, MLP)
        gains: Any = np.array([self.bold, self.cautious], np.float32)
        twice: Any = repeated(policy, len(gains))
        *hidden, last = twice.layers
        scaled = Layer(last.weight * gains[:, None, None], last.bias * gains[:, None])
        return twice._replace(layers=(*hidden, scaled))
