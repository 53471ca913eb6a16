"""Adaptation of many seeds to many variations, every round of asks as one compiled program.

Axes, in this order: seed S, variation V, candidate K, episode M.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from slackline import rollout
from slackline.adapt.adapter import MAX_CANDIDATES, Adapter, State, numbered
from slackline.adapt.grid import Grid
from slackline.adapt.helped import Helped, helped
from slackline.adapt.host import HostPlayer
from slackline.adapt.stopping import Courses, Following, Watched, Watching
from slackline.envs.api import Env, Params, mixed
from slackline.errors import SlacklineError, require_count
from slackline.methods.method import Method
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.parallel.blocks import one_by_one
from slackline.parallel.mesh import SEED, WHOLE, Layout, compiled, layout_of
from slackline.runtime import set_up_jax
from slackline.subspace import Subspace
from slackline.suites.recorded import home_of
from slackline.suites.suite import Protocol as SuiteProtocol
from slackline.suites.suite import Suite, Variation, insist_on_spaces
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
        protocol: SuiteProtocol,
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
    """Their selection returns, (K, M); NaN where a z had fewer episodes than others."""
    adapter: str
    """The name of the adapter that chose."""
    default_z: np.ndarray
    """The z that was best in training, for which no episode is spent."""
    default_scores: np.ndarray
    """Its returns on the same fresh episodes."""
    saved_steps: int = 0
    """Steps that were not played, because hopeless episodes were stopped."""

    @property
    def helped(self) -> Helped:
        """Whether the chosen z is better than the default one."""
        return helped(self.scores, self.default_scores)

    def __str__(self) -> str:
        return f"{self.variation}: {self.helped}"


class KShot(NamedTuple):
    """The paper's grid, tried by many seeds on many variations."""

    candidates: np.ndarray
    """(K, size), or (S, K, size) where each seed draws its own."""
    returns: np.ndarray
    """Selection returns, (S, V, K, M)."""
    chosen: np.ndarray
    """Index of the best candidate, (S, V)."""
    scores: np.ndarray
    """Returns of the chosen one on fresh episodes, (S, V, E)."""


class Adapted(NamedTuple):
    """What an adapter found, by many seeds on many variations."""

    asked: np.ndarray
    """The z of every selection episode in the order of the asks, (S, V, B, size)."""
    returns: np.ndarray
    """What they returned, (S, V, B)."""
    z: np.ndarray
    """The chosen z, (S, V, size)."""
    scores: np.ndarray
    """Returns of the chosen one on fresh episodes, (S, V, E)."""
    default_z: np.ndarray
    """(S, size)"""
    default_scores: np.ndarray | None
    """Returns of the default z on the same fresh episodes, (S, V, E), if they were asked for."""
    played_steps: np.ndarray
    """Of selection episodes, (S, V), if hopeless ones are stopped; else 0, not counted."""
    saved_steps: np.ndarray
    """Steps of them that were not played, (S, V)."""


def adapt_many(
    subspaces: Sequence[Subspace],
    variations: Sequence[Variation],
    shots: int,
    episodes: int,
    score_episodes: int,
    suite: Suite | None = None,
) -> KShot:
    """Adapt every seed to every variation by the paper's grid. The variations are those of `suite`:
    by default the one the subspaces were trained on."""
    Adapting(shots, episodes, score_episodes)
    latents = [s.method.latent.drawn_by(s.seed) for s in subspaces]
    drawn = np.stack([latent.candidates(shots) for latent in latents])
    num = drawn.shape[1]
    found = adapt_by(Grid(num), num * episodes, subspaces, variations, score_episodes, suite=suite)
    returns = found.returns.reshape(*found.returns.shape[:2], num, episodes)
    same = (drawn[:, None] == found.z[:, :, None]).all(axis=-1)
    candidates = drawn[0] if latents[0] is subspaces[0].method.latent else drawn
    return KShot(candidates, returns, same.argmax(axis=-1), found.scores)


