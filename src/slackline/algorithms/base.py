"""What an algorithm is: what is kept of the collected steps, and how an agent improves by it.

An algorithm is pure and holds no state: everything that it learns is in the state that `init` gives
and `update` moves on. It knows nothing of resets, meshes, vmapped seeds or environments outside
JAX.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from slackline.agents.agent import Agent
from slackline.io.decode import number
from slackline.parallel.blocks import Blocks
from slackline.types import Array, Transition


@dataclass(frozen=True)
class AlgorithmConfig:
    """Settings of every algorithm; each adds fields of its own in a subclass.

    `Hyper` inherits the configs of all algorithms, so a field becomes a flag (--hyper.NAME) and a
    Python argument of that name by being declared here or in a subclass.
    """

    policy_lr: float = number(1e-3, above=0.0, high=10.0)
    """Adam step size of the policy."""
    critic_lr: float = number(1e-3, above=0.0, high=10.0)
    """Adam step size of the critic, where it has a network of its own (on vectors)."""
    discriminator_lr: float = number(1e-3, above=0.0, high=10.0)
    """DIAYN+R and Lc only: Adam step size of the discriminator."""
    final_lr: float = number(1.0, low=0.0, high=1.0)
    """Share of all step sizes, the discriminator's too, that is left at the end of training; they
    fall linearly. 1: they stay as they are."""
    max_grad_norm: float = number(2.0, above=0.0, high=1e9)
    """Gradients longer than this are scaled down to it."""
    discount: float = number(0.99, low=0.0, high=1.0)
    """Discount factor γ."""
    reward_scale: float = number(1.0, above=0.0, high=1e6)
    """Rewards are multiplied by this where they are learnt from; returns are shown as they are."""

    def at(self, progress: Array) -> Any:
        """The hyper-parameters in force at `progress` in [0, 1] of the training."""
        left = 1.0 - (1.0 - self.final_lr) * progress
        rates = ("policy_lr", "critic_lr", "discriminator_lr")
        return replace(self, **{name: getattr(self, name) * left for name in rates})


class InitKeys(NamedTuple):
    """The keys that fresh networks are drawn from."""

    policy: Array
    critic: Array
    auxiliary: Array


class Algorithm(abc.ABC):
    """A way to learn; `algorithms/__init__.py` lists them.

    The state that `init` gives is a NamedTuple, whose fields name the tensors of a checkpoint. It
    has a `policy` and a `critic`, as `Agent.init` gives them: what a subspace file keeps.
    """

    name: str
    Config: type[AlgorithmConfig]

    def check(self, config: Any, steps_per_block: int) -> None:  # noqa: B027
        """Refuse settings that contradict each other; single fields declare their own bounds."""

    @abc.abstractmethod
    def init(self, keys: InitKeys, agent: Agent, config: Any) -> Any:
        """A fresh state: networks and optimiser states."""

    def act(
        self, agent: Agent, state: Any, noise: Array, observation: Array, z: Array, config: Any
    ) -> tuple[Array, Array, Array]:
        """How steps are collected: (the action as it is stored, as the environment takes it, the
        former's log-probability)."""
        return agent.act(state.policy, state.critic, noise, observation, z, config)

    @abc.abstractmethod
    def prepare(
        self, agent: Agent, state: Any, steps: Transition, config: Any, shortest_limit: int
    ) -> Any:
        """What `update` learns from, of one block's steps (T, N, ...) while they are in the cache.

        No episode is cut by its time limit before it has `shortest_limit` steps.
        """

    @abc.abstractmethod
    def update(
        self, key: Array, agent: Agent, state: Any, samples: Any, config: Any, blocks: Blocks
    ) -> tuple[Any, Any]:
        """(the state after an iteration, a NamedTuple of numbers to log), from the samples of all
        blocks of this device, (blocks, T, N, ...)."""

    @abc.abstractmethod
    def iterations_done(self, state: Any, config: Any) -> Array:
        """Iterations done so far, for the schedules."""
