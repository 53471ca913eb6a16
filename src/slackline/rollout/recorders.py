"""What can be recorded of an episode: every state or observation of it, or where an agent was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from slackline.rollout.base import Moment
from slackline.types import Array


class Filmed(NamedTuple):
    """One episode of at most T steps. Rows after its end mean nothing: its length says which."""

    frames: Any
    """States or observations (T + 1, ...), the first one before any step."""
    rewards: Array
    """(T,)"""


@dataclass(frozen=True)
class Film:
    """Keeps every state (or observation) and reward; a recorder."""

    limit: int
    """T: the longest time limit of the episodes."""
    of: Literal["state", "observation"] = "state"

    def begin(self, state: Any, observation: Array) -> Filmed:
        first = state if self.of == "state" else observation
        frames = jax.tree.map(lambda x: jnp.broadcast_to(x, (self.limit + 1, *jnp.shape(x))), first)
        return Filmed(frames, jnp.zeros(self.limit))

    def add(self, record: Filmed, moment: Moment) -> Filmed:
        now = moment.state if self.of == "state" else moment.observation

        # Unconditional: choosing between two films would copy a whole one at every step.
        def put(frames: Array, frame: Any) -> Array:
            return frames.at[moment.time + 1].set(frame)

        frames = jax.tree.map(put, record.frames, now)
        return Filmed(frames, record.rewards.at[moment.time].set(moment.reward))


@dataclass(frozen=True)
class Visits:
    """Counts the steps that ended on each tile of a grid, the start counted once; a recorder."""

    shape: tuple[int, int]
    place: Callable[[Any], tuple[Any, Any]]
    """A state to the agent's row and column."""

    def begin(self, state: Any, observation: Array) -> Array:
        return jnp.zeros(self.shape, jnp.int32).at[self.place(state)].set(1)

    def add(self, record: Array, moment: Moment) -> Array:
        return record.at[self.place(moment.state)].add(moment.going.astype(jnp.int32))
