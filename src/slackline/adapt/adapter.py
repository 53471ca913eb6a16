"""The interface of adapters: which z to try next, and which one is best so far.

Adapters are pure: state in, state out, and the state is nothing but what was asked and what came
back. So one adapter serves the compiled program (`kshot.py`), the loop around environments outside
JAX and ask/tell by hand (`asktell.py`). It can be saved at any time, and needs NumPy alone.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from slackline.methods.latent import Latent
    from slackline.methods.training_returns import TrainingReturns


MAX_CANDIDATES = 1_000_000
LARGEST = 1e30
"""Larger returns are refused: sums of their squares could overflow."""


@dataclass(frozen=True, eq=False)
class State:
    """What an adapter knows: the space, the budget, what training says, and every episode."""

    latent: Latent
    budget: int
    """Episodes that may be asked for."""
    prior: TrainingReturns | None
    """Returns on the training environment; None where they were not measured."""
    asked: np.ndarray
    """The z of every episode that was asked for, in order, (n, size)."""
    returns: np.ndarray
    """What each of them returned, (n,); NaN until that was told."""

    @property
    def remaining(self) -> int:
        """How many more episodes may be asked for."""
        return self.budget - len(self.asked)

    @property
    def told(self) -> np.ndarray:
        """Which of the asked episodes were told, (n,)."""
        return np.isfinite(self.returns)

    @property
    def default(self) -> np.ndarray:
        """The z with no episode spent: the best one in training, or the middle of the space."""
        return self.latent.nested(1)[0] if self.prior is None else self.prior.default


@dataclass(frozen=True, eq=False)
class Choice:
    """The best z so far, and how sure that is. NumPy and `line.at` take it as its z."""

    z: np.ndarray
    mean: float
    """Expected return of one episode; NaN while nothing was told."""
    error: float
    """Standard error of that."""
    probability: float
    """That it returns more than the default z; 0.5 if it is the default z, or if nothing is
    known."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.z, dtype=dtype)


class Adapter(abc.ABC):
    """A rule that spends a budget of episodes. Its fields are its options."""

    name: ClassVar[str]

    def init(self, latent: Latent, budget: int, prior: TrainingReturns | None = None) -> State:
        """Nothing asked, nothing told."""
        return State(latent, budget, prior, np.zeros((0, latent.size), np.float32), np.zeros(0))

    def ask(self, state: State, num: int) -> tuple[State, np.ndarray]:
        """The z's (num, size) of the next episodes; fewer where the budget ends."""
        z = self.propose(state, min(num, state.remaining)).astype(np.float32)
        out = np.full(len(z), np.nan)
        asked = np.concatenate([state.asked, z])
        return replace(state, asked=asked, returns=np.concatenate([state.returns, out])), z

    def tell(self, state: State, z: np.ndarray, returns: np.ndarray) -> State:
        """Record what episodes at z (num, size), all of them asked for and not told yet, returned
        (num,)."""
        told, out = state.returns.copy(), np.flatnonzero(~state.told)
        if np.array_equal(state.asked[out], z):  # a whole round, in its order
            told[out] = returns
            return replace(state, returns=told)
        for one, episode_return in zip(z, returns, strict=True):
            waiting = np.isnan(told) & (state.asked == one).all(axis=-1)
            told[np.flatnonzero(waiting)[0]] = episode_return
        return replace(state, returns=told)

    def batch(self, budget: int) -> int:
        """How many episodes to ask for at once in a compiled program, where asking costs more than
        playing."""
        return max(1, budget // 20)

    @abc.abstractmethod
    def propose(self, state: State, num: int) -> np.ndarray:
        """The z's (num, size) of the next episodes."""

    @abc.abstractmethod
    def best(self, state: State) -> Choice:
        """The best z by all that was told; the default z while nothing was."""


@dataclass(frozen=True)
class Tried:
    """The distinct z's that came back, in the order of their first asks."""

    z: np.ndarray
    """(K, size)"""
    counts: np.ndarray
    """Episodes of each, (K,)."""
    means: np.ndarray
    """Mean return of each, (K,)."""
    within: float
    """Sum of squared deviations from those means."""


def numbered(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(distinct z's (K, size) in the order of their first appearance among z (n, size), which of
    them each is (n,), and how often that one appeared before (n,))."""
    if z.shape[1] == 0:
        number = np.zeros(len(z), int)
        return z[:1], number, np.arange(len(z))
    _, first, inverse = np.unique(z, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    number = rank[inverse.reshape(-1)]
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number)
    repeat = np.empty(len(z), int)
    repeat[order] = np.arange(len(z)) - np.repeat(np.cumsum(counts) - counts, counts)
    return z[np.sort(first)], number, repeat


def tried(state: State) -> Tried:
    """What came back, by z."""
    told = state.told
    distinct, number, _ = numbered(state.asked[told])
    returns = state.returns[told]
    counts = np.bincount(number, minlength=len(distinct))
    means = np.bincount(number, weights=returns, minlength=len(distinct)) / counts
    return Tried(distinct, counts, means, float(np.square(returns - means[number]).sum()))
