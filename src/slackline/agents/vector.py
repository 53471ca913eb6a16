"""Agents that see vectors: policy and critic are networks of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from slackline.agents.agent import Agent, NetworkConfig
from slackline.networks.impala import Network
from slackline.networks.mlp import MLP, NormedMLP, init_mlp
from slackline.types import Array


class VectorAgent(Agent):
    """Policy and critic, each a multi-layer perceptron."""

    def network(
        self,
        key: Array,
        hidden: tuple[int, ...],
        extra: int,
        num_outputs: int,
        config: NetworkConfig,
        num_anchors: int = 1,
    ) -> MLP:
        (size,) = self.observation
        return init_mlp(key, (size + extra, *hidden, num_outputs), num_anchors)

    def init(self, policy_key: Array, critic_key: Array, config: NetworkConfig) -> tuple[MLP, MLP]:
        policy: Any = self.anchors(policy_key, config, self.distribution.num_outputs)
        policy, size = shaped(policy, config), self.method.latent.size
        return policy, self.network(critic_key, config.critic_hidden, size, 1, config)

    def outputs_and_value(
        self, policy: Network, critic: Any, observation: Array, z: Array
    ) -> tuple[Array, Array]:
        outputs = self.method.outputs(policy, observation, z)
        return outputs, critic.beside(observation, z)[..., 0]

    def by_row(self, function: Callable[[Any], Array], rows: Any) -> Array:
        return function(rows)

    def mean_over(self, function: Callable[[Any], Any], samples: Any) -> Any:
        return function(samples)


def shaped(policy: MLP, config: NetworkConfig) -> MLP:
    """A fresh policy with the last layer scaled and with LayerNorm, if `config` says so."""
    *hidden, last = policy.layers
    last = jax.tree.map(lambda x: x * config.output_scale, last)
    return (NormedMLP if config.layer_norm else MLP)((*hidden, last))
