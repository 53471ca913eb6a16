"""How z reaches the policy."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import jax.numpy as jnp

from slackline.envs.api import Array
from slackline.methods.latent import Latent
from slackline.networks import MLP, Layer


class Conditioning(abc.ABC):
    """Runs the policy network at (observation, z), for a batch of z's or for one alone."""

    @abc.abstractmethod
    def num_anchors(self, latent: Latent) -> int:
        """How many anchors the policy has."""

    @abc.abstractmethod
    def input_size(self, latent: Latent, observation_size: int) -> int:
        """How wide the policy's input is."""

    @abc.abstractmethod
    def outputs(self, latent: Latent, policy: MLP, observation: Array, z: Array) -> Array:
        """The network's outputs for observations (..., obs), each with its own z (..., size)."""

    @abc.abstractmethod
    def at(self, latent: Latent, policy: MLP, z: Array) -> MLP:
        """The plain network (one anchor, bare observation) that the policy is at one z (size,)."""


@dataclass(frozen=True)
class Anchors(Conditioning):
    """z picks the weights: θ(z) = Σ_k w_k(z) θ_k."""

    def num_anchors(self, latent: Latent) -> int:
        return latent.num_anchors

    def input_size(self, latent: Latent, observation_size: int) -> int:
        return observation_size

    def outputs(self, latent: Latent, policy: MLP, observation: Array, z: Array) -> Array:
        return policy(observation, latent.weights(z))

    def at(self, latent: Latent, policy: MLP, z: Array) -> MLP:
        return policy.mix(latent.weights(z))


@dataclass(frozen=True)
class Concat(Conditioning):
    """z stands beside the observation as further inputs of one network."""

    def num_anchors(self, latent: Latent) -> int:
        return 1

    def input_size(self, latent: Latent, observation_size: int) -> int:
        return observation_size + latent.size

    def outputs(self, latent: Latent, policy: MLP, observation: Array, z: Array) -> Array:
        return policy(jnp.concatenate([observation, z], axis=-1))

    def at(self, latent: Latent, policy: MLP, z: Array) -> MLP:
        """A constant input is a bias: x W_x + z W_z + b."""
        first, *rest = policy.layers
        observation_size = first.weight.shape[-2] - latent.size
        weight, for_z = first.weight[:, :observation_size], first.weight[:, observation_size:]
        absorbed = Layer(weight, first.bias + jnp.einsum("i,nio->no", z, for_z))
        return MLP((absorbed, *rest))
