"""Advantage actor-critic (Mnih et al., 2016), synchronous: the plain policy gradient."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from slackline.algorithms.actor_critic import ActorCritic, ActorCriticConfig, Samples
from slackline.types import Array


class A2C(ActorCritic):
    name = "a2c"
    Config = ActorCriticConfig

    def surrogate(self, log_prob: Array, samples: Samples, config: Any) -> Array:
        return a2c_surrogate(log_prob, samples.advantage)


def a2c_surrogate(log_prob: Array, advantage: Array) -> Array:
    """−E[log π(a|s) A]"""
    return -jnp.mean(log_prob * advantage)
