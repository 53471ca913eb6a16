"""Collect: step N environments T times. The only place that resets and that keeps time limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from slackline.envs.api import Env, Params
from slackline.methods.latent import Latent
from slackline.types import Array, Transition


class Running(NamedTuple):
    """N environments in mid-episode; every field has a leading axis N."""

    env_state: Any
    observation: Array
    z: Array
    elapsed: Array
    episode_return: Array


class Episodes(NamedTuple):
    """Sums over the episodes that ended, and whether the simulation held."""

    count: Array
    return_sum: Array
    length_sum: Array
    sound: Array
    """How many steps were taken before one that led to NaN or infinite values."""


Act = Callable[[Array, Array, Array], tuple[Array, Array, Array]]
"""(noise (N, ...), observations (N, ...), z (N, size)) -> (actions as they are stored, as the
environment takes them, the former's log-probabilities)"""


def start(key: Array, env: Env, params: Params, latent: Latent, num_envs: int) -> Running:
    """Reset N environments and draw their first z's."""
    reset_key, z_key = jax.random.split(key)
    keys = jax.random.split(reset_key, num_envs)
    observation, env_state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    return Running(
        env_state=env_state,
        observation=observation,
        z=latent.sample(z_key, num_envs),
        elapsed=jnp.zeros(num_envs, jnp.int32),
        episode_return=jnp.zeros(num_envs),
    )


def collect(
    key: Array,
    running: Running,
    act: Act,
    noise: Array,
    env: Env,
    params: Params,
    latent: Latent,
    horizon: int,
) -> tuple[Running, Transition, Episodes]:
    """Step every environment once for each row of noise (T, N, ...), which is what `act` needs of
    chance; where an episode ends, one with a new z begins."""
    num_steps, num_envs = noise.shape[:2]
    limit = env.time_limit(params, horizon)

    def step(running: Running, chance: Any) -> tuple[Running, tuple[Transition, Episodes]]:
        (step_key, start_key), noise = chance
        action, env_action, log_prob = act(noise, running.observation, running.z)
        step_keys = jax.random.split(step_key, num_envs)
        next_observation, env_state, reward, terminated = jax.vmap(
            env.step, in_axes=(0, 0, 0, None)
        )(step_keys, running.env_state, env_action, params)
        stepped = Running(
            env_state,
            next_observation,
            running.z,
            running.elapsed + 1,
            running.episode_return + reward,
        )
        done = terminated | (stepped.elapsed >= limit)
        transition = Transition(
            observation=running.observation,
            z=running.z,
            action=action,
            log_prob=log_prob,
            reward=reward,
            terminated=terminated,
            truncated=done & ~terminated,
            next_observation=next_observation,
        )
        ended = Episodes(
            count=jnp.sum(done),
            return_sum=jnp.sum(stepped.episode_return, where=done),
            length_sum=jnp.sum(stepped.elapsed, where=done),
            sound=jnp.all(jnp.isfinite(next_observation)) & jnp.all(jnp.isfinite(reward)),
        )

        def restart(stepped: Running) -> Running:
            return where_done(done, start(start_key, env, params, latent, num_envs), stepped)

        # A reset may cost as much as a step, and most steps end no episode.
        running = jax.lax.cond(jnp.any(done), restart, lambda stepped: stepped, stepped)
        return running, (transition, ended)

    keys = jax.random.split(key, (num_steps, 2))
    running, (transitions, ended) = jax.lax.scan(step, running, (keys, noise))
    sums = jax.tree.map(lambda x: jnp.sum(x, axis=0), ended)
    return running, transitions, sums._replace(sound=jnp.sum(jnp.cumprod(ended.sound)))


def where_done(done: Array, fresh: Any, stepped: Any) -> Any:
    """Per environment, `fresh` where its episode is done and `stepped` elsewhere."""

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(done.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, fresh, stepped)
