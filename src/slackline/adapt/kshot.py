"""K-shot adaptation of many seeds to many variations, as one compiled program.

Axes, in this order: seed S, variation V, candidate K, episode M.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.adapt.adapter import MAX_CANDIDATES
from slackline.adapt.episodes import episode_returns
from slackline.adapt.host import host_kshot
from slackline.envs.api import Env, Params, mixed
from slackline.envs.host import HostEnv
from slackline.errors import SlacklineError, require_count
from slackline.methods.method import Method
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.parallel.blocks import one_by_one
from slackline.parallel.mesh import SEED, WHOLE, Layout, compiled, layout_of
from slackline.runtime import set_up_jax
from slackline.subspace import Subspace
from slackline.suites import suite as find_suite
from slackline.suites.own import another
from slackline.suites.recorded import home_of
from slackline.suites.suite import Protocol, Suite, Variation, insist_on_spaces
from slackline.types import Array

MAX_EPISODES = 5_000_000
"""Episodes of one call: what fits in memory, score table included."""


@dataclass(frozen=True)
class Adapting:
    """How to adapt: K candidates, M selection episodes each, then fresh episodes for the winner."""

    shots: int
    episodes: int
    score_episodes: int

    def __post_init__(self) -> None:
        for field in fields(self):
            require_count(field.name, getattr(self, field.name), high=MAX_CANDIDATES)

    @staticmethod
    def of(
        protocol: Protocol,
        shots: int | None = None,
        episodes: int | None = None,
        score_episodes: int | None = None,
    ) -> Adapting:
        """The suite's protocol, but for the counts that are given."""
        return Adapting(
            protocol.shots if shots is None else shots,
            protocol.episodes if episodes is None else episodes,
            protocol.score_episodes if score_episodes is None else score_episodes,
        )


@dataclass(frozen=True)
class Adaptation:
    """What adapting one subspace to one variation found."""

    variation: str
    z: np.ndarray
    """The chosen z."""
    score: float
    """Mean return of the chosen policy over fresh episodes, not those it was selected on."""
    scores: np.ndarray
    """The returns of those fresh episodes."""
    candidates: np.ndarray
    """The z's tried, (K, size)."""
    returns: np.ndarray
    """Their selection returns, (K, M)."""


class KShot(NamedTuple):
    """The same for many seeds and variations."""

    candidates: np.ndarray
    """(K, size)"""
    returns: np.ndarray
    """Selection returns, (S, V, K, M)."""
    chosen: np.ndarray
    """Index of the best candidate, (S, V)."""
    scores: np.ndarray
    """Returns of the chosen one on fresh episodes, (S, V, E)."""


def adapt_many(
    subspaces: Sequence[Subspace],
    variations: Sequence[Variation],
    shots: int,
    episodes: int,
    score_episodes: int,
    suite: str | Suite | None = None,
) -> KShot:
    """Adapt every seed to every variation, which are those of `suite`: by default the one the
    subspaces were trained on."""
    set_up_jax()
    Adapting(shots, episodes, score_episodes)
    first = subspaces[0]
    suite, candidates = suite_for(first, suite), first.method.latent.candidates(shots)
    total = len(subspaces) * len(variations) * (len(candidates) * episodes + score_episodes)
    if total > MAX_EPISODES:
        raise SlacklineError(
            f"{total:,} episodes were asked for; at most {MAX_EPISODES:,} fit in one call: "
            "lower shots or episodes"
        )
    policies = jax.tree.map(lambda *leaves: np.stack(leaves), *[s.acting for s in subspaces])
    if isinstance(suite.env, HostEnv):
        seeds = [subspace.seed for subspace in subspaces]
        return KShot(
            candidates,
            *host_kshot(
                suite,
                first.method,
                policies,
                seeds,
                variations,
                candidates,
                episodes,
                score_episodes,
            ),
        )
    params = suite.params_of(variations)
    env = Partly(suite.jax_env, changing_numbers(params, suite.jax_env.default_params()))
    keys = jnp.stack([jax.random.key(s.seed) for s in subspaces])
    labels = jnp.array([v.label for v in variations], jnp.uint32)
    num_jobs = len(variations) * max(len(candidates) * episodes, score_episodes)
    layout = layout_of(len(subspaces), suite.num_blocks(num_jobs))
    run = _program(suite, first.method, layout, env.changing, episodes, score_episodes)
    found = run(policies, keys, env.part_of(params), labels, jnp.asarray(candidates))
    result = KShot(candidates, *map(np.asarray, found))
    for i, variation in enumerate(variations):
        if not (np.isfinite(result.returns[:, i]).all() and np.isfinite(result.scores[:, i]).all()):
            raise SlacklineError(
                f"an episode on {variation.name} returned a value that is not finite: "
                "the simulation broke down, and nothing can be chosen from it"
            )
    return result


