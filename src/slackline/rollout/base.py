"""What the two back ends of the runner have in common: what they are given and what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from slackline.errors import SlacklineError
from slackline.types import Array

Act = Callable[[Array, Array, Array], tuple[Array, Array, Array]]
"""(noise (N, ...), observations (N, ...), z (N, size)) -> (actions as they are stored, as the
environment takes them, the former's log-probabilities)"""

DrawZ = Callable[[Array, int], Array]
"""(key, num) -> z (num, size), one for each episode that begins."""

Greedy = Callable[[Any, Any], Any]
"""(observations (B, ...), z (B, size)) -> actions (B, ...), as the environment takes them."""


class Totals(NamedTuple):
    """Sums over the episodes that ended while steps were taken, and whether the simulation held."""

    count: Array
    return_sum: Array
    length_sum: Array
    sound: Array
    """How many steps were taken before one that led to NaN or infinite values."""


class Jobs(NamedTuple):
    """B episodes to play; every leaf has a leading axis B."""

    params: Any
    """Of the environment."""
    z: Any
    key: Array
    """All random numbers of an episode come from its key."""


class Moment(NamedTuple):
    """One step of one episode, as a recorder sees it."""

    time: Array
    """Steps taken before it."""
    state: Any
    """The environment's state after the step; () for environments outside JAX."""
    observation: Array
    """After the step."""
    reward: Array
    going: Array
    """False for a step after the episode's end, which must not be recorded."""


class Recorder(Protocol):
    """What to keep of an episode besides its return: a fold over its steps.

    It is written for one episode, in JAX; the runner maps it over all of them.
    """

    def begin(self, state: Any, observation: Array) -> Any:
        """The record of an episode that has just been reset."""
        ...

    def add(self, record: Any, moment: Moment) -> Any:
        """The record with one more step."""
        ...


class Played(NamedTuple):
    """Whole episodes; every field has the jobs' leading axes."""

    returns: Any
    """Undiscounted; NaN where an observation or a reward was not finite."""
    lengths: Any
    """Steps taken until the end: termination, time limit or numbers that are not finite."""
    terminated: Any
    """Whether the environment ended the episode."""
    recorded: Any
    """The recorder's records; () without one."""


def insist_on_finite_returns(where: str, returns: np.ndarray, consequence: str) -> None:
    """Refuse episodes in which the simulation broke down."""
    if not np.isfinite(returns).all():
        raise SlacklineError(
            f"an episode on {where} returned a value that is not finite: "
            f"the simulation broke down, and {consequence}"
        )
