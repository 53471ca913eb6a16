"""From episodes to the numbers a table shows. Only fresh episodes count, never selection ones."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from scipy.special import stdtr, stdtrit

from slackline.shown import decimals


class Summary(NamedTuple):
    """Of one method on one variation (or on the average over variations), over seeds."""

    mean: float
    std: float
    """Standard deviation over seeds (n − 1)."""
    num_seeds: int

    @property
    def standard_error(self) -> float:
        return self.std / max(self.num_seeds, 1) ** 0.5

    def shown(self, digits: int | None) -> str:
        if not np.isfinite(self.mean):
            return "–"
        digits = decimals(self.mean, digits)
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
    return float(iqm_of_rows(matrix.reshape(1, -1))[0])


def iqm_of_rows(values: np.ndarray) -> np.ndarray:
    """The interquartile mean of each row of (R, n): (R,)."""
    size = values.shape[-1]
    # Weight of each sorted value inside the middle half; the cut values count by their fraction.
    edges = np.arange(size + 1) / size
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    return np.sum(weights * np.sort(values, axis=-1), axis=-1) / np.sum(weights)


Bounds = tuple[float, float]
"""The least and the greatest return that is possible."""
UNBOUNDED = (-np.inf, np.inf)


def iqm_interval(
    matrix: np.ndarray, *, resamples: int = 2000, seed: int = 0, bounds: Bounds = UNBOUNDED
) -> tuple[float, float]:
    """95 % interval of the IQM by its bootstrapped standard error, resampling whole seeds.

    A seed's policy plays all variations, so that its scores rise and fall together; resampling
    them apart, as for tasks that are each trained on, would make the interval too narrow. So would
    percentiles of the bootstrap where seeds are few, hence Student's t, and n − 1 for n. Unknown
    (NaN) for a single seed. What lies beyond `bounds` is cut off: the IQM cannot be there.
    """
    num_seeds = len(matrix)
    if num_seeds < 2:
        return np.nan, np.nan
    generator = np.random.default_rng(seed)
    picks = generator.integers(num_seeds, size=(resamples, num_seeds))
    error = np.std(iqm_of_rows(matrix[picks].reshape(resamples, -1)), ddof=1)
    half = stdtrit(num_seeds - 1, 0.975) * error * np.sqrt(num_seeds / (num_seeds - 1))
    middle = iqm(matrix)
    low, high = np.clip([middle - half, middle + half], *bounds)
    return float(low), float(high)


class Estimate(NamedTuple):
    """A number with its 95 % interval over seeds, which is NaN where it is unknown."""

    value: float
    low: float
    high: float

    def shown(self, digits: int) -> str:
        value, low, high = (f"{number:.{digits}f}" for number in self)
        return value if np.isnan(self.low) else f"{value} [{low}, {high}]"


def ratio(matrix: np.ndarray, base: np.ndarray, *, paired: bool = False) -> Estimate | None:
    """Of the averages over seeds and variations of two matrices [seeds × variations].

    The interval is Fieller's: the ratios r for which a − r·b may be 0, by Welch's t-test over the
    seeds of both, or by a paired t-test where row by row both are of one seed and have a common
    history. It is unknown (NaN) where either has one seed. None where the base's average is not
    positive, or may not be: a ratio would mean nothing.
    """
    pair = Pair.of(matrix, base, paired=paired)
    if pair.b <= 0.0:
        return None
    value = pair.a / pair.b
    if pair.num_seeds < 2:
        return Estimate(value, np.nan, np.nan)
    if pair.error(value) == 0.0:
        return Estimate(value, value, value)
    far = stdtrit(pair.freedom(value), 0.975) ** 2
    # The roots of (a − r·b)² = far (var of a − 2 r cov + r² var of b).
    squared = pair.b**2 - far * pair.var_b
    if squared <= 0.0:
        return None
    middle, constant = pair.a * pair.b - far * pair.cov, pair.a**2 - far * pair.var_a
    half = np.sqrt(max(middle**2 - squared * constant, 0.0))
    return Estimate(value, float((middle - half) / squared), float((middle + half) / squared))


class Pair(NamedTuple):
    """Two averages over seeds, with the squared standard errors of both and their covariance."""

    a: float
    b: float
    var_a: float
    var_b: float
    cov: float
    seeds_of_a: int
    seeds_of_b: int
    paired: bool

    @staticmethod
    def of(matrix: np.ndarray, base: np.ndarray, *, paired: bool) -> Pair:
        rows = matrix.mean(axis=1), base.mean(axis=1)
        a, b = map(summarise, rows)
        cov = 0.0
        if paired and a.num_seeds > 1:
            cov = float(np.cov(*rows)[0, 1]) / a.num_seeds
        errors = (a.standard_error**2, b.standard_error**2)
        return Pair(a.mean, b.mean, *errors, cov, a.num_seeds, b.num_seeds, paired)

    @property
    def num_seeds(self) -> int:
        return min(self.seeds_of_a, self.seeds_of_b)

    def error(self, r: float = 1.0) -> float:
        """Standard error of a − r·b."""
        return max(self.var_a - 2.0 * r * self.cov + r**2 * self.var_b, 0.0) ** 0.5

    def freedom(self, r: float = 1.0) -> float:
        """Degrees of freedom of that error: Welch and Satterthwaite's, or those of the pairs."""
        if self.paired:
            return self.num_seeds - 1
        errors = np.array([self.var_a, r**2 * self.var_b])
        return errors.sum() ** 2 / (errors**2 / [self.seeds_of_a - 1, self.seeds_of_b - 1]).sum()