def suite_for(subspace: Subspace, suite: str | Suite | None) -> Suite:
    """The suite whose variations to adapt to: the subspace's own, or one with the same spaces."""
    home = home_of(subspace)
    if suite is None:
        return home
    found = find_suite(suite) if isinstance(suite, str) else suite
    insist_on_spaces(found.name, found.env, home.name, home.env)
    return found


Changing = tuple[tuple[int, ...], ...]
"""For every leaf of an environment's parameters, the flat indices of numbers that change."""


def changing_numbers(stacked: Params, standard: Params) -> Changing:
    """Which numbers of the environment's parameters differ from the standard in any variation.

    The others become constants of the program, which then compiles to less: a robot's system has
    hundreds of numbers, most of them zeros and ones.
    """

    def changing(varied: Any, usual: Any) -> tuple[int, ...]:
        differs = np.any(np.asarray(varied) != np.asarray(usual)[None], axis=0)
        return tuple(np.flatnonzero(differs).tolist())

    pairs = zip(jax.tree.leaves(stacked), jax.tree.leaves(standard), strict=True)
    return tuple(changing(varied, usual) for varied, usual in pairs)


class Partly(Env):
    """An environment whose parameters are only those numbers that some variation changes."""

    def __init__(self, env: Env, changing: Changing):
        self.env, self.changing = env, changing
        self.observation_size, self.action = env.observation_size, env.action

    def default_params(self) -> list[Any]:
        return self.part_of(self.env.default_params())

    def part_of(self, params: Params) -> list[Any]:
        """The changing numbers of each leaf, (..., how many); params may be stacked."""
        usual = jax.tree.leaves(self.env.default_params())
        triples = zip(jax.tree.leaves(params), usual, self.changing, strict=True)
        return [
            leaf.reshape(*leaf.shape[: leaf.ndim - np.ndim(one)], -1)[..., list(indices)]
            for leaf, one, indices in triples
            if indices
        ]

    def complete(self, params: list[Any]) -> Params:
        leaves, tree = jax.tree.flatten(self.env.default_params())
        rest, pairs = iter(params), zip(leaves, self.changing, strict=True)
        return tree.unflatten(
            [self.filled(leaf, indices, next(rest)) if indices else leaf for leaf, indices in pairs]
        )

    def filled(self, leaf: Any, indices: tuple[int, ...], values: Array) -> Any:
        if len(indices) == np.size(leaf):
            return values.reshape(np.shape(leaf))
        if self.env.reads_elements:
            return mixed(leaf, indices, values)
        flat = jnp.ravel(jnp.asarray(leaf)).at[jnp.array(indices)].set(values)
        return flat.reshape(np.shape(leaf))

    def reset(self, key: Array, params: list[Any]) -> tuple[Array, Any]:
        return self.env.reset(key, self.complete(params))

    def step(self, key: Array, state: Any, action: Array, params: list[Any]) -> Any:
        return self.env.step(key, state, action, self.complete(params))

    def time_limit(self, params: list[Any], horizon: int) -> int | Array:
        return self.env.time_limit(self.complete(params), horizon)


class Jobs(NamedTuple):
    """Episodes to run, (J,): where, with which z, from which key."""

    variation: Array
    z: Array
    key: Array


