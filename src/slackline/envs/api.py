"""The environment contract: pure functions of (key, state, action, params).

An environment neither resets itself nor keeps a time limit: the runner does both, for all
environments, so truncation is never mistaken for termination and the final observation is never
lost. (It may say what the limit is, where that depends on its parameters.) `params` is a pytree
that holds everything a variation may change.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackline.arrays import jnp
from slackline.envs.view import View
from slackline.types import Array

Params = Any
State = Any


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … num_actions − 1."""

    num_actions: int


@dataclass(frozen=True)
class Continuous:
    """A vector of `size` numbers between `low` and `high`, which may differ from one to another."""

    size: int
    low: float | tuple[float, ...] = -1.0
    high: float | tuple[float, ...] = 1.0


class Spaces(NamedTuple):
    """What a policy sees and does: all that networks need to know of an environment."""

    observation: tuple[int, ...]
    """Shape of one observation: (size,), or (H, W, C) for pictures."""
    action: Discrete | Continuous

    @property
    def picture(self) -> tuple[int, int, int] | None:
        """(H, W, C) if pictures are what is seen, in bytes; None: a vector."""
        if len(self.observation) != 3:
            return None
        height, width, channels = self.observation
        return height, width, channels


def action_to_json(action: Discrete | Continuous) -> dict[str, Any]:
    """As files keep it."""
    kind = "discrete" if isinstance(action, Discrete) else "continuous"
    return {"kind": kind, **vars(action)}


def action_from_json(values: Mapping[str, Any]) -> Discrete | Continuous:
    """The way back; raises KeyError or TypeError for anything else."""
    space: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return {"discrete": Discrete, "continuous": Continuous}[space.pop("kind")](**space)


def mixed(known: Any, changing: tuple[int, ...], values: Any) -> np.ndarray:
    """An array of objects: `known` numbers, but for the (traced) values at some flat indices."""
    numbers = np.asarray(known).astype(object)
    for i, index in enumerate(changing):
        numbers.flat[index] = values[i]
    return numbers


def whole(numbers: Any) -> Array:
    """An array of parameters as JAX has it, if it is a `mixed` one."""
    is_mixed = isinstance(numbers, np.ndarray)
    return jnp.array(numbers.tolist(), jnp.float32) if is_mixed else numbers


class Env(abc.ABC):
    """One environment: its spaces, its standard parameters, and two pure functions."""

    in_jax: ClassVar[bool] = True
    """Whether it can be traced; environments outside JAX (`envs/host.py`) cannot."""

    reads_elements: bool = False
    """Whether arrays of its parameters may be `mixed`: it gains from every number it knows."""

    observation_size: int
    """Length of the flat observation vector."""

    action: Discrete | Continuous
    """What the policy chooses from."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Vectors only: pictures come from environments outside JAX."""
        return (self.observation_size,)

    @property
    def spaces(self) -> Spaces:
        return Spaces(self.observation_shape, self.action)

    def for_jax(self, name: str) -> Env:
        """Itself: it can be traced. `name` is the suite's, for those that have to refuse."""
        return self

    @abc.abstractmethod
    def default_params(self) -> Params:
        """The standard parameters, the ones every method trains on."""

    @abc.abstractmethod
    def reset(self, key: Array, params: Params) -> tuple[Array, State]:
        """Start an episode: (observation, state)."""

    @abc.abstractmethod
    def step(
        self, key: Array, state: State, action: Array, params: Params
    ) -> tuple[Array, State, Array, Array]:
        """Advance one step: (observation, state, reward, terminated)."""

    def time_limit(self, params: Params, horizon: int) -> int | Array:
        """Steps after which the rollout cuts an episode: the suite's horizon, or fewer."""
        return horizon

    def view(self) -> View | None:
        """What it looks like, for films and reports; None if it cannot be drawn."""
        return None