def adapt_by(
    adapter: Adapter,
    budget: int,
    subspaces: Sequence[Subspace],
    variations: Sequence[Variation],
    score_episodes: int,
    *,
    suite: Suite | None = None,
    beside_default: bool = False,
    stop_hopeless: float | None = None,
) -> Adapted:
    """Adapt every seed to every variation by any adapter, each with a budget of its own.

    Asks go round by round, each of which is one batch of episodes for all seeds and variations.
    With `beside_default` the default z plays the fresh episodes too. `stop_hopeless` stops episodes
    that are so many standard deviations of a return behind the best one before (`stopping.py`).
    """
    set_up_jax()
    _insist_on_few(len(subspaces) * len(variations) * (budget + score_episodes))
    suite = suite_for(subspaces[0], suite)
    batch = min(adapter.batch(budget), budget)
    courses = None
    if stop_hopeless is not None:
        courses = Courses(len(subspaces), len(variations), stop_hopeless)
        batch = min(batch, Adapter.batch(adapter, budget))  # there has to be one before
    most = max(batch, score_episodes)
    play = player(subspaces, variations, suite, most)
    latents = [s.method.latent.drawn_by(s.seed) for s in subspaces]
    states = [
        [adapter.init(latent, budget, s.training) for _ in variations]
        for s, latent in zip(subspaces, latents, strict=True)
    ]
    while states[0][0].remaining:
        states = _round(adapter, states, batch, play, courses)
    chosen = np.array([[adapter.best(state).z for state in row] for row in states], np.float32)
    default = np.stack([row[0].default for row in states]).astype(np.float32)
    each = np.broadcast_to(default[:, None], chosen.shape)
    nothing = np.zeros(chosen.shape[:2], np.int64)
    return Adapted(
        asked=np.array([[state.asked for state in row] for row in states]),
        returns=np.array([[state.returns for state in row] for row in states]),
        z=chosen,
        scores=play.fresh(chosen, score_episodes),
        default_z=default,
        default_scores=play.fresh(each, score_episodes) if beside_default else None,
        played_steps=nothing if courses is None else courses.played_steps,
        saved_steps=nothing if courses is None else courses.saved_steps,
    )


def _round(
    adapter: Adapter,
    states: list[list[State]],
    num: int,
    play: Player,
    courses: Courses | None,
) -> list[list[State]]:
    """Ask every seed's and variation's adapter for `num` episodes, play them all, tell them."""
    asked = [[adapter.ask(state, num) for state in row] for row in states]
    z = np.array([[z for _, z in row] for row in asked], np.float32)
    before = len(states[0][0].asked)
    places = [[numbered(state.asked) for state, _ in row] for row in asked]
    number = np.array([[place[1][before:] for place in row] for row in places])
    repeat = np.array([[place[2][before:] for place in row] for row in places])
    if courses is None:
        returns = play.tried(z, number, repeat)
    else:
        floors = courses.floors(states, play.longest)
        returns = courses.tell(play.watched(z, number, repeat, floors))
    return [
        [
            adapter.tell(state, z, returns[s, v].astype(np.float64))
            for v, (state, z) in enumerate(row)
        ]
        for s, row in enumerate(asked)
    ]


def _insist_on_few(total: int) -> None:
    if total > MAX_EPISODES:
        raise SlacklineError(
            f"{total:,} episodes were asked for; at most {MAX_EPISODES:,} fit in one call: "
            "lower shots or episodes"
        )


class Player(Protocol):
    """Plays episodes of every seed S on every variation V."""

    def tried(self, z: np.ndarray, number: np.ndarray, repeat: np.ndarray) -> np.ndarray:
        """The returns (S, V, n) of selection episodes at z (S, V, n, size): of the `number`-th z
        that was tried, for the `repeat`-th time (S, V, n)."""
        ...

    @property
    def longest(self) -> int | None:
        """Steps of the longest possible episode; None if that is unknown."""
        ...

    def watched(
        self, z: np.ndarray, number: np.ndarray, repeat: np.ndarray, floors: np.ndarray
    ) -> Watched:
        """As `tried`, but an episode whose return falls below the floors (S, V, T), those of its
        seed and variation after each step, is stopped."""
        ...

    def fresh(self, z: np.ndarray, num: int) -> np.ndarray:
        """The returns (S, V, num) of fresh episodes at z (S, V, size), the same for every z."""
        ...


def player(
    subspaces: Sequence[Subspace], variations: Sequence[Variation], suite: Suite, most: int
) -> Player:
    """What plays the suite's episodes: at most so many at once for each seed and variation."""
    policies = jax.tree.map(lambda *leaves: np.stack(leaves), *[s.acting for s in subspaces])
    seeds, method = [subspace.seed for subspace in subspaces], subspaces[0].method
    if not suite.env.in_jax:
        return HostPlayer(suite, method, policies, seeds, variations)
    return CompiledPlayer(suite, method, policies, seeds, variations, most)


