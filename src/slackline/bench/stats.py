"""From episodes to the numbers a table shows. Only fresh episodes count, never selection ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl


class Summary(NamedTuple):
    """Of one method on one variation (or on the average over variations), over seeds."""

    mean: float
    std: float
    """Standard deviation over seeds (n − 1)."""
    num_seeds: int

    @property
    def standard_error(self) -> float:
        return self.std / max(self.num_seeds, 1) ** 0.5

    def shown(self, digits: int) -> str:
        if not np.isfinite(self.mean):
            return "–"
        return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"


def seed_scores(scores: pl.DataFrame) -> pl.DataFrame:
    """Mean fresh-episode return for every (suite, method, shots, variation, seed)."""
    return (
        scores.filter(pl.col("phase") == "score")
        .group_by("suite", "method", "shots", "variation", "seed", maintain_order=True)
        .agg(pl.col("return").cast(pl.Float64).mean().alias("score"))
    )


def score_matrix(per_seed: pl.DataFrame, variations: list[str]) -> np.ndarray:
    """[seeds × variations] of one method at one K, rows by seed."""
    wide = per_seed.pivot("variation", index="seed", values="score").sort("seed")
    return wide.select(variations).to_numpy()


def summarise(values: np.ndarray) -> Summary:
    """Mean ± std over seeds of values (S,)."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Summary(float(np.mean(values)), std, len(values))


def iqm(matrix: np.ndarray) -> float:
    """Interquartile mean: the mean of the middle half of all runs × tasks, fractions included."""
    values = np.sort(matrix, axis=None)
    # Weight of each sorted value inside the middle half; the cut values count by their fraction.
    edges = np.arange(len(values) + 1) / len(values)
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    return float(np.sum(weights * values) / np.sum(weights))


def iqm_interval(
    matrix: np.ndarray, *, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """95 % bootstrap interval of the IQM, resampling whole seeds.

    A seed's policy plays all variations, so that its scores rise and fall together; resampling
    them apart, as for tasks that are each trained on, would make the interval too narrow.
    """
    generator = np.random.default_rng(seed)
    picks = generator.integers(len(matrix), size=(resamples, len(matrix)))
    low, high = np.percentile([iqm(matrix[chosen]) for chosen in picks], [2.5, 97.5])
    return float(low), float(high)


class Ratio(NamedTuple):
    """How many times better than another method, with a 95 % bootstrap interval over seeds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio(
    matrix: np.ndarray, base: np.ndarray, *, resamples: int = 10_000, seed: int = 0
) -> Ratio | None:
    """Of the averages over seeds and variations of two matrices [seeds × variations].

    The two methods' seeds are resampled independently. None where the base's average is not
    positive, in the data or in a resample: a ratio would mean nothing.
    """
    generator = np.random.default_rng(seed)

    def averages(matrix: np.ndarray) -> np.ndarray:
        per_seed = matrix.mean(axis=1)
        picks = generator.integers(len(per_seed), size=(resamples, len(per_seed)))
        return per_seed[picks].mean(axis=1)

    above, below = averages(matrix), averages(base)
    if below.min() <= 0.0:
        return None
    low, high = np.percentile(above / below, [2.5, 97.5])
    return Ratio(float(matrix.mean() / base.mean()), float(low), float(high))
