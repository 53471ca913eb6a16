"""The states that policies visit, played by the runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from slackline.adapt.host import acting, host_of
from slackline.adapt.kshot import Partly, changing_numbers
from slackline.errors import SlacklineError
from slackline.methods.method import Method
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.rollout import CompiledRunner, Film, HostJobs, HostRunner, Jobs, Played
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation
from slackline.types import Array

MAX_ROUNDS = 10_000


@dataclass
class Visitor:
    """Collects states (K, num, size) of K policies of a subspace on a suite's variations.

    Episodes are played in rounds of equal size, so that everything is compiled once.
    """

    suite: Suite
    method: Method
    variations: tuple[Variation, ...]
    _play: Callable[..., Played] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.suite.env.observation_shape) != 1:
            raise SlacklineError(
                f"{self.suite.name} shows pictures; states are collected as vectors only"
            )
        self._play = self._compiled() if self.suite.env.in_jax else self._on_a_host

    def visited(
        self, subspace: Subspace, variation: Variation, zs: np.ndarray, num: int, phase: int
    ) -> np.ndarray:
        """The first `num` states of each policy; every phase has episodes of its own."""
        episodes = max(1, -(-num // self.suite.horizon))
        found: list[list[np.ndarray]] = [[] for _ in zs]
        for turn in range(MAX_ROUNDS):
            place = (subspace.seed, variation.label, phase, turn)
            played = self._play(subspace, variation, np.repeat(zs, episodes, axis=0), place)
            frames, lengths = np.asarray(played.recorded.frames), np.asarray(played.lengths)
            for i, (film, length) in enumerate(zip(frames, lengths, strict=True)):
                found[i // episodes].append(film[:length])
            if min(sum(map(len, own)) for own in found) >= num:
                break
        return np.stack([np.concatenate(own)[:num] for own in found])

    def _compiled(self) -> Callable[..., Played]:
        env, params = self.suite.jax_env, self.suite.params_of(self.variations)
        part = Partly(env, changing_numbers(params, env.default_params()))
        stacked, names = part.part_of(params), [v.name for v in self.variations]
        limit = max(int(env.time_limit(v.apply(env.default_params()), self.suite.horizon))
                    for v in self.variations)  # fmt: skip
        runner = CompiledRunner(part, self.suite.horizon)
        distribution, method = distribution_of(self.suite.env.action), self.method

        def run(policy: Network, params: Any, zs: Array, key: Array) -> Played:
            def act(observation: Array, z: Array) -> Array:
                return distribution.greedy(method.outputs(policy, observation, z))

            each = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(zs), *x.shape)), params)
            jobs = Jobs(each, zs, jax.random.split(key, len(zs)))
            return runner.episodes(act, jobs, Film(limit, of="observation"))

        compiled = jax.jit(run)

        def play(
            subspace: Subspace, variation: Variation, zs: np.ndarray, place: tuple[int, ...]
        ) -> Played:
            key = jax.random.key(place[0])
            for number in place[1:]:
                key = jax.random.fold_in(key, number)
            own = jax.tree.map(lambda x: jnp.asarray(x[names.index(variation.name)]), stacked)
            policy = jax.tree.map(jnp.asarray, subspace.acting)
            return compiled(policy, own, jnp.asarray(zs), key)

        return play

    def _on_a_host(
        self, subspace: Subspace, variation: Variation, zs: np.ndarray, place: tuple[int, ...]
    ) -> Played:
        env, params = host_of(self.suite, variation)
        policies = jax.tree.map(lambda x: np.asarray(x)[None], subspace.acting)
        act = partial(acting(self.method, self.suite.env.action), policies)
        seeds = np.random.SeedSequence(place).generate_state(len(zs)) >> 1
        runner, film = HostRunner(env, self.suite.horizon), Film(self.suite.horizon, "observation")
        played = runner.episodes(act, HostJobs(params, zs[None], seeds[None]), film)
        return jax.tree.map(lambda x: np.asarray(x)[0], played)
