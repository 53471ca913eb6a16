"""What the policies of a subspace returned on the environment that they were trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_POINTS = 4096
"""More z's than any measurement has: what a file may ask for."""


@dataclass(frozen=True, eq=False)
class TrainingReturns:
    """Deterministic returns on the training environment, measured once, after training."""

    z: np.ndarray
    """The z's that were measured, (P, size)."""
    mean: np.ndarray
    """Mean return of each, (P,)."""
    std: np.ndarray
    """Standard deviation of one episode's return, (P,)."""
    episodes: int
    """Episodes that each was measured by."""

    @property
    def default(self) -> np.ndarray:
        """The z to use where no episode can be spent: the best one in training.

        Means that differ by less than their noise are not told apart: of all z's within one
        standard error of the best one, it is the one nearest to their weighted middle.
        """
        error = np.sqrt(np.mean(self.std**2) / self.episodes)
        good = self.z[self.mean >= self.mean.max() - error]
        return good[np.argmin(np.square(good - good.mean(axis=0)).sum(axis=-1))]

    @property
    def noise(self) -> float:
        """Standard deviation of one episode's return, over all z's."""
        return float(np.sqrt(np.mean(self.std**2)))

    def to_json(self) -> dict[str, Any]:
        return {
            "z": [[round(float(x), 7) for x in z] for z in self.z],
            "mean": [float(f"{x:.6g}") for x in self.mean],
            "std": [float(f"{x:.3g}") for x in self.std],
            "episodes": self.episodes,
        }

    @staticmethod
    def of(z: np.ndarray, returns: np.ndarray) -> TrainingReturns | None:
        """From the returns (P, M) of M episodes at each z (P, size); None if any is not finite."""
        if not np.isfinite(returns).all():
            return None
        exact = returns.astype(np.float64)
        std = exact.std(axis=-1, ddof=1) if exact.shape[1] > 1 else np.zeros(len(exact))
        return TrainingReturns(z, exact.mean(axis=-1), std, exact.shape[1])

    @staticmethod
    def from_json(values: Any, size: int) -> TrainingReturns:
        """What `to_json` wrote, for z's of so many numbers; ValueError if it is anything else."""
        z, mean, std = (np.asarray(values[name], float) for name in ("z", "mean", "std"))
        episodes = values["episodes"]
        if not 1 <= len(z) <= MOST_POINTS or z.shape != (len(mean), size):
            raise ValueError(f"training returns have z's of shape {z.shape}")
        if mean.shape != std.shape or mean.ndim != 1 or not isinstance(episodes, int):
            raise ValueError("training returns do not fit their z's")
        if not all(np.isfinite(x).all() for x in (z, mean, std)) or episodes < 1 or std.min() < 0:
            raise ValueError("training returns are not finite")
        return TrainingReturns(z.astype(np.float32), mean, std, episodes)
