"""Whole episodes of a deterministic policy, without learning."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from slackline.envs.api import Array, Env, Params
from slackline.learn.distributions import distribution_of
from slackline.networks import MLP


def episode_return(env: Env, horizon: int, policy: MLP, params: Params, key: Array) -> Array:
    """The undiscounted return of one episode of a plain policy, cut after `horizon` steps."""
    distribution = distribution_of(env.action)
    reset_key, step_key = jax.random.split(key)
    observation, state = env.reset(reset_key, params)

    def alive(carry: tuple[Array, Array, Any, Array, Array]) -> Array:
        time, _, _, _, done = carry
        return ~done & (time < horizon)

    def step(carry: tuple[Array, Array, Any, Array, Array]) -> Any:
        time, observation, state, total, _ = carry
        action = distribution.to_env(distribution.mode(policy(observation)))
        key = jax.random.fold_in(step_key, time)
        observation, state, reward, terminated = env.step(key, state, action, params)
        return time + 1, observation, state, total + reward, terminated

    first = (jnp.int32(0), observation, state, jnp.zeros(()), jnp.zeros((), bool))
    return jax.lax.while_loop(alive, step, first)[3]
