"""Ask/tell adaptation: ask for a z, run an episode anywhere, tell the return, keep the best."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from slackline.errors import SlacklineError, require_count, require_number
from slackline.methods.latent import Latent, as_floats

MAX_CANDIDATES = 1_000_000


class Adapter(Protocol):
    """Any way of searching the latent space with a budget of episodes."""

    def ask(self) -> np.ndarray:
        """The z to run the next episode with."""
        ...

    def tell(self, z: Any, episode_return: float) -> None:
        """What that episode returned."""
        ...

    def best(self) -> np.ndarray:
        """The best z so far."""
        ...


class GridAdapter:
    """The paper's K-shot rule: K values spread uniformly, M episodes each, the best mean wins.

    Several episodes may be out at once (ask, ask, tell, tell). The budget of K × M episodes is
    never exceeded.
    """

    def __init__(self, latent: Latent, *, shots: int = 10, episodes: int = 1):
        require_count("shots", shots, high=MAX_CANDIDATES)
        require_count("episodes", episodes, high=MAX_CANDIDATES)
        self.candidates = latent.candidates(shots)
        """The K values of z, (K, size)."""
        self.returns: list[list[float]] = [[] for _ in self.candidates]
        """Returns told so far, by candidate."""
        self._episodes, self._asked = episodes, 0
        self._out = [0] * len(self.candidates)

    @property
    def remaining(self) -> int:
        """How many more times `ask` may be called."""
        return len(self.candidates) * self._episodes - self._asked

    def ask(self) -> np.ndarray:
        """The z to run the next episode with."""
        if not self.remaining:
            raise SlacklineError(
                f"the budget of {self._asked} episodes is spent; call best(), "
                "or make an adapter with more shots or episodes"
            )
        k = self._asked // self._episodes
        self._asked += 1
        self._out[k] += 1
        return self.candidates[k].copy()

    def tell(self, z: Any, episode_return: float) -> None:
        """Record the return of an episode that was run with an asked z."""
        require_number("episode_return", episode_return)
        k = self._candidate(z)
        if self._out[k] == 0:
            raise SlacklineError(f"z = {_show(z)} has no episode out: ask() for it before telling")
        self._out[k] -= 1
        self.returns[k].append(float(episode_return))

    def best(self) -> np.ndarray:
        """The z with the best mean return so far; the first one where several tie."""
        if not any(self.returns):
            raise SlacklineError("nothing was told yet: ask() for a z, run an episode, tell() it")
        means = [sum(r) / len(r) if r else -math.inf for r in self.returns]
        return self.candidates[int(np.argmax(means))].copy()

    def _candidate(self, z: Any) -> int:
        """Which candidate z is; a copy that went through text (rounded) still counts."""
        array = as_floats(z)
        if array is not None and array.shape == self.candidates.shape[1:]:
            nearest = int(np.argmin(np.abs(self.candidates - array[None]).sum(axis=-1)))
            if np.allclose(self.candidates[nearest], array, atol=1e-6):
                return nearest
        raise SlacklineError(f"z = {_show(z)} was never asked; tell() takes a z that ask() gave")


def _show(z: Any) -> str:
    array = as_floats(z)
    if array is None:
        return repr(z)
    return np.array2string(array, precision=4, separator=", ", threshold=8)
