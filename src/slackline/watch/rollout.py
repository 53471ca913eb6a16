"""One episode of each of K policies, from the same start, every state kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Env, Params, State
from slackline.errors import SlacklineError
from slackline.learn.collect import where_done
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.subspace import Subspace
from slackline.suites.recorded import home_of
from slackline.suites.suite import Variation
from slackline.types import Array


class Episodes(NamedTuple):
    """Axes: time T + 1 or T, policy K."""

    states: State
    """A pytree of NumPy arrays (T + 1, K, ...), the start first; still after the end."""
    rewards: np.ndarray
    """(T, K), 0 after the end."""
    lengths: np.ndarray
    """Steps each policy took until it ended or time was up, (K,)."""
    terminated: np.ndarray
    """Whether the environment ended the episode, (K,)."""

    @property
    def returns(self) -> np.ndarray:
        """Of the whole episodes, (K,)."""
        return self.rewards.sum(axis=0)

    def return_until(self, step: int) -> np.ndarray:
        """Of the first `step` steps, (K,)."""
        return self.rewards[:step].sum(axis=0)

    def past(self, policy: int, step: int) -> State:
        """The states of one policy up to and after `step` steps, (step + 1, ...)."""
        return jax.tree.map(lambda leaf: leaf[: step + 1, policy], self.states)


def run_episodes(subspace: Subspace, variation: Variation, zs: np.ndarray) -> Episodes:
    """One whole episode of the policy at each z (K, size) on a changed environment."""
    suite, method = home_of(subspace), subspace.method
    env, distribution = suite.jax_env, distribution_of(suite.env.action)
    # Constants of the program: a robot's system has hundreds of numbers, and this runs once.
    params = variation.apply(env.default_params())
    key = jax.random.fold_in(jax.random.key(subspace.seed), variation.label)
    limit = int(env.time_limit(params, suite.horizon))

    def run(policy: Network, zs: Array, key: Array) -> tuple[State, Array, Array]:
        # One matrix product for all policies. K products of a vector would be none to XLA, which
        # makes one kernel of a loop without any (see runtime.py): compiling it takes gigabytes.
        def actions(observations: Array) -> Array:
            return distribution.greedy(method.outputs(policy, observations, zs))

        return roll_out(env, limit, len(zs), actions, params, key)

    policy = jax.tree.map(jnp.asarray, subspace.acting)
    found = jax.jit(run)(policy, jnp.asarray(zs), key)
    states, rewards, ended = jax.tree.map(np.asarray, found)
    if not np.isfinite(rewards).all():
        raise SlacklineError(
            f"an episode on {variation.name} returned a value that is not finite: "
            "the simulation broke down, and there is nothing to watch"
        )
    lengths = np.where(ended.any(axis=0), ended.argmax(axis=0) + 1, limit)
    return Episodes(states, rewards, lengths, ended.any(axis=0))


def roll_out(
    env: Env,
    horizon: int,
    num_policies: int,
    actions: Callable[[Array], Array],
    params: Params,
    key: Array,
) -> tuple[State, Array, Array]:
    """(states (T + 1, K, ...), rewards (T, K), ended (T, K)) of K policies from one start;
    `actions` gives theirs, (K, ...), for what they see, (K, ...)."""
    reset_key, step_key = jax.random.split(key)
    each_step = jax.vmap(env.step, in_axes=(None, 0, 0, None))

    def step(carry: tuple[Array, State, Array], time: Array) -> tuple[Any, Any]:
        observation, state, over = carry
        # The same chance for all.
        key = jax.random.fold_in(step_key, time)
        after = each_step(key, state, actions(observation), params)
        still = where_done(over, (observation, state), after[:2])
        reward = jnp.where(over, 0.0, after[2])
        over = over | after[3]
        return (*still, over), (still[1], reward, over)

    start = jax.tree.map(
        lambda leaf: jnp.repeat(leaf[None], num_policies, axis=0), env.reset(reset_key, params)
    )
    first = (*start, jnp.zeros(num_policies, bool))
    _, (states, rewards, over) = jax.lax.scan(step, first, jnp.arange(horizon))
    states = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), start[1], states)
    return states, rewards, over
