"""Uniform numbers as JAX draws them, on NumPy: the same candidates with JAX and without it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def uniform(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """What `jax.random.uniform(jax.random.key(seed), shape)` gives, in [0, 1): float32.

    The upper 23 of 32 random bits become the fraction of a float in [1, 2).
    """
    count = np.arange(math.prod(shape), dtype=np.uint64)
    high, low = (np.uint32(seed >> 32), np.uint32(seed & 0xFFFFFFFF))
    x, y = rounds(high, low, (count >> 32).astype(np.uint32), count.astype(np.uint32))
    fraction = ((x ^ y) >> 9) | np.uint32(0x3F800000)
    return (fraction.view(np.float32) - np.float32(1.0)).reshape(shape)


def rounds(high: Any, low: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Threefry-2x32 with twenty rounds: the counters (x, y) encrypted by a key of two words. All
    are 32 bits without a sign, of NumPy or JAX.

    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
    """
    keys = [high, low, high ^ low ^ np.uint32(PARITY)]
    x, y = x + keys[0], y + keys[1]
    for i in range(5):
        for distance in ROTATIONS[i % 2]:
            x = x + y
            y = ((y << np.uint32(distance)) | (y >> np.uint32(32 - distance))) ^ x
        x = x + keys[(i + 1) % 3]
        y = y + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x, y
