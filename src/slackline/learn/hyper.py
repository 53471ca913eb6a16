"""Hyper-parameters: floats are traced (so a grid of them can be vmapped), the rest is static."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import jax

from slackline.agents.agent import NetworkConfig
from slackline.algorithms import ALGORITHMS
from slackline.errors import SlacklineError, require_count
from slackline.io.decode import check, count, decode, flag, one_of

if TYPE_CHECKING:
    AlgorithmName = str
else:
    AlgorithmName = Literal[tuple(ALGORITHMS)]
    """So that the command line lists them."""


@dataclass(frozen=True)
class _Chosen:
    """Which algorithm learns."""

    algorithm: AlgorithmName = one_of("a2c", lambda: ALGORITHMS)
    """a2c: the plain policy gradient. ppo: the clipped surrogate."""


@dataclass(frozen=True)
class CollectConfig:
    """How steps are collected."""

    num_envs: int = count(32, high=65_536)
    """Parallel environments per seed."""
    num_steps: int = count(8, high=65_536)
    """Steps of each environment between two updates."""
    block: int = count(0, low=0, high=65_536)
    """Environments stepped together, so that they stay in the processor's cache; blocks are
    distributed over the devices. 0: all at once, and seeds are distributed instead."""
    overlap: bool = flag(False)
    """Environments outside JAX only: collect the next steps while learning from the last ones, so
    that the policies that act are one update old."""
    normalise_observation: bool = flag(False)
    """Scale observations by the mean and standard deviation of those seen in training so far."""

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.num_steps

    @property
    def envs_per_block(self) -> int:
        return self.block or self.num_envs

    @property
    def num_blocks(self) -> int:
        return self.num_envs // self.envs_per_block

    def check_blocks(self) -> None:
        """Refuse counts that do not fit each other."""
        require_count("num_envs × num_steps", self.steps_per_iteration, high=2**24)
        require_count("block", self.block, low=0, high=self.num_envs)
        if self.num_envs % self.envs_per_block:
            raise SlacklineError(
                f"block is {self.block}; it must divide num_envs, {self.num_envs}, or be 0"
            )


def _algorithms_configs(configs: Iterable[type]) -> list[type]:
    """The algorithms' config classes, without those that another of them extends."""
    found = list(dict.fromkeys(configs))
    return [c for c in found if not any(issubclass(other, c) for other in found if other is not c)]


@dataclass(frozen=True)
class Hyper(
    NetworkConfig,
    CollectConfig,
    *_algorithms_configs(a.Config for a in ALGORITHMS.values()),
    _Chosen,
):
    """Hyper-parameters of a training. The defaults are the paper's for CartPole.

    One flat form for users: it inherits how steps are collected, what the networks are like, and
    the settings of every algorithm. Each of these parts is handed the whole and knows its own
    fields. Fields of algorithms that are not chosen do nothing; their help says whose they are.
    """

    def check(self) -> None:
        """Refuse values no run could use. (Not in __post_init__: under jit floats are tracers.)"""
        check(self)
        self.check_blocks()
        ALGORITHMS[self.algorithm].check(self, self.envs_per_block * self.num_steps)


_TRACED = [f.name for f in fields(Hyper) if f.type == "float"]
_STATIC = [f.name for f in fields(Hyper) if f.type != "float"]
jax.tree_util.register_dataclass(Hyper, data_fields=_TRACED, meta_fields=_STATIC)

FIRST = {
    *("algorithm", "policy_lr", "critic_lr", "discriminator_lr", "max_grad_norm", "discount"),
    *("gae_lambda", "entropy", "epochs", "minibatches", "normalise_advantage", "clip"),
    *("num_envs", "num_steps", "action_std", "hidden", "critic_hidden", "discriminator_hidden"),
}
"""Fields that files of all versions have. The defaults of later ones are what versions without
them did, so they must stay."""


def hyper_from_json(values: dict[str, Any]) -> Hyper:
    """Rebuild a Hyper from its JSON form; unknown or missing fields are an error."""
    return decode(Hyper, values, required=FIRST, what="hyper-parameters")
