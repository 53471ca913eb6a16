"""One episode of each of K policies, from the same start, every state kept."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import State
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.rollout import CompiledRunner, Film, Fixed, Jobs, Played, insist_on_finite_returns
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
    params = variation.apply(env.default_params())
    limit = int(env.time_limit(params, suite.horizon))
    runner = CompiledRunner(Fixed(env, params), suite.horizon)

    def run(policy: Network, zs: Array, keys: Array) -> Played:
        # One matrix product for all policies. K products of a vector would be none to XLA, which
        # makes one kernel of a loop without any (see runtime.py): compiling it takes gigabytes.
        def act(observation: Array, z: Array) -> Array:
            return distribution.greedy(method.outputs(policy, observation, z))

        return runner.episodes(act, Jobs((), zs, keys), Film(limit))

    policy = jax.tree.map(jnp.asarray, subspace.acting)
    key = jax.random.fold_in(jax.random.key(subspace.seed), variation.label)
    # The same start and the same chances for all.
    played = jax.jit(run)(policy, jnp.asarray(zs), jnp.broadcast_to(key, len(zs)))
    insist_on_finite_returns(
        variation.name, np.asarray(played.returns), "there is nothing to watch"
    )
    return episodes_of(played)


def episodes_of(played: Played) -> Episodes:
    """What was filmed, time first; nothing moves and nothing is earned after an episode's end."""
    played = jax.tree.map(np.asarray, played)
    film, lengths = played.recorded, played.lengths
    policy, time = np.arange(len(lengths)), np.arange(film.rewards.shape[1] + 1)[:, None]
    rows = np.minimum(time, lengths)
    states = jax.tree.map(lambda frames: frames[policy, rows], film.frames)
    rewards = np.where(time[:-1] < lengths, film.rewards.T, 0.0)
    return Episodes(states, rewards, lengths, played.terminated)
