"""The paper's rule: K values of z spread uniformly, equally many episodes each, best mean wins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from slackline.adapt.adapter import MAX_CANDIDATES, Adapter, Choice, State, tried
from slackline.adapt.model import normal_cdf
from slackline.errors import require_count

if TYPE_CHECKING:
    from slackline.methods.latent import Latent


@dataclass(frozen=True)
class Grid(Adapter):
    """Shots × episodes, as in the paper; what does not divide goes to the first candidates.

    Its error is the pooled one of all candidates, and the default z is judged by the candidate that
    is nearest to it. Both are unknown (NaN) where every candidate had one episode.
    """

    shots: int = 10
    """K: how many values of z are tried, unless the budget is smaller."""

    name: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        require_count("shots", self.shots, high=MAX_CANDIDATES)

    def candidates(self, latent: Latent, budget: int) -> np.ndarray:
        """The values that are tried, (K, size)."""
        return latent.candidates(min(self.shots, budget))

    def batch(self, budget: int) -> int:
        return budget

    def propose(self, state: State, num: int) -> np.ndarray:
        candidates = self.candidates(state.latent, state.budget)
        each, more = divmod(state.budget, len(candidates))
        order = np.repeat(np.arange(len(candidates)), each + (np.arange(len(candidates)) < more))
        return candidates[order[len(state.asked) :][:num]]

    def best(self, state: State) -> Choice:
        data = tried(state)
        if not len(data.means):
            return Choice(state.default, math.nan, math.nan, 0.5)
        k = int(best_mean(data.means))
        default = int(np.argmin(np.square(data.z - state.default).sum(axis=-1)))
        repeats = data.counts.sum() - len(data.counts)
        variance = data.within / repeats if repeats else math.nan
        error, gap = variance / data.counts[k], data.means[k] - data.means[default]
        known = 0.5 if k == default else normal_cdf(gap, error + variance / data.counts[default])
        return Choice(data.z[k], float(data.means[k]), math.sqrt(error), known)


def best_mean(means: np.ndarray) -> np.ndarray:
    """Which of several z's (..., K) has the best mean return; the first where several tie."""
    return np.argmax(means, axis=-1)
