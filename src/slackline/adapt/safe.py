"""Careful choice: no z is asked for that is predicted to return less than a floor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from slackline.adapt.adapter import LARGEST, Adapter, Choice, State, tried
from slackline.adapt.bayes import in_turn
from slackline.adapt.model import Belief, believe, distances, knowledge_gradient
from slackline.errors import SlacklineError, require_number

STEP = 0.15
"""The largest distance from a z that is known to be good; two anchors are 1 apart."""


@dataclass(frozen=True)
class Safe(Adapter):
    """As `bayes`, but only where an episode returns the floor or more with some probability.

    Where no z is that safe, the one that is safest by prediction is asked for, at first the default
    z: so the floor is not guaranteed: only predictions are held to it.
    """

    floor: float | None = None
    """The lowest return that an episode may have; it must be given."""
    sure: float = 1.3
    """How many standard deviations of an episode the prediction must be above the floor: 1.3 is a
    chance of nine in ten."""

    name: ClassVar[str] = "safe"

    def __post_init__(self) -> None:
        if self.floor is None:
            raise SlacklineError("adapter 'safe' needs a floor: the lowest return it may risk")
        require_number("floor", self.floor, low=-LARGEST, high=LARGEST)
        require_number("sure", self.sure, low=0.0, high=10.0)

    def propose(self, state: State, num: int) -> np.ndarray:
        known = tried(state)
        good = [state.default, *known.z[known.means >= self.floor]]
        worth = partial(self.worth, near=np.stack(good))
        return in_turn(state, num, state.default[None], worth)

    def worth(self, belief: Belief, near: np.ndarray) -> np.ndarray:
        """The knowledge gradient of the safe z's, which are a step at most from one that is known
        to be good; the one that is safest by prediction where there is none."""
        assert self.floor is not None
        spread = np.sqrt(np.maximum(np.diag(belief.covariance), 0.0) + belief.noise**2)
        above = (belief.mean - self.floor) / np.maximum(spread, 1e-300)
        above = np.where(distances(belief.z, near).min(axis=1) <= STEP, above, -np.inf)
        if above.max() < self.sure:
            return above
        return np.where(above >= self.sure, knowledge_gradient(belief), -np.inf)

    def best(self, state: State) -> Choice:
        return believe(state).best()
