"""One policy whose anchors trust their sensors differently.

A changed environment wants other weights on what is seen: a longer pole is held by looking more at
its angle and less at its speed. Nothing has to be trained for it, so that it costs nothing: in the
middle of the anchors is the single policy that was trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackline.io.decode import check, number
from slackline.methods.conditioning import Anchors
from slackline.methods.latent import Latent
from slackline.networks.impala import Network


@dataclass(frozen=True)
class Senses(Anchors):
    """N anchors, made of one trained policy: the weights of every input × a gain of the anchor's.

    Gains are log-normal, drawn for every training seed, and divided by their mean over the anchors.
    Mixing is linear: the policy at z weighs its inputs with Σ_k z_k g_k, and with 1 at the centre.
    On pictures the inputs are those of the last block, below which all anchors are one.
    """

    trust: float = number(0.5, above=0.0, high=10.0)
    """How far the trust in a sensor varies: standard deviation of the logarithm of its gain."""

    made_of_single = True

    def __post_init__(self) -> None:
        check(self)

    def spelt_out(self, latent: Latent, policy: Network, seed: int) -> Network:
        return policy.weighing(self.gains(latent.num_anchors, policy.num_weighed, seed))

    def gains(self, anchors: int, inputs: int, seed: int) -> np.ndarray:
        """(N, inputs), with mean 1 over the anchors."""
        draw = np.random.default_rng((seed, anchors))
        gains = np.exp(self.trust * draw.standard_normal((anchors, inputs)))
        return (gains / gains.mean(axis=0)).astype(np.float32)