class CompiledPlayer:
    """Episodes of an environment in JAX, as one compiled program a phase."""

    def __init__(
        self,
        suite: Suite,
        method: Method,
        policies: Network,
        seeds: Sequence[int],
        variations: Sequence[Variation],
        most: int,
    ):
        params = suite.params_of(variations)
        env = Partly(suite.jax_env, changing_numbers(params, suite.jax_env.default_params()))
        self.layout = layout_of(len(seeds), suite.num_blocks(len(variations) * most))
        limits = jax.vmap(partial(suite.jax_env.time_limit, horizon=suite.horizon))
        self.longest = int(np.max(np.broadcast_to(limits(params), len(variations))))
        self.program = partial(_program, suite, method, self.layout, env.changing)
        self.policies, self.params, self.variations = policies, env.part_of(params), variations
        self.keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        self.labels = jnp.array([v.label for v in variations], jnp.uint32)

    def tried(self, z: np.ndarray, number: np.ndarray, repeat: np.ndarray) -> np.ndarray:
        return self._played(SELECT, z, number, repeat)

    def watched(
        self, z: np.ndarray, number: np.ndarray, repeat: np.ndarray, floors: np.ndarray
    ) -> Watched:
        run, counts = self.program(SELECT, self.longest), map(jnp.uint32, (number, repeat))
        inputs = (self.policies, self.keys, self.params, self.labels, jnp.asarray(z), *counts)
        found = jax.tree.map(np.asarray, run(*inputs, jnp.asarray(floors)))
        self._insist_on_finite(found.returns)
        return found

    def fresh(self, z: np.ndarray, num: int) -> np.ndarray:
        each = np.broadcast_to(z[:, :, None], (*z.shape[:2], num, z.shape[2]))
        repeat = np.broadcast_to(np.arange(num), each.shape[:3])
        return self._played(SCORE, each, np.zeros_like(repeat), repeat)

    def _played(
        self, phase: int, z: np.ndarray, number: np.ndarray, repeat: np.ndarray
    ) -> np.ndarray:
        run = self.program(phase)
        counts = (jnp.asarray(x, jnp.uint32) for x in (number, repeat))
        found = run(self.policies, self.keys, self.params, self.labels, jnp.asarray(z), *counts)
        returns = np.asarray(found)
        self._insist_on_finite(returns)
        return returns

    def _insist_on_finite(self, returns: np.ndarray) -> None:
        for i, variation in enumerate(self.variations):
            rollout.insist_on_finite_returns(
                variation.name, returns[:, i], "nothing can be chosen from it"
            )


def suite_for(subspace: Subspace, suite: Suite | None) -> Suite:
    """The suite whose variations to adapt to: the subspace's own, or one with the same spaces."""
    home = home_of(subspace)
    if suite is None:
        return home
    insist_on_spaces(suite.name, suite.env.spaces, home.name, home.env.spaces)
    return suite


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


SELECT, SCORE = 0, 1
"""Phases. Selecting and scoring have different episodes."""


@lru_cache(maxsize=32)
def _program(
    suite: Suite,
    method: Method,
    layout: Layout,
    changing: Changing,
    phase: int,
    longest: int | None = None,
) -> Callable[..., Any]:
    """The compiled episodes of one phase; the inputs say how many there are. With `longest`, the
    steps of an episode, they are watched: floors are the last input."""
    distribution, env = distribution_of(suite.env.action), Partly(suite.jax_env, changing)
    watching = env if longest is None else Watching(env, suite.horizon)
    runner = rollout.CompiledRunner(watching, suite.horizon)

    def one_seed(
        policy: Network,
        key: Array,
        params: Params,
        labels: Array,
        z: Array,
        number: Array,
        repeat: Array,
        *floors: Array,
    ) -> Any:
        """Axes here: variation V, episode n."""
        keys = jax.vmap(partial(_keys, phase, key))(labels, number, repeat)
        v, _ = jnp.indices(keys.shape)
        return run(policy, (params, *floors) if floors else params, Jobs(v, z, keys))

    def run(policy: Network, params: Params, jobs: Jobs) -> Any:
        """The jobs' episodes, block by block and shared out among the devices of a seed."""
        shape = jobs.variation.shape
        total = math.prod(shape)
        flat = jax.tree.map(lambda x: x.reshape(total, *x.shape[len(shape) :]), jobs)
        found = over_devices(partial(play, policy, params), flat, suite.block, layout)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), found)

    def play(policy: Network, params: Params, jobs: Jobs) -> Any:
        def act(observation: Array, z: Array) -> Array:
            return distribution.greedy(method.outputs(policy, observation, z))

        own = jax.tree.map(lambda leaf: leaf[jobs.variation], params)
        playing = rollout.Jobs(own, jobs.z, jobs.key)
        if longest is None:
            return runner.episodes(act, playing).returns
        found = runner.episodes(act, playing, Following(longest))
        partial_returns, hopeless = found.recorded
        return Watched(found.returns, found.lengths, hopeless, partial_returns)

    axes = (0, 0, None, None, 0, 0, 0)
    specs = (SEED, SEED, WHOLE, WHOLE, SEED, SEED, SEED)
    if longest is not None:
        axes, specs = (*axes, 0), (*specs, SEED)
    return compiled(layout.each(one_seed, axes), layout, specs, SEED)


def _keys(phase: int, key: Array, label: Array, number: Array, repeat: Array) -> Array:
    """Of a variation's episodes (n,). A key depends on nothing but its episode's place, so that a
    longer adaptation begins with the episodes of a shorter one."""
    own = jax.random.split(jax.random.fold_in(key, label))[phase]
    if phase == SELECT:
        own = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(own, number)
        return jax.vmap(jax.random.fold_in)(own, repeat)
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(own, repeat)


def over_devices(function: Callable[[Jobs], Any], jobs: Jobs, block: int, layout: Layout) -> Any:
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
    found = one_by_one(function, blocks)
    found = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), found)
    if layout.axis is not None:
        found = jax.lax.all_gather(found, layout.axis, tiled=True)
    return jax.tree.map(lambda x: x[:total], found)
