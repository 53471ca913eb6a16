"""How numbers and commands are shown to people."""

from __future__ import annotations

import shlex

import numpy as np
from numpy.typing import ArrayLike


def decimals(values: ArrayLike, fixed: int | None = None) -> int:
    """With how many decimals returns are shown, everywhere: as many as their suite fixes, or else
    by the largest of them."""
    if fixed is not None:
        return fixed
    sizes = np.abs(np.asarray(values, float))
    largest = sizes[np.isfinite(sizes)].max(initial=0.0)
    return 1 if largest >= 20.0 else 2 if largest >= 2.0 else 3


def counted(num: int, noun: str) -> str:
    """1 seed, 3 seeds"""
    return f"{num:,} {noun}" if num == 1 else f"{num:,} {noun}s"


def human(number: float) -> str:
    """12345678 -> 12.3M"""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def command(*words: object) -> str:
    """A command of slackline's as one line, quoted so that a shell takes it."""
    return shlex.join(["slackline", *map(str, words)])
