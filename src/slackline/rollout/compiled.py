"""The runner of environments in JAX: pure functions, which its callers vmap and compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from slackline.envs.api import Env, Params
from slackline.parallel import keys
from slackline.rollout.base import Act, DrawZ, Greedy, Jobs, Moment, Played, Recorder, Totals
from slackline.types import Array, Transition


class Running(NamedTuple):
    """N environments in mid-episode; every field has a leading axis N."""

    env_state: Any
    observation: Array
    z: Array
    elapsed: Array
    episode_return: Array


class Playing(NamedTuple):
    """B episodes being played; every field but the time has a leading axis B."""

    time: Array
    observation: Array
    state: Any
    total: Array
    over: Array
    length: Array
    terminated: Array
    record: Any


@dataclass(frozen=True)
class CompiledRunner:
    """Plays `env`, whose episodes are cut after `horizon` steps or the environment's own limit."""

    env: Env
    horizon: int

    @property
    def shortest_limit(self) -> int:
        """No episode is truncated before it has this many steps."""
        with jax.ensure_compile_time_eval():
            return int(self.env.time_limit(self.env.default_params(), self.horizon))

    def start(self, key: Array, draw_z: DrawZ, num_envs: int) -> Running:
        """Reset N environments with their standard parameters and draw their first z's."""
        reset_key, z_key = jax.random.split(keys.fast(key))
        reset_keys, params = jax.random.split(reset_key, num_envs), self.env.default_params()
        observation, env_state = jax.vmap(self.env.reset, in_axes=(0, None))(reset_keys, params)
        return Running(
            env_state=env_state,
            observation=observation,
            z=draw_z(z_key, num_envs),
            elapsed=jnp.zeros(num_envs, jnp.int32),
            episode_return=jnp.zeros(num_envs),
        )

    def steps(
        self, key: Array, running: Running, act: Act, draw_z: DrawZ, noise: Array
    ) -> tuple[Running, Transition, Totals]:
        """Step every environment once for each row of noise (T, N, ...), which `act` samples
        actions from; where an episode ends, one with a new z begins.

        The noise is drawn before, all at once, because that is much faster than step by step.
        """
        num_steps, num_envs = noise.shape[:2]
        key = keys.fast(key)

        def step(running: Running, chance: Any) -> tuple[Running, tuple[Transition, Totals]]:
            (step_key, start_key), noise = chance
            stepped, transition, done = self._step(step_key, running, act, noise)

            def restart(stepped: Running) -> Running:
                return where_done(done, self.start(start_key, draw_z, num_envs), stepped)

            # A reset may cost as much as a step, and most steps end no episode.
            running = jax.lax.cond(jnp.any(done), restart, lambda stepped: stepped, stepped)
            return running, (transition, totals_of(stepped, transition, done))

        chances = (jax.random.split(key, (num_steps, 2)), noise)
        running, (transitions, ended) = jax.lax.scan(step, running, chances)
        sums = jax.tree.map(lambda x: jnp.sum(x, axis=0), ended)
        return running, transitions, sums._replace(sound=jnp.sum(jnp.cumprod(ended.sound)))

    def _step(
        self, key: Array, running: Running, act: Act, noise: Array
    ) -> tuple[Running, Transition, Array]:
        """(the environments after one step and before any reset, the step, which ended)"""
        params = self.env.default_params()
        action, env_action, log_prob = act(noise, running.observation, running.z)
        env_keys = jax.random.split(key, running.elapsed.shape[0])
        observation, env_state, reward, terminated = jax.vmap(
            self.env.step, in_axes=(0, 0, 0, None)
        )(env_keys, running.env_state, env_action, params)
        stepped = Running(
            env_state,
            observation,
            running.z,
            running.elapsed + 1,
            running.episode_return + reward,
        )
        done = terminated | (stepped.elapsed >= self.env.time_limit(params, self.horizon))
        transition = Transition(
            observation=running.observation,
            z=running.z,
            action=action,
            log_prob=log_prob,
            reward=reward,
            terminated=terminated,
            truncated=done & ~terminated,
            next_observation=observation,
        )
        return stepped, transition, done

    def episodes(self, act: Greedy, jobs: Jobs, recorder: Recorder | None = None) -> Played:
        """Play every job to its end, all side by side.

        The steps after the end of the shorter ones are computed and thrown away.
        """
        reset_keys, step_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys.fast(jobs.key)), 1, 0)
        observation, state, limit = jax.vmap(self._begin)(reset_keys, jobs.params)
        num = jobs.key.shape[0]

        def going(now: Playing) -> Array:
            return ~jnp.all(now.over)

        def step(now: Playing) -> Playing:
            now_keys = jax.vmap(lambda key: jax.random.fold_in(key, now.time))(step_keys)
            observation, state, reward, terminated = jax.vmap(self.env.step)(
                now_keys, now.state, act(now.observation, jobs.z), jobs.params
            )
            sound = finite_rows(observation) & jnp.isfinite(reward)
            time = now.time + 1
            moment = Moment(now.time, state, observation, reward, ~now.over)
            return Playing(
                time,
                observation,
                state,
                now.total + jnp.where(now.over, 0.0, jnp.where(sound, reward, jnp.nan)),
                now.over | terminated | (time >= limit) | ~sound,
                now.length + (~now.over).astype(jnp.int32),
                now.terminated | (terminated & sound & ~now.over),
                () if recorder is None else add_to_all(recorder, now.record, moment),
            )

        first = Playing(
            jnp.int32(0),
            observation,
            state,
            jnp.zeros(num),
            jnp.zeros(num, bool),
            jnp.zeros(num, jnp.int32),
            jnp.zeros(num, bool),
            () if recorder is None else jax.vmap(recorder.begin)(state, observation),
        )
        last = jax.lax.while_loop(going, step, first)
        return Played(last.total, last.length, last.terminated, last.record)

    def _begin(self, key: Array, params: Params) -> tuple[Array, Any, Array]:
        """(observation, state, time limit) of one episode."""
        return *self.env.reset(key, params), jnp.int32(self.env.time_limit(params, self.horizon))


