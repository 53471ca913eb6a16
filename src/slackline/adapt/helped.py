"""Whether adapting helped: the chosen z beside the default one, on the same fresh episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

Verdict = Literal["helped", "made no difference", "hurt", "cannot tell"]


@dataclass(frozen=True)
class Helped:
    """What adapting gained over the default z, for which no episode is spent."""

    adapted: float
    """Mean return of the chosen z."""
    default: float
    """Mean return of the default z."""
    low: float
    """Of the gain's 95 % interval; NaN where one pair of episodes is all there is."""
    high: float

    @property
    def gain(self) -> float:
        return self.adapted - self.default

    @property
    def verdict(self) -> Verdict:
        if math.isnan(self.low):
            return "made no difference" if self.gain == 0.0 else "cannot tell"
        if self.low > 0.0:
            return "helped"
        return "hurt" if self.high < 0.0 else "made no difference"

    @property
    def keep_default(self) -> bool:
        """Whether the default z is the one to use: wherever the episodes do not show a gain."""
        return self.verdict != "helped"

    def __str__(self) -> str:
        interval = "" if math.isnan(self.low) else f" [{self.low:.4g}, {self.high:.4g}]"
        advice = "; use the default z" if self.keep_default and self.gain != 0.0 else ""
        return (
            f"{self.adapted:.4g} with the chosen z, {self.default:.4g} with the default one, "
            f"gain {self.gain:.4g}{interval}: {self.verdict}{advice}"
        )


def helped(adapted: np.ndarray, default: np.ndarray) -> Helped:
    """Paired returns of both (n,): of the same episodes, or means of the same seeds.

    The interval is Student's of the paired differences.
    """
    gains = np.asarray(adapted, np.float64) - np.asarray(default, np.float64)
    half = math.nan
    if len(gains) > 1:
        half = float(stdtrit(len(gains) - 1, 0.975) * gains.std(ddof=1) / math.sqrt(len(gains)))
    middle = float(gains.mean())
    chosen, without = (float(np.mean(x, dtype=np.float64)) for x in (adapted, default))
    return Helped(chosen, without, middle - half, middle + half)
