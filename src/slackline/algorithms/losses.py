"""The advantage estimate and the critic's loss, as pure functions of arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from slackline.parallel import collectives
from slackline.types import Array


def gae(
    rewards: Array,
    values: Array,
    next_values: Array,
    terminated: Array,
    truncated: Array,
    discount: float | Array,
    gae_lambda: float | Array,
) -> Array:
    """Generalised advantage estimates; all arrays and the result are (T, N).

        δ_t = r_t + γ (1 − terminated_t) V(s'_t) − V(s_t)
        A_t = δ_t + γ λ (1 − done_t) A_{t+1}

    V(s'_t) is the value of the observation that step t reached, so an episode cut by its time limit
    bootstraps while one that terminated does not.
    """
    deltas = rewards + discount * jnp.where(terminated, 0.0, next_values) - values
    decay = jnp.where(terminated | truncated, 0.0, discount * gae_lambda)

    def back(advantage: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, decay = step
        advantage = delta + decay * advantage
        return advantage, advantage

    _, advantages = jax.lax.scan(back, jnp.zeros_like(deltas[0]), (deltas, decay), reverse=True)
    return advantages


def normalise(advantage: Array, axis: str | None = None) -> Array:
    """Mean 0, standard deviation 1 along the last dimension, and over the devices of `axis`."""
    centred = advantage - collectives.mean(jnp.mean(advantage, axis=-1, keepdims=True), axis)
    variance = collectives.mean(jnp.mean(jnp.square(centred), axis=-1, keepdims=True), axis)
    return centred / (jnp.sqrt(variance) + 1e-8)


def value_loss(value: Array, target: Array) -> Array:
    """E[(V(s, z) − R̂)²]"""
    return jnp.mean(jnp.square(value - target))
