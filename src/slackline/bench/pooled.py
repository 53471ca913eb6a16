"""Claims about all runs and tasks at once, as Agarwal et al. (2021) recommend: stratified
bootstrap, probability of improvement, performance profiles; and corrections for many comparisons.

A stratum is a matrix [seeds × variations] of one suite. Whole seeds are resampled within it, since
one policy plays all variations of a suite and its scores rise and fall together; with
`together=False` the runs of every variation are resampled apart, as rliable does, which is right
where each task was trained on by itself. Intervals are percentiles of the bootstrap, so that they
stay within what was seen; they are a little too narrow where seeds are few.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

from slackline.bench.stats import Estimate, Pair, iqm_of_rows

Strata = Sequence[np.ndarray]
RESAMPLES = 2000
LEVEL = 0.05
"""Of significance."""


def picks(
    generator: np.random.Generator, shape: tuple[int, int], resamples: int, *, together: bool = True
) -> np.ndarray:
    """Which seed stands in each place of a resampled matrix: (R, seeds, variations or 1)."""
    seeds, variations = shape
    size = (resamples, seeds, 1 if together else variations)
    return generator.integers(seeds, size=size)


def resampled(matrix: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The matrix [seeds × variations] as `picks` chose: (R, seeds, variations)."""
    return matrix[chosen, np.arange(matrix.shape[1])]


def percentiles(value: float, draws: np.ndarray) -> Estimate:
    """A value with the 95 % interval that bootstrapped draws of it (R,) give."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def pooled_iqm(
    strata: Strata, *, resamples: int = RESAMPLES, seed: int = 0, together: bool = True
) -> Estimate:
    """The interquartile mean of all scores of all strata, resampled within each.

    Scores of several suites must have been brought to one unit. NaN where a stratum has one seed.
    """
    generator = np.random.default_rng(seed)
    value = float(iqm_of_rows(np.concatenate([m.ravel() for m in strata])[None])[0])
    if min(map(len, strata)) < 2:
        return Estimate(value, np.nan, np.nan)
    drawn = [
        resampled(m, picks(generator, m.shape, resamples, together=together)).reshape(resamples, -1)
        for m in strata
    ]
    return percentiles(value, iqm_of_rows(np.concatenate(drawn, axis=1)))


def improvement(matrix: np.ndarray, base: np.ndarray) -> np.ndarray:
    """P(X > Y) + ½ P(X = Y) of a run X (..., S, V) of one method and a run Y (..., S', V) of
    another on the same variation, averaged over variations: Mann and Whitney's U ÷ S S'."""
    gap = matrix[..., :, None, :] - base[..., None, :, :]
    return (0.5 * (np.sign(gap) + 1.0)).mean(axis=(-3, -2, -1))


def probability_of_improvement(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    *,
    paired: Sequence[bool] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    together: bool = True,
) -> Estimate:
    """How likely a run of one method beats a run of another, over strata of (matrix, base).

    The average over the strata of what `improvement` says. Where `paired`, row by row both are of
    the same seed and are resampled together.
    """
    generator = np.random.default_rng(seed)
    value = float(np.mean([improvement(*pair) for pair in pairs]))
    if min(min(len(a), len(b)) for a, b in pairs) < 2:
        return Estimate(value, np.nan, np.nan)
    draws = np.zeros(resamples)
    for (matrix, base), same in zip(pairs, paired or [False] * len(pairs), strict=True):
        mine = picks(generator, matrix.shape, resamples, together=together)
        theirs = mine if same else picks(generator, base.shape, resamples, together=together)
        draws += _improvements(matrix, base, mine, theirs)
    return percentiles(value, draws / len(pairs))


def _improvements(
    matrix: np.ndarray, base: np.ndarray, mine: np.ndarray, theirs: np.ndarray
) -> np.ndarray:
    """`improvement` of every resample, (R,): by how often each seed was drawn, so that no matrix
    of (R, S, S', V) is made."""
    if mine.shape[2] == 1:
        wins = (0.5 * (np.sign(matrix[:, None] - base[None]) + 1.0)).mean(axis=-1)
        counts = [
            (chosen == np.arange(len(of))).sum(axis=1) / len(of)
            for chosen, of in ((mine, matrix), (theirs, base))
        ]
        return np.einsum("rs,st,rt->r", counts[0], wins, counts[1])
    return np.array(
        [
            improvement(resampled(matrix, a[None])[0], resampled(base, b[None])[0])
            for a, b in zip(mine, theirs, strict=True)
        ]
    )


def profile(
    matrix: np.ndarray, thresholds: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Performance profile: the share of runs × variations that score above each threshold (T,),
    and its 95 % band, pointwise: three arrays (T,). The band is NaN for one seed."""
    above = (matrix[:, :, None] > thresholds).mean(axis=1)
    if len(matrix) < 2:
        nothing = np.full(len(thresholds), np.nan)
        return above.mean(axis=0), nothing, nothing
    chosen = picks(np.random.default_rng(seed), matrix.shape, resamples)[:, :, 0]
    counts = (chosen[:, :, None] == np.arange(len(matrix))).sum(axis=1) / len(matrix)
    low, high = np.percentile(counts @ above, [2.5, 97.5], axis=0)
    return above.mean(axis=0), low, high


def differences(matrix: np.ndarray, base: np.ndarray, *, paired: bool = False) -> np.ndarray:
    """Two-sided p-values that two methods score the same, a variation each: Welch's t-test over
    seeds, or the paired one. (V,), NaN where either has one seed."""
    found = []
    for mine, theirs in zip(matrix.T, base.T, strict=True):
        pair = Pair.of(mine[:, None], theirs[:, None], paired=paired)
        gap, error = pair.a - pair.b, pair.error()
        if pair.num_seeds < 2:
            found.append(np.nan)
        elif error == 0.0:
            found.append(float(gap == 0.0))
        else:
            found.append(2.0 * float(stdtr(pair.freedom(), -abs(gap) / error)))
    return np.array(found)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's correction: p-values (V,) that hold although V of them were looked at."""
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1) * p_values[order]
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def share_seeds(mine: Sequence[int], theirs: Sequence[int]) -> bool:
    """Whether two runs are of the same seeds, so that they are compared pair by pair."""
    return tuple(mine) == tuple(theirs)
