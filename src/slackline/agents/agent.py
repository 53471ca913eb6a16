"""The interface of agents, and what they share."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

from slackline.envs.api import Continuous, Discrete
from slackline.io.decode import count, counts, flag, number, one_of
from slackline.methods.method import Method
from slackline.networks.distributions import Distribution, distribution_of
from slackline.networks.impala import Network
from slackline.types import Array

WIDEST = 16_384
"""The most units, or channels, of a layer."""

Vision = Literal["residual", "strided"]


@dataclass(frozen=True)
class NetworkConfig:
    """The networks of an agent."""

    hidden: tuple[int, ...] = counts((8, 8), high=WIDEST)
    """Widths of the policy's hidden layers."""
    critic_hidden: tuple[int, ...] = counts((8, 8), high=WIDEST)
    """Widths of the critic's hidden layers. On pixels the policy's network is the critic's too."""
    discriminator_hidden: tuple[int, ...] = counts((8, 8), high=WIDEST)
    """DIAYN+R and Lc only: widths of the discriminator's hidden layers."""
    action_std: float = number(0.5, above=0.0, high=10.0)
    """Continuous actions only: the fixed standard deviation before squashing."""
    apart: float = number(1.0, low=0.0, high=1.0)
    """lop, cop and bop only: 1 starts their anchors independently of each other (the paper), 0 in
    the same point."""
    layer_norm: bool = flag(False)
    """LayerNorm without parameters before each ReLU of the policy (vectors only)."""
    output_scale: float = number(1.0, low=0.0, high=100.0)
    """Factor on the initial weights of the policy's last layer; below 1 the first actions hardly
    depend on the observation (vectors only)."""
    channels: tuple[int, ...] = counts((16, 32, 32), high=WIDEST, shortest=1)
    """Pixels only: widths of the convolutional blocks; anchors share all but the last of them."""
    patch: int = count(1, high=64)
    """Pixels only: side of the squares of pixels that are merged into one (more channels)."""
    vision: Vision = one_of("residual", lambda: get_args(Vision))
    """Pixels only: IMPALA's residual blocks, or strided ones, a single convolution each, which cost
    about a tenth. The first of these does not halve the size: patch 4 suits it."""


@dataclass(frozen=True)
class Agent(abc.ABC):
    """The policies of a method and their critic, for one kind of observation and action.

    It holds no parameters. Policy and critic are what `init` gave; the critic is () where the
    policy's network has the value as its last output.
    """

    observation: tuple[int, ...]
    """Shape of one observation."""
    action: Discrete | Continuous
    method: Method

    @property
    def distribution(self) -> Distribution:
        return distribution_of(self.action)

    def at(self, progress: Array) -> Agent:
        """The agent at `progress` in [0, 1] of the training, as its method's schedules want it."""
        return replace(self, method=self.method.at(progress))

    @abc.abstractmethod
    def network(
        self,
        key: Array,
        hidden: tuple[int, ...],
        extra: int,
        num_outputs: int,
        config: NetworkConfig,
        num_anchors: int = 1,
    ) -> Network:
        """A fresh network of an observation with `extra` numbers beside it."""

    @abc.abstractmethod
    def init(
        self, policy_key: Array, critic_key: Array, config: NetworkConfig
    ) -> tuple[Network, Network | tuple[()]]:
        """A fresh (policy, critic)."""

    @abc.abstractmethod
    def outputs_and_value(
        self, policy: Network, critic: Any, observation: Array, z: Array
    ) -> tuple[Array, Array]:
        """What the distribution takes, (..., num_outputs), from the policy at z, and V(s, z): the
        critic always sees z."""

    @abc.abstractmethod
    def by_row(self, function: Callable[[Any], Array], rows: Any) -> Array:
        """`function` of rows (T, ...), all at once or, where they are large, one after another."""

    @abc.abstractmethod
    def mean_over(self, function: Callable[[Any], Any], samples: Any) -> Any:
        """`function`, a mean over samples such as a loss's gradient, of samples (B, ...): all at
        once or, where they are large, a few at a time."""

    def anchors(self, key: Array, config: NetworkConfig, num_outputs: int) -> Network:
        """The policy's network, its anchors where they start."""
        latent, conditioning = self.method.latent, self.method.conditioning
        extra, num = conditioning.input_size(latent, 0), conditioning.num_anchors(latent)
        policy = self.network(key, config.hidden, extra, num_outputs, config, num)
        return self.method.movement.start(policy, config.apart)

    def auxiliary(self, key: Array, config: NetworkConfig) -> Any:
        """The method's own network (a discriminator), or ()."""

        def make(extra: int, num_outputs: int) -> Network:
            return self.network(key, config.discriminator_hidden, extra, num_outputs, config)

        size = self.distribution.num_outputs
        return self.method.auxiliary.init(make, self.method.latent, size)

    def act(
        self,
        policy: Network,
        critic: Any,
        noise: Array,
        observation: Array,
        z: Array,
        config: NetworkConfig,
    ) -> tuple[Array, Array, Array]:
        """(the action as it is stored, as the environment takes it, the former's log-prob)"""
        outputs, _ = self.outputs_and_value(policy, critic, observation, z)
        action = self.distribution.sample(noise, outputs, config.action_std)
        log_prob = self.distribution.log_prob(outputs, action, config.action_std)
        return action, self.distribution.to_env(action), log_prob

    def values(self, policy: Network, critic: Any, observation: Array, z: Array) -> Array:
        """V(s, z) of rows (T, N, ...)."""
        judge = partial(self.outputs_and_value, policy, critic)
        return self.by_row(lambda row: judge(*row)[1], (observation, z))
