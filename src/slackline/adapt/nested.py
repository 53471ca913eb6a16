"""An any-time order: the default z, the middle, the ends, and the middles between neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackline.adapt.adapter import Adapter, Choice, State
from slackline.adapt.model import MOST_SHOTS, believe
from slackline.errors import require_count


@dataclass(frozen=True)
class Nested(Adapter):
    """A larger budget asks for what a smaller one asked for, and then for more."""

    shots: int = 9
    """How many values of z are tried, over and over."""

    name: ClassVar[str] = "nested"

    def __post_init__(self) -> None:
        require_count("shots", self.shots, high=MOST_SHOTS)

    def batch(self, budget: int) -> int:
        return budget

    def propose(self, state: State, num: int) -> np.ndarray:
        order = state.latent.nested(self.shots)
        numbers = len(state.asked) + np.arange(num)
        return order[numbers % len(order)]

    def best(self, state: State) -> Choice:
        return believe(state).best()