RatioOf = Literal["returns", "costs"]


def ratio_of(*averages: np.ndarray) -> RatioOf | None:
    """What a ratio of such averages may be taken of: of returns where all of them are positive, of
    costs where all are negative. None where they lie on both sides of zero: no ratio means much."""
    means = [float(each.mean()) for each in averages]
    if min(means) > 0.0:
        return "returns"
    return "costs" if max(means) < 0.0 else None


class Comparison(NamedTuple):
    """One method beside another."""

    ratio: Estimate | None
    """How many times as good it is, so that more than 1 is better: its return ÷ the other's, or
    the other's cost ÷ its own."""
    difference: Estimate
    """Its average return − the other's, with Welch's interval, or that of the pairs."""
    better: float
    """Probability that its average is the higher one, by the same t-distribution (a flat prior).
    NaN where either has one seed."""


def compare(
    matrix: np.ndarray, base: np.ndarray, of: RatioOf | None, *, paired: bool = False
) -> Comparison:
    """Two matrices [seeds × variations] by their averages; `of` is what `ratio_of` says."""
    times = None
    if of is not None:
        one, other = (matrix, base) if of == "returns" else (-base, -matrix)
        times = ratio(one, other, paired=paired)
    pair = Pair.of(matrix, base, paired=paired)
    gap, error = pair.a - pair.b, pair.error()
    if pair.num_seeds < 2:
        return Comparison(times, Estimate(gap, np.nan, np.nan), np.nan)
    if error == 0.0:
        return Comparison(times, Estimate(gap, gap, gap), 0.5 * (1.0 + float(np.sign(gap))))
    freedom = pair.freedom()
    half = float(stdtrit(freedom, 0.975) * error)
    return Comparison(
        times, Estimate(gap, gap - half, gap + half), float(stdtr(freedom, gap / error))
    )


def headroom(train: np.ndarray, matrix: np.ndarray) -> float | None:
    """How many times as well a policy does on the unchanged environment (S,) as on the changed
    ones [seeds × variations]: near 1 there is little that adapting could win back."""
    of, unchanged, changed = ratio_of(train, matrix), float(train.mean()), float(matrix.mean())
    if of is None:
        return None
    return unchanged / changed if of == "returns" else changed / unchanged


def split_halves(returns: np.ndarray) -> np.ndarray | None:
    """What choosing by one half of the selection episodes (S, V, K, M) scores on the other half.

    Both ways round, averaged: (S, V). None with fewer than two episodes. No episode is both chosen
    by and scored on, so that luck does not count.
    """
    middle = returns.shape[-1] // 2
    if middle == 0:
        return None
    one, other = returns[..., :middle].mean(axis=-1), returns[..., middle:].mean(axis=-1)
    return 0.5 * (_at_the_best(one, other) + _at_the_best(other, one))


def _at_the_best(judged: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """`scored` (..., K) at the candidate that is best by `judged` (..., K)."""
    best = np.argmax(judged, axis=-1)[..., None]
    return np.take_along_axis(scored, best, axis=-1)[..., 0]
