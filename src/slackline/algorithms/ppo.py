"""Proximal policy optimisation (Schulman et al., 2017): epochs of minibatches on a surrogate that
stops rewarding a policy for moving once it is `clip` away from the one that acted."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from slackline.algorithms.actor_critic import ActorCritic, ActorCriticConfig, Samples
from slackline.io.decode import number
from slackline.types import Array


@dataclass(frozen=True)
class PPOConfig(ActorCriticConfig):
    """Settings of PPO."""

    clip: float = number(0.2, above=0.0, high=10.0)
    """PPO only: clipping range ε of the probability ratio."""


class PPO(ActorCritic):
    name = "ppo"
    Config = PPOConfig

    def surrogate(self, log_prob: Array, samples: Samples, config: PPOConfig) -> Array:
        return ppo_surrogate(log_prob, samples.step.log_prob, samples.advantage, config.clip)


def ppo_surrogate(
    log_prob: Array, old_log_prob: Array, advantage: Array, clip: float | Array
) -> Array:
    """−E[min(ρ A, clip(ρ, 1 − ε, 1 + ε) A)] with ρ = π(a|s) / π_old(a|s)"""
    ratio = jnp.exp(log_prob - old_log_prob)
    clipped = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))
