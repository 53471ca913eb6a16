"""How z reaches the policy."""

from __future__ import annotations

import abc
from dataclasses import dataclass

from slackline.methods.latent import Latent
from slackline.networks.impala import Network
from slackline.types import Array


class Conditioning(abc.ABC):
    """Runs the policy network at (observation, z), for a batch of z's or for one alone."""

    made_of_single = False
    """Whether a single policy is trained, and the anchors are made of it afterwards."""
    continuous_only = False
    """Whether it means nothing where actions are discrete."""
    vectors_only = False
    """Whether it cannot be used on pictures."""

    def spelt_out(self, latent: Latent, policy: Network, seed: int) -> Network:
        """The anchors (N, ...) of the policy that a seed trained, on NumPy."""
        return policy

    @abc.abstractmethod
    def num_anchors(self, latent: Latent) -> int:
        """How many anchors the policy has."""

    @abc.abstractmethod
    def input_size(self, latent: Latent, observation_size: int) -> int:
        """Size of the policy's input (for pictures: number of planes)."""

    @abc.abstractmethod
    def outputs(self, latent: Latent, policy: Network, observation: Array, z: Array) -> Array:
        """The network's outputs for observations (..., obs), each with its own z (..., size)."""

    @abc.abstractmethod
    def at(self, latent: Latent, policy: Network, z: Array) -> Network:
        """The plain network (one anchor, bare observation) that the policy is at one z (size,)."""


@dataclass(frozen=True)
class Anchors(Conditioning):
    """z picks the weights: θ(z) = Σ_k w_k(z) θ_k."""

    def num_anchors(self, latent: Latent) -> int:
        return latent.num_anchors

    def input_size(self, latent: Latent, observation_size: int) -> int:
        return observation_size

    def outputs(self, latent: Latent, policy: Network, observation: Array, z: Array) -> Array:
        return policy(observation, latent.weights(z))

    def at(self, latent: Latent, policy: Network, z: Array) -> Network:
        return policy.mix(latent.weights(z))


@dataclass(frozen=True)
class Concat(Conditioning):
    """z is concatenated to the observation, as further inputs of one network."""

    def num_anchors(self, latent: Latent) -> int:
        return 1

    def input_size(self, latent: Latent, observation_size: int) -> int:
        return observation_size + latent.size

    def outputs(self, latent: Latent, policy: Network, observation: Array, z: Array) -> Array:
        return policy.beside(observation, z)

    def at(self, latent: Latent, policy: Network, z: Array) -> Network:
        return policy.given(z)
