"""Whole episodes of deterministic policies, without learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from slackline.envs.api import Env, Params
from slackline.types import Array


class Playing(NamedTuple):
    """Episodes in hand; all but the time has a leading axis B."""

    time: Array
    observation: Array
    state: Any
    total: Array
    over: Array


def episode_returns(
    env: Env, horizon: int, act: Callable[[Array], Array], params: Params, keys: Array
) -> Array:
    """Undiscounted returns (B,) of B episodes, cut after `horizon` steps or the environment's own;
    NaN where the simulation broke down, whatever it paid.

    `act` turns observations (B, ...) into actions; params and keys have a leading axis B.
    """

    def start(key: Array, params: Params) -> tuple[Array, Any, Array]:
        return *env.reset(key, params), jnp.int32(env.time_limit(params, horizon))

    reset_keys, step_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    observation, state, limit = jax.vmap(start)(reset_keys, params)

    def going(now: Playing) -> Array:
        return ~jnp.all(now.over)

    def step(now: Playing) -> Playing:
        keys = jax.vmap(lambda key: jax.random.fold_in(key, now.time))(step_keys)
        observation, state, reward, terminated = jax.vmap(env.step)(
            keys, now.state, act(now.observation), params
        )
        paid = jnp.where(finite_rows(observation), reward, jnp.nan)
        total = now.total + jnp.where(now.over, 0.0, paid)
        time = now.time + 1
        return Playing(time, observation, state, total, now.over | terminated | (time >= limit))

    num = keys.shape[0]
    first = Playing(jnp.int32(0), observation, state, jnp.zeros(num), jnp.zeros(num, bool))
    return jax.lax.while_loop(going, step, first).total


def finite_rows(x: Array) -> Array:
    """Whether all numbers of each row (B, ...) are finite."""
    return jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim)))