@lru_cache(maxsize=32)
def _program(
    suite: Suite,
    method: Method,
    layout: Layout,
    changing: Changing,
    episodes: int,
    score_episodes: int,
) -> Callable[..., tuple[Array, Array, Array]]:
    """The compiled K-shot program; its inputs say how many candidates and variations there are."""
    distribution, env = distribution_of(suite.env.action), Partly(suite.jax_env, changing)

    def one_seed(
        policy: Network, key: Array, params: Params, labels: Array, candidates: Array
    ) -> tuple[Array, Array, Array]:
        """Axes here: variation V, candidate K, episode M."""
        keys = jax.vmap(lambda label: jax.random.split(jax.random.fold_in(key, label)))(labels)
        select_keys, score_keys = keys[:, 0], keys[:, 1]

        def keys_of_candidate(key: Array, k: Array) -> Array:
            return jax.random.split(jax.random.fold_in(key, k), episodes)

        each_k = jax.vmap(keys_of_candidate, in_axes=(None, 0))
        keys = jax.vmap(each_k, in_axes=(0, None))(select_keys, jnp.arange(candidates.shape[0]))
        v, k, _ = jnp.indices(keys.shape)
        returns = run(policy, params, Jobs(v, candidates[k], keys))
        chosen = jnp.argmax(jnp.mean(returns, axis=-1), axis=-1)
        keys = jax.vmap(lambda key: jax.random.split(key, score_episodes))(score_keys)
        v, _ = jnp.indices(keys.shape)
        return returns, chosen, run(policy, params, Jobs(v, candidates[chosen][v], keys))

    def run(policy: Network, params: Params, jobs: Jobs) -> Array:
        """The jobs' returns, block by block and shared out among the devices of a seed."""
        shape = jobs.variation.shape
        total = math.prod(shape)
        flat = jax.tree.map(lambda x: x.reshape(total, *x.shape[len(shape) :]), jobs)
        return over_devices(partial(play, policy, params), flat, suite.block, layout).reshape(shape)

    def play(policy: Network, params: Params, jobs: Jobs) -> Array:
        def actions(observation: Array) -> Array:
            return distribution.greedy(method.outputs(policy, observation, jobs.z))

        own = jax.tree.map(lambda leaf: leaf[jobs.variation], params)
        return episode_returns(env, suite.horizon, actions, own, jobs.key)

    each = layout.each(one_seed, (0, 0, None, None, None))
    return compiled(each, layout, (SEED, SEED, WHOLE, WHOLE, WHOLE), SEED)


def over_devices(
    function: Callable[[Jobs], Array], jobs: Jobs, block: int, layout: Layout
) -> Array:
    """`function` of all jobs: every device of the block axis takes a share, in blocks, and all of
    them get the whole result."""
    total = jobs.variation.shape[0]
    num_blocks = -(-total // (block * layout.blocks)) * layout.blocks
    block = -(-total // num_blocks)
    # The last blocks are filled up with copies of the first jobs.
    rows = jnp.arange(num_blocks * block) % total
    if layout.axis is not None:
        rows = rows.reshape(layout.blocks, -1)[jax.lax.axis_index(layout.axis)]
    blocks = jax.tree.map(lambda x: x[rows.reshape(-1, block)], jobs)
    found = one_by_one(function, blocks).reshape(-1)
    if layout.axis is not None:
        found = jax.lax.all_gather(found, layout.axis, tiled=True)
    return found[:total]


def adapt_one(
    subspace: Subspace,
    variation: str | Variation | HostEnv | Callable[[Params], Params],
    shots: int | None,
    episodes: int | None,
    score_episodes: int | None,
    suite: str | Suite | None = None,
) -> Adaptation:
    """Adapt one subspace to one variation of `suite`; None means its own, and its protocol."""
    suite = suite_for(subspace, suite)
    if isinstance(variation, str):
        variation = suite.variation(variation)
    elif isinstance(variation, HostEnv):
        variation = another(variation)
    elif not isinstance(variation, Variation):
        variation = Variation("Custom", "a change of yours", variation)
    adapting = Adapting.of(suite.protocol, shots, episodes, score_episodes)
    found = adapt_many([subspace], [variation], *astuple(adapting), suite=suite)
    return Adaptation(
        variation=variation.name,
        z=found.candidates[found.chosen[0, 0]],
        score=float(found.scores[0, 0].mean()),
        scores=found.scores[0, 0],
        candidates=found.candidates,
        returns=found.returns[0, 0],
    )