class Fixed(Env):
    """An environment with one set of parameters, which become constants of the program:
    most of a robot's hundreds of numbers are zeros and ones, and the program gets smaller."""

    def __init__(self, env: Env, params: Params):
        self.env, self.params = env, params
        self.observation_size, self.action = env.observation_size, env.action

    def default_params(self) -> tuple[()]:
        return ()

    def reset(self, key: Array, params: Any) -> tuple[Array, Any]:
        return self.env.reset(key, self.params)

    def step(self, key: Array, state: Any, action: Array, params: Any) -> Any:
        return self.env.step(key, state, action, self.params)

    def time_limit(self, params: Any, horizon: int) -> int | Array:
        return self.env.time_limit(self.params, horizon)


def totals_of(stepped: Running, transition: Transition, done: Array) -> Totals:
    """Of one step of N environments."""
    observation, reward = transition.next_observation, transition.reward
    return Totals(
        count=jnp.sum(done),
        return_sum=jnp.sum(stepped.episode_return, where=done),
        length_sum=jnp.sum(stepped.elapsed, where=done),
        sound=jnp.all(jnp.isfinite(observation)) & jnp.all(jnp.isfinite(reward)),
    )


def add_to_all(recorder: Recorder, records: Any, moments: Moment) -> Any:
    """The records of B episodes with one more step of each; the time is the same for all."""
    axes = Moment(None, 0, 0, 0, 0)  # type: ignore[arg-type]
    return jax.vmap(recorder.add, in_axes=(0, axes))(records, moments)


def where_done(done: Array, fresh: Any, stepped: Any) -> Any:
    """Per environment, `fresh` where its episode is done and `stepped` elsewhere."""

    def pick(new: Array, old: Array) -> Array:
        return jnp.where(done.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(pick, fresh, stepped)


def finite_rows(x: Array) -> Array:
    """Whether all numbers of each row (B, ...) are finite."""
    return jnp.all(jnp.isfinite(x), axis=tuple(range(1, x.ndim)))
