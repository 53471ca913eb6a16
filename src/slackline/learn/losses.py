"""The advantage estimate and the losses, as pure functions of arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from slackline.learn import across
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
    centred = advantage - across.mean(jnp.mean(advantage, axis=-1, keepdims=True), axis)
    variance = across.mean(jnp.mean(jnp.square(centred), axis=-1, keepdims=True), axis)
    return centred / (jnp.sqrt(variance) + 1e-8)


def a2c_surrogate(log_prob: Array, advantage: Array) -> Array:
    """−E[log π(a|s) A]"""
    return -jnp.mean(log_prob * advantage)


def ppo_surrogate(
    log_prob: Array, old_log_prob: Array, advantage: Array, clip: float | Array
) -> Array:
    """−E[min(ρ A, clip(ρ, 1 − ε, 1 + ε) A)] with ρ = π(a|s) / π_old(a|s)"""
    ratio = jnp.exp(log_prob - old_log_prob)
    clipped = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))


def value_loss(value: Array, target: Array) -> Array:
    """E[(V(s, z) − R̂)²]"""
    return jnp.mean(jnp.square(value - target))
