"""Sequential halving: all z's get a share of the budget, the better half of them the next one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackline.adapt.adapter import Adapter, Choice, State
from slackline.adapt.model import MOST_SHOTS, believe
from slackline.errors import require_count


@dataclass(frozen=True)
class Halving(Adapter):
    """Karnin, Koren and Somekh (2013), with the belief's means for the ranking."""

    shots: int = 8
    """Values of z in the first round, unless the budget is smaller."""

    name: ClassVar[str] = "halving"

    def __post_init__(self) -> None:
        require_count("shots", self.shots, high=MOST_SHOTS)

    def propose(self, state: State, num: int) -> np.ndarray:
        arms = state.latent.nested(self.arms(state.budget))
        rounds = num_rounds(len(arms))
        share, done = state.budget // rounds, len(state.asked)
        level = min(done // share, rounds - 1)
        left = arms
        if level:
            belief = believe(state)
            means = np.array([belief.mean[belief.index(z)] for z in arms])
            left = arms[np.argsort(-means, kind="stable")[: max(len(arms) >> level, 1)]]
        return left[(done - level * share + np.arange(num)) % len(left)]

    def arms(self, budget: int) -> int:
        """How many z's the first round can try, each once at least."""
        fits = [k for k in range(1, self.shots + 1) if k * num_rounds(k) <= budget]
        return max(fits, default=1)

    def best(self, state: State) -> Choice:
        return believe(state).best()


def num_rounds(arms: int) -> int:
    """How often so many can be halved until one is left; one round where there is one."""
    return max(1, math.ceil(math.log2(arms)))
