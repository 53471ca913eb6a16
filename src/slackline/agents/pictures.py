"""Agents that see pictures: one network is policy and critic, and few fit the cache at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from slackline.agents.agent import Agent, NetworkConfig
from slackline.networks.impala import Block, Impala, Network, init_impala
from slackline.networks.strided import Strided
from slackline.parallel.blocks import mean_of_parts
from slackline.types import Array

PICTURES = 32
"""Pictures whose gradient is computed together on a CPU: more of them, with all their layers, would
not stay in its cache; see benchmarks/pixels.py."""

BLOCKS: dict[str, type[Block] | type[Strided]] = {"residual": Block, "strided": Strided}
"""By the setting `vision`."""


class PictureAgent(Agent):
    """A convolutional network whose last output is the value."""

    def network(
        self,
        key: Array,
        hidden: tuple[int, ...],
        extra: int,
        num_outputs: int,
        config: NetworkConfig,
        num_anchors: int = 1,
    ) -> Impala:
        widths, kind = (*hidden, num_outputs), BLOCKS[config.vision]
        seen, sizes = self.observation, (config.patch, config.channels, widths)
        return init_impala(key, seen, extra, *sizes, num_anchors, kind)

    def init(
        self, policy_key: Array, critic_key: Array, config: NetworkConfig
    ) -> tuple[Network, tuple[()]]:
        return self.anchors(policy_key, config, self.distribution.num_outputs + 1), ()

    def outputs_and_value(
        self, policy: Network, critic: Any, observation: Array, z: Array
    ) -> tuple[Array, Array]:
        outputs = self.method.outputs(policy, observation, z)
        return outputs[..., :-1], outputs[..., -1]

    def by_row(self, function: Callable[[Any], Array], rows: Any) -> Array:
        return jax.lax.map(function, rows)

    def mean_over(self, function: Callable[[Any], Any], samples: Any) -> Any:
        if jax.default_backend() != "cpu":
            return function(samples)
        return mean_of_parts(function, samples, PICTURES)
