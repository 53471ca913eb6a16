"""Hyper-parameters: floats are traced (so a grid of them can be vmapped), the rest is static."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import jax

from slackline.errors import SlacklineError, require_count, require_number
from slackline.types import Array

Algorithm = Literal["a2c", "ppo"]


@dataclass(frozen=True)
class Hyper:
    """What the learner is told. The defaults are the paper's for CartPole."""

    algorithm: Algorithm = "a2c"
    """a2c: the plain policy gradient. ppo: the clipped surrogate."""
    policy_lr: float = 1e-3
    """Adam step size of the policy."""
    critic_lr: float = 1e-3
    """Adam step size of the critic, where it has a network of its own (on vectors)."""
    final_lr: float = 1.0
    """Share of all step sizes, the discriminator's too, that is left at the end of training; they
    fall linearly. 1: they stay as they are."""
    discount: float = 0.99
    """Discount factor γ."""
    gae_lambda: float = 1.0
    """GAE coefficient λ."""
    entropy: float = 1e-3
    """Weight of the entropy bonus."""
    max_grad_norm: float = 2.0
    """Gradients longer than this are scaled down to it."""
    clip: float = 0.2
    """PPO only: how far the probability ratio may move from 1 and still be rewarded."""
    action_std: float = 0.5
    """Continuous actions only: the fixed standard deviation before squashing."""
    num_envs: int = 32
    """Parallel environments per seed."""
    num_steps: int = 8
    """Steps of each environment between two updates."""
    epochs: int = 1
    """Passes over the collected steps."""
    minibatches: int = 1
    """Parts each pass is cut into."""
    normalise_advantage: bool = False
    """Scale the advantages of a minibatch to mean 0 and standard deviation 1."""
    normalise_observation: bool = False
    """Scale observations by the mean and standard deviation of those seen in training so far."""
    block: int = 0
    """Environments stepped together, so that they stay in the processor's cache; blocks are shared
    out among the devices. 0: all of them at once, and seeds are shared out instead."""
    overlap: bool = False
    """Environments outside JAX only: they step on while the last steps are learnt from, with the
    policies from before."""
    hidden: tuple[int, ...] = (8, 8)
    """Widths of the policy's hidden layers."""
    apart: float = 1.0
    """lop, cop and bop only: 1 starts their anchors independently of each other (the paper), 0 in
    the same point."""
    layer_norm: bool = False
    """LayerNorm without parameters before each ReLU of the policy (vectors only)."""
    output_scale: float = 1.0
    """Factor on the initial weights of the policy's last layer; below 1 the first actions hardly
    depend on the observation (vectors only)."""
    critic_hidden: tuple[int, ...] = (8, 8)
    """Widths of the critic's hidden layers. On pixels the policy's network is the critic's too."""
    channels: tuple[int, ...] = (16, 32, 32)
    """Pixels only: widths of the convolutional blocks; anchors share all but the last of them."""
    patch: int = 1
    """Pixels only: squares of so many pixels a side are seen as one, with all their colours."""
    critic_coefficient: float = 1.0
    """Weight of the critic's loss; matters where it shares its network with the policy."""
    discriminator_lr: float = 1e-3
    """DIAYN+R and Lc only: Adam step size of the discriminator."""
    discriminator_hidden: tuple[int, ...] = (8, 8)
    """DIAYN+R and Lc only: widths of the discriminator's hidden layers."""

    @property
    def steps_per_iteration(self) -> int:
        return self.num_envs * self.num_steps

    @property
    def envs_per_block(self) -> int:
        return self.block or self.num_envs

    @property
    def num_blocks(self) -> int:
        return self.num_envs // self.envs_per_block

    def at(self, progress: Array) -> Hyper:
        """The hyper-parameters in force at `progress` in [0, 1] of the training."""
        left = 1.0 - (1.0 - self.final_lr) * progress
        rates = ("policy_lr", "critic_lr", "discriminator_lr")
        return replace(self, **{name: getattr(self, name) * left for name in rates})

    def check(self) -> None:
        """Refuse values no run could use. (Not in __post_init__: under jit floats are tracers.)"""
        if self.algorithm not in ("a2c", "ppo"):
            raise SlacklineError(f"algorithm is {self.algorithm!r}; it must be a2c or ppo")
        for name in ("policy_lr", "critic_lr", "discriminator_lr"):
            require_number(name, getattr(self, name), above=0.0, high=10.0)
        for name in ("discount", "gae_lambda", "final_lr"):
            require_number(name, getattr(self, name), low=0.0, high=1.0)
        require_number("entropy", self.entropy, low=0.0, high=1e3)
        require_number("max_grad_norm", self.max_grad_norm, above=0.0, high=1e9)
        require_number("clip", self.clip, above=0.0, high=10.0)
        require_number("critic_coefficient", self.critic_coefficient, above=0.0, high=1e3)
        require_number("apart", self.apart, low=0.0, high=1.0)
        require_number("output_scale", self.output_scale, low=0.0, high=100.0)
        require_number("action_std", self.action_std, above=0.0, high=10.0)
        for name in ("num_envs", "num_steps", "epochs", "minibatches"):
            require_count(name, getattr(self, name), high=65_536)
        require_count("num_envs × num_steps", self.steps_per_iteration, high=2**24)
        require_count("block", self.block, low=0, high=self.num_envs)
        if self.num_envs % self.envs_per_block:
            raise SlacklineError(
                f"block is {self.block}; it must divide num_envs, {self.num_envs}, or be 0"
            )
        if (self.envs_per_block * self.num_steps) % self.minibatches:
            of = "block × num_steps" if self.block else "num_envs × num_steps"
            raise SlacklineError(
                f"minibatches is {self.minibatches}; it must divide {of}, "
                f"{self.envs_per_block * self.num_steps}"
            )
        require_count("patch", self.patch, high=64)
        for name in ("hidden", "critic_hidden", "discriminator_hidden", "channels"):
            least = 1 if name == "channels" else 0
            layers = len(getattr(self, name))
            require_count(f"number of layers in {name}", layers, low=least, high=16)
            for width in getattr(self, name):
                require_count(name, width, high=16_384)


_TRACED = [f.name for f in fields(Hyper) if f.type == "float"]
_STATIC = [f.name for f in fields(Hyper) if f.type != "float"]
jax.tree_util.register_dataclass(Hyper, data_fields=_TRACED, meta_fields=_STATIC)


LATER: dict[str, Any] = {
    "normalise_observation": False,
    "block": 0,
    "overlap": False,
    "channels": (16, 32, 32),
    "patch": 1,
    "critic_coefficient": 1.0,
    "apart": 1.0,
    "final_lr": 1.0,
    "layer_norm": False,
    "output_scale": 1.0,
}
"""Fields that files of earlier versions lack, and what those versions did."""


def hyper_from_json(values: dict[str, Any]) -> Hyper:
    """Rebuild a Hyper from its JSON form; unknown or missing fields are an error."""
    values = LATER | values
    known = {f.name for f in fields(Hyper)}
    if set(values) != known:
        odd = ", ".join(sorted(set(values) ^ known))
        raise SlacklineError(f"hyper-parameters do not match this version (fields: {odd})")
    arguments: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
    }
    return Hyper(**arguments)
