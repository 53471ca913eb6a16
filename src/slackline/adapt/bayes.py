"""Bayesian choice: ask where an episode is expected to raise the best mean return most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackline.adapt.adapter import Adapter, Choice, State
from slackline.adapt.model import Belief, believe, distances, knowledge_gradient

NEAR = 0.1
"""z's that are less apart than this, where two anchors are 1 apart, are one look."""


@dataclass(frozen=True)
class Bayes(Adapter):
    """The knowledge gradient on the belief of `model.py`, after a look at a few z's far apart."""

    looks: int = 5
    """The first z's: the default one, then the middle and ends of the space (not near to it)."""

    name: ClassVar[str] = "bayes"

    def propose(self, state: State, num: int) -> np.ndarray:
        return in_turn(state, num, first_looks(state, self.looks), knowledge_gradient)

    def best(self, state: State) -> Choice:
        return believe(state).best()


def first_looks(state: State, num: int) -> np.ndarray:
    """The default z, then z's of the nested order that are not near to any before them."""
    found = [state.default]
    for z in state.latent.nested(4 * num):
        if len(found) < num and distances(np.stack(found), z[None]).min() > NEAR:
            found.append(z)
    return np.stack(found)


def in_turn(
    state: State, num: int, looks: np.ndarray, worth: Callable[[Belief], np.ndarray]
) -> np.ndarray:
    """The looks that are left, then one after the other the z that is worth most."""
    chosen = list(looks[len(state.asked) :][:num])
    belief = believe(state) if len(chosen) < num else None
    while belief is not None and len(chosen) < num:
        best = int(np.argmax(worth(belief)))
        chosen.append(belief.z[best])
        belief = belief.after(best)
    return np.stack(chosen) if chosen else state.asked[:0]
