"""Small environments whose returns, values and best actions are known."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import settings

from slackline.envs.api import Continuous, Discrete, Env
from slackline.learn.hyper import Hyper
from slackline.suites.suite import Protocol, Suite, setting
from slackline.training import OnTick, Tick
from slackline.types import Array

properties = settings(deadline=None, max_examples=40, derandomize=True, database=None)
"""For property tests: the same examples every time."""


class Killed(BaseException):
    """What stops a training as a crash would."""


def killing_at(tick: int) -> OnTick:
    """Stops a training at its report of this number."""
    reports = itertools.count(1)

    def kill(_: Tick) -> None:
        if next(reports) == tick:
            raise Killed

    return kill


class Table(NamedTuple):
    """A Markov decision process with three states and two actions, written out."""

    start: Any
    """Probability of starting in each state, (3,)."""
    reward: Any
    """(3, 2)"""
    successor: Any
    """(3, 2)"""
    final: Any
    """Whether the action ends the episode, (3, 2)."""


@dataclass(frozen=True)
class Tabular(Env):
    """Plays a table; the observation is the state, one-hot. The table may be traced."""

    table: Table
    observation_size = 3
    action = Discrete(2)

    def default_params(self) -> Table:
        return jax.tree.map(jnp.asarray, self.table)

    def reset(self, key: Array, params: Table) -> tuple[Array, Array]:
        state = jax.random.choice(key, 3, p=params.start)
        return jax.nn.one_hot(state, 3), state

    def step(
        self, key: Array, state: Array, action: Array, params: Table
    ) -> tuple[Array, Array, Array, Array]:
        after = params.successor[state, action]
        return (
            jax.nn.one_hot(after, 3),
            after,
            params.reward[state, action],
            params.final[state, action],
        )


DISCOUNT = 0.5


class Probe(NamedTuple):
    """A table and what is known of it; None where the agent never comes, or where all is equal."""

    table: Table
    values: tuple[float | None, float | None, float | None]
    """Of the best policy, at DISCOUNT."""
    actions: tuple[int | None, int | None, int | None] = (None, None, None)


def _table(start: Any, reward: Any, successor: Any, final: Any) -> Table:
    def full(rows: Any, dtype: Any) -> np.ndarray:
        """A row of one number holds for both actions."""
        return np.array([row if isinstance(row, tuple) else (row, row) for row in rows], dtype)

    return Table(
        np.array(start, np.float32),
        full(reward, np.float32),
        full(successor, np.int32),
        full(final, bool),
    )


PROBES = {
    # Is the critic fitted to rewards at all?
    "one_step": Probe(_table((1, 0, 0), (1, 0, 0), (0, 0, 0), (1, 1, 1)), (1.0, None, None)),
    # Does it see the observation?
    "observation": Probe(
        _table((0.5, 0.5, 0), (-1, 1, 0), (0, 0, 0), (1, 1, 1)), (-1.0, 1.0, None)
    ),
    # Is the reward of a later step discounted, and the final observation not bootstrapped?
    "delayed": Probe(_table((1, 0, 0), (0, 0, 1), (1, 2, 0), (0, 0, 1)), (0.25, 0.5, 1.0)),
    # Does the policy improve?
    "action": Probe(
        _table((1, 0, 0), ((-1, 1), 0, 0), (0, 0, 0), (1, 1, 1)),
        (1.0, None, None),
        (1, None, None),
    ),
    # Does it depend on the observation?
    "copy": Probe(
        _table((0.5, 0.5, 0), ((1, -1), (-1, 1), 0), (0, 0, 0), (1, 1, 1)),
        (1.0, 1.0, None),
        (0, 1, None),
    ),
    # Does credit reach the action that led to a later reward?
    "credit": Probe(
        _table((1, 0, 0), (0, 1, -1), ((2, 1), 0, 0), (0, 1, 1)),
        (0.5, 1.0, None),
        (1, None, None),
    ),
    # An episode without end, cut by the horizon: a truncated one must bootstrap.
    "endless": Probe(_table((1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 1)), (2.0, None, None)),
}


class CountingParams(NamedTuple):
    longest: int | Array = 6


class CountingState(NamedTuple):
    tag: Array
    count: Array
    length: Array


class Counting(Env):
    """Counts its steps. Observation: (a random tag of the episode, the count); reward: the count.

    An episode terminates after a random length of 1 … `longest` steps.
    """

    observation_size = 2
    action = Discrete(2)

    def default_params(self) -> CountingParams:
        return CountingParams()

    def reset(self, key: Array, params: CountingParams) -> tuple[Array, CountingState]:
        tag_key, length_key = jax.random.split(key)
        length = jax.random.randint(length_key, (), 1, params.longest + 1)
        state = CountingState(jax.random.uniform(tag_key), jnp.int32(0), length)
        return self._observe(state), state

    def step(
        self, key: Array, state: CountingState, action: Array, params: CountingParams
    ) -> tuple[Array, CountingState, Array, Array]:
        state = state._replace(count=state.count + 1)
        reward = state.count.astype(jnp.float32)
        return self._observe(state), state, reward, state.count >= state.length

    def _observe(self, state: CountingState) -> Array:
        return jnp.stack([state.tag, state.count.astype(jnp.float32)])


class FromZero(Env):
    """The state is the number of steps taken; subclasses say what a step shows and pays."""

    observation_size = 1

    def default_params(self) -> tuple[()]:
        return ()

    def reset(self, key: Array, params: Any) -> tuple[Array, Array]:
        return jnp.zeros(1), jnp.int32(0)


class Exploding(FromZero):
    """Never ends; the observation is the number of steps taken, infinite from the 5th on."""

    action = Continuous(1)

    def step(
        self, key: Array, state: Array, action: Array, params: Any
    ) -> tuple[Array, Array, Array, Array]:
        count = state + 1
        seen = jnp.where(count < 5, count.astype(jnp.float32), jnp.inf)
        return seen[None], count, action[0], jnp.zeros((), bool)


class AimParams(NamedTuple):
    target: float | Array = 2.0
    noise: float | Array = 0.0


class Aim(Env):
    """One step: the reward is −(action − target)², with noise. The observation is always 1."""

    observation_size = 1
    action = Continuous(1, low=-1.0, high=3.0)

    def default_params(self) -> AimParams:
        return AimParams()

    def reset(self, key: Array, params: AimParams) -> tuple[Array, Array]:
        return jnp.ones(1), jnp.zeros(())

    def step(
        self, key: Array, state: Array, action: Array, params: AimParams
    ) -> tuple[Array, Array, Array, Array]:
        noise = params.noise * jax.random.normal(key)
        reward = -jnp.square(action[0] - params.target) + noise
        return jnp.ones(1), state, reward, jnp.ones((), bool)


class Idle(Aim):
    """The same, but nothing is rewarded."""

    def default_params(self) -> AimParams:
        return AimParams()

    def step(
        self, key: Array, state: Array, action: Array, params: AimParams
    ) -> tuple[Array, Array, Array, Array]:
        return jnp.ones(1), state, jnp.zeros(()), jnp.ones((), bool)


AIM_SUITE = Suite(
    name="aim",
    title="Aim",
    env=Aim(),
    horizon=3,
    variations=(
        setting("Low", target=-0.9),
        setting("Middle", target=1.1),
        setting("High", target=2.9),
        setting("Noisy", target=1.0, noise=1.0),
    ),
    hyper=Hyper(),
    protocol=Protocol(steps=1, shots=5, episodes=2, score_episodes=3),
)
