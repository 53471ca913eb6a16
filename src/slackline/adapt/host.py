"""Adaptation on environments outside JAX: the episodes that adapters ask for, played in pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np

from slackline.adapt.stopping import Watch, Watched
from slackline.envs.api import Continuous, Discrete
from slackline.envs.host import HostEnv, HostParams
from slackline.errors import SlacklineError
from slackline.methods.method import Method
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.rollout import HostJobs, HostRunner, Played
from slackline.suites.suite import Suite, Variation, insist_on_spaces
from slackline.types import Array

SLOTS = 128
"""Most environments that are stepped together."""


class HostPlayer:
    """Plays the episodes that adapters ask for in pools of environments outside JAX."""

    def __init__(
        self,
        suite: Suite,
        method: Method,
        policies: Network,
        seeds: Sequence[int],
        variations: Sequence[Variation],
    ):
        self.variations, self.rounds = variations, 0
        self.play = partial(played_by, suite, method, policies, seeds)

    def tried(self, z: np.ndarray, number: np.ndarray, repeat: np.ndarray) -> np.ndarray:
        """The returns (S, V, n) of selection episodes at z (S, V, n, size); every round of them has
        episodes of its own."""
        phase = (0, self.rounds) if self.rounds else (0,)
        self.rounds += 1
        return self._played(z, phase)

    longest = None
    """Unknown: environments outside JAX need not declare a time limit."""

    def watched(
        self, z: np.ndarray, number: np.ndarray, repeat: np.ndarray, floors: np.ndarray
    ) -> Watched:
        """As `tried`, but episodes that fall below the floors (S, V, T) are stopped."""
        phase = (0, self.rounds) if self.rounds else (0,)
        self.rounds += 1
        watches = [Watch(floors[:, v], z.shape[2]) for v in range(len(self.variations))]
        found = [
            self.play(one, z[:, v], phase, watches[v]) for v, one in enumerate(self.variations)
        ]
        returns = np.stack([each.returns for each in found], axis=1)
        lengths = np.stack([each.lengths for each in found], axis=1)
        course = np.zeros((*returns.shape, max(int(lengths.max()), 1)))
        for s, v, i in np.ndindex(*returns.shape):
            steps = watches[v].partial[s][i]
            course[s, v, i, : len(steps)] = steps
        hopeless = np.stack([watch.hopeless for watch in watches], axis=1)
        return Watched(returns, lengths, hopeless, course)

    def fresh(self, z: np.ndarray, num: int) -> np.ndarray:
        """The returns (S, V, num) of fresh episodes at z (S, V, size)."""
        return self._played(np.repeat(z[:, :, None], num, axis=2), (1,))

    def _played(self, z: np.ndarray, phase: tuple[int, ...]) -> np.ndarray:
        found = [self.play(one, z[:, v], phase) for v, one in enumerate(self.variations)]
        return np.stack([each.returns for each in found], axis=1)


def played_by(
    suite: Suite,
    method: Method,
    policies: Network,
    seeds: Sequence[int],
    variation: Variation,
    zs: np.ndarray,
    phase: tuple[int, ...],
    watch: Watch | None = None,
) -> Played:
    """J episodes a seed (S, J), each at its own z (S, J, size), in a pool of their own.

    Selecting and scoring are different phases, and have different episodes."""
    env, params = host_of(suite, variation)
    slots = max(1, min(zs.shape[1], SLOTS // len(seeds)))
    drawn = [
        np.random.SeedSequence([seed, variation.label, *phase]).generate_state(slots) >> 1
        for seed in seeds
    ]
    act = partial(acting(method, suite.env.action), policies)
    runner = HostRunner(env, suite.horizon)
    return runner.episodes(act, HostJobs(params, zs, np.stack(drawn)), stop=watch)


@lru_cache(maxsize=32)
def acting(method: Method, action: Discrete | Continuous) -> Callable[..., Array]:
    """The deterministic actions (S, B, ...) of the policies (S, ...) at z (S, B, size)."""
    distribution = distribution_of(action)

    def one_seed(policy: Network, observation: Array, z: Array) -> Array:
        return distribution.greedy(method.outputs(policy, observation, z))

    def every_seed(policies: Network, observation: Array, z: Array) -> Array:
        if observation.ndim == 3:
            return jax.vmap(one_seed)(policies, observation, z)
        # Convolutions do not like to be batched over their weights.
        return jax.lax.map(lambda own: one_seed(*own), (policies, observation, z))

    return jax.jit(every_seed)


def host_of(suite: Suite, variation: Variation) -> tuple[HostEnv, HostParams]:
    """The environment a variation stands for: another one, or the suite's made differently."""
    home = suite.env
    assert isinstance(home, HostEnv)
    changed: Any = variation.env or variation.apply(home.default_params())
    if isinstance(changed, HostParams):
        return home, changed
    if not isinstance(changed, HostEnv):
        raise SlacklineError(
            f"variation {variation.name}: is a {type(changed).__name__}; it must be an environment "
            "or the parameters of one"
        )
    insist_on_spaces(changed.name, changed.spaces, home.name, home.spaces)
    return changed, changed.default_params()
