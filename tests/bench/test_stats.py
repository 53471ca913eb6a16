"""Statistics against SciPy and in literal numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from probes import properties
from scipy import stats as scipy_stats

from slackline.bench.stats import (
    Estimate,
    compare,
    decimals,
    headroom,
    iqm,
    iqm_interval,
    ratio,
    ratio_of,
    score_matrix,
    seed_scores,
    split_halves,
    summarise,
)

numbers = st.floats(-1e4, 1e4, width=32)


@properties
@given(
    matrix=st.sampled_from([(1, 4), (2, 4), (4, 3), (8, 5)]).flatmap(
        lambda shape: arrays.arrays(np.float64, shape, elements=numbers)
    )
)
def test_iqm_is_the_trimmed_mean_where_quarters_are_whole(matrix: np.ndarray) -> None:
    expected = scipy_stats.trim_mean(matrix.ravel(), 0.25)
    np.testing.assert_allclose(iqm(matrix), expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], 7.0),
        ([1.0, 3.0], 2.0),
        # Three: a quarter of the outer ones, all of the middle: (¼·1 + 2 + ¼·9)/1.5
        ([9.0, 1.0, 2.0], 3.0),
        # Five: ¾ of the second and the fourth, all of the third: (¾·1 + 2 + ¾·10)/2.5
        ([1.0, 0.0, 2.0, 1000.0, 10.0], 4.1),
        # Six: half of the second and the fifth.
        ([0.0, 1.0, 2.0, 3.0, 10.0, 99.0], 10.5 / 3),
    ],
)
def test_iqm_literal(values: list[float], expected: float) -> None:
    np.testing.assert_allclose(iqm(np.array(values)), expected, rtol=1e-12)


def test_iqm_ignores_outliers_and_order() -> None:
    matrix = np.arange(8.0).reshape(2, 4)
    worse = matrix.copy()
    worse[1, 3], worse[0, 0] = 1e9, -1e9
    assert iqm(matrix) == iqm(worse) == iqm(matrix[::-1].T) == 3.5


def test_interval_holds_the_iqm_and_is_the_same_every_time() -> None:
    matrix = np.random.default_rng(0).normal(100.0, 10.0, (10, 6))
    low, high = iqm_interval(matrix)
    assert low < iqm(matrix) < high
    assert iqm_interval(matrix) == (low, high)
    assert iqm_interval(matrix, seed=1) != (low, high)
    # About ±2 σ/√n of a mean over 60, a little more for the trimmed one.
    assert 2.0 < high - low < 10.0


def test_interval_resamples_within_tasks() -> None:
    """Tasks far apart whose seeds agree leave nothing uncertain."""
    matrix = np.broadcast_to(np.array([0.0, 10.0, 50.0, 1000.0]), (5, 4))
    np.testing.assert_allclose(iqm_interval(matrix), [30.0, 30.0])


def test_more_variations_of_the_same_seeds_tell_nothing_new() -> None:
    """A seed good on one is good on all: the interval is as wide as on a single one."""
    one = np.random.default_rng(0).normal(100.0, 10.0, (8, 1))
    np.testing.assert_allclose(iqm_interval(np.tile(one, 16)), iqm_interval(one), rtol=1e-9)


@pytest.mark.parametrize("num_seeds", [2, 4, 6, 10])
def test_interval_covers_the_truth_as_often_as_it_says(num_seeds: int) -> None:
    """Of a seed that is good or bad on all variations alike."""
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        seeds = generator.normal(0.0, 1.0, (num_seeds, 1)) + np.zeros((1, 4))
        low, high = iqm_interval(seeds, resamples=400)
        hits += low < 0.0 < high
    assert 0.92 <= hits / 300 <= 0.995


def test_interval_of_one_seed_is_unknown() -> None:
    assert np.isnan(iqm_interval(np.array([[1.0, 2.0, 3.0, 4.0]]))).all()
    assert Estimate(2.5, np.nan, np.nan).shown(1) == "2.5"
    assert Estimate(2.5, 2.0, 3.04).shown(1) == "2.5 [2.0, 3.0]"


def test_summarise_literal() -> None:
    found = summarise(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (found.mean, found.num_seeds) == (2.5, 4)
    np.testing.assert_allclose(found.std, (5 / 3) ** 0.5)
    np.testing.assert_allclose(found.standard_error, (5 / 12) ** 0.5)


def test_summarise_one_seed() -> None:
    found = summarise(np.array([3.0]))
    assert (found.mean, found.std, found.standard_error, found.num_seeds) == (3.0, 0.0, 0.0, 1)


def table(rows: list[tuple[str, str, int, float]]) -> pl.DataFrame:
    """(phase, variation, seed, return) of one method."""
    frame = pl.DataFrame(rows, schema=["phase", "variation", "seed", "return"], orient="row")
    named = [pl.lit("cartpole").alias("suite"), pl.lit("lop").alias("method")]
    return frame.with_columns(*named, pl.lit(10).alias("shots"))


def test_only_fresh_episodes_count() -> None:
    scores = table(
        [
            ("select", "A", 0, 1000.0),
            ("score", "A", 0, 1.0),
            ("score", "A", 0, 2.0),
            ("score", "B", 0, 5.0),
            ("score", "A", 1, 7.0),
            ("score", "B", 1, 9.0),
        ]
    )
    per_seed = seed_scores(scores)
    found = {(r["variation"], r["seed"]): r["score"] for r in per_seed.iter_rows(named=True)}
    assert found == {("A", 0): 1.5, ("B", 0): 5.0, ("A", 1): 7.0, ("B", 1): 9.0}


def test_score_matrix_has_seeds_as_rows_in_order() -> None:
    rows = [("score", v, s, 10.0 * s + ord(v)) for s in (2, 0, 1) for v in "BA"]
    matrix = score_matrix(seed_scores(table(rows)), ["A", "B"])
    np.testing.assert_array_equal(matrix, [[65.0, 66.0], [75.0, 76.0], [85.0, 86.0]])


def test_ratio_of_averages() -> None:
    base, other = np.full((4, 3), 2.0), np.full((5, 3), 3.0)
    assert ratio(other, base) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(("seeds", "base_seeds"), [(4, 4), (6, 6), (20, 20), (4, 12)])
def test_ratio_interval_covers_the_truth(seeds: int, base_seeds: int) -> None:
    """95 % of the time, for noisy seeds; the two methods' seeds are independent."""
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(1000):
        base = 10.0 + generator.normal(0, 2.0, (base_seeds, 1)) + np.zeros((1, 4))
        other = 12.0 + generator.normal(0, 2.0, (seeds, 1)) + np.zeros((1, 4))
        found = ratio(other, base)
        assert found is not None
        hits += found.low <= 1.2 <= found.high
    assert 0.93 <= hits / 1000 <= 0.985


def test_paired_ratio_interval_covers_the_truth_and_is_narrower() -> None:
    """Where seed by seed both have the same luck, most of it cancels."""
    generator = np.random.default_rng(0)
    hits, widths, unpaired = 0, 0.0, 0.0
    for _ in range(1000):
        luck = generator.normal(0, 2.0, (8, 1))
        base = 10.0 + luck + generator.normal(0, 0.5, (8, 1))
        other = 1.2 * (10.0 + luck) + generator.normal(0, 0.5, (8, 1))
        found, apart = ratio(other, base, paired=True), ratio(other, base)
        assert found is not None
        assert apart is not None
        hits += found.low <= 1.2 <= found.high
        widths, unpaired = widths + found.high - found.low, unpaired + apart.high - apart.low
    assert 0.93 <= hits / 1000 <= 0.97
    assert widths < 0.5 * unpaired


def test_paired_difference_is_the_paired_t_tests() -> None:
    base, other = np.array([[2.0], [5.0], [9.0]]), np.array([[3.0], [5.5], [11.0]])
    gap = compare(other, base, "returns", paired=True).difference
    expected = scipy_stats.ttest_rel(other[:, 0], base[:, 0]).confidence_interval(0.95)
    np.testing.assert_allclose([gap.low, gap.high], expected, rtol=1e-9)


def test_ratio_interval_is_welchs_where_the_base_is_certain() -> None:
    base, other = np.full((5, 1), 2.0), np.array([[2.0], [3.0], [7.0]])
    found = ratio(other, base)
    assert found is not None
    expected = scipy_stats.t.interval(0.95, 2, loc=4.0, scale=scipy_stats.sem(other[:, 0]))
    np.testing.assert_allclose([found.low, found.high], np.array(expected) / 2.0, rtol=1e-9)


def test_ratio_of_one_seed_has_no_interval() -> None:
    found = ratio(np.full((1, 2), 3.0), np.full((4, 2), 2.0))
    assert found is not None
    assert (found.value, found.shown(2)) == (1.5, "1.50")


def test_a_ratio_to_nothing_is_no_ratio() -> None:
    assert ratio(np.ones((3, 2)), np.array([[-1.0], [-2.0], [-3.0]])) is None
    assert ratio(np.ones((3, 2)), np.array([[1.0], [1.0], [-5.0]])) is None
    assert ratio(np.ones((3, 2)), np.array([[1.0], [1.0], [-1.0]])) is None, "it may be none"


def test_what_a_ratio_is_taken_of() -> None:
    positive, negative = np.full((2, 2), 3.0), np.full((2, 2), -3.0)
    assert ratio_of(positive, positive) == "returns"
    assert ratio_of(negative, negative) == "costs"
    assert ratio_of(positive, negative) is None
    assert ratio_of(positive, np.zeros((2, 2))) is None
    assert ratio_of(np.array([[9.0, -1.0]])) == "returns", "by the average, not by one variation"


def test_half_the_cost_is_twice_as_good() -> None:
    single, cheaper = np.full((4, 3), -20.0), np.full((5, 3), -10.0)
    assert compare(cheaper, single, "costs").ratio == (2.0, 2.0, 2.0)
    assert compare(single, cheaper, "costs").ratio == (0.5, 0.5, 0.5)


def test_cost_ratio_has_fiellers_interval_of_the_costs() -> None:
    generator = np.random.default_rng(0)
    single, method = (generator.normal(mean, 2.0, (6, 3)) for mean in (-40.0, -30.0))
    found = compare(method, single, "costs").ratio
    assert found is not None
    assert found == ratio(-single, -method)
    assert found.value == pytest.approx(single.mean() / method.mean())
    assert found.low < found.value < found.high
    assert compare(-method, -single, "returns").ratio == ratio(-method, -single)


def test_difference_and_better_are_welchs() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(1.0, 1.0, (4, 1)), generator.normal(0.0, 3.0, (9, 1))
    found = compare(a, b, None)
    assert found.ratio is None
    expected = scipy_stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False, alternative="two-sided")
    interval = expected.confidence_interval(0.95)
    np.testing.assert_allclose(found.difference, [a.mean() - b.mean(), *interval], rtol=1e-9)
    test: Any = scipy_stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False, alternative="greater")
    np.testing.assert_allclose(found.better, 1.0 - test.pvalue, rtol=1e-9)


def test_comparison_without_noise_or_with_one_seed() -> None:
    two, three = np.full((3, 2), 2.0), np.full((3, 2), 3.0)
    assert compare(three, two, None) == (None, (1.0, 1.0, 1.0), 1.0)
    assert compare(two, three, None).better == 0.0
    assert compare(two, two, None).better == 0.5
    alone = compare(three[:1], two, "returns")
    assert alone.difference.value == 1.0
    assert np.isnan([alone.difference.low, alone.difference.high, alone.better]).all()


def test_headroom_is_above_one_where_changes_hurt() -> None:
    train = np.array([10.0, 14.0])
    assert headroom(train, np.full((2, 3), 6.0)) == 2.0
    assert headroom(-train, np.full((2, 3), -24.0)) == 2.0, "costs: the other way round"
    assert headroom(train, np.full((2, 3), -1.0)) is None


def test_split_halves_literal() -> None:
    """Chosen by the first episode: candidate 0, which then returns 0. By the second: 1, then 1."""
    returns = np.array([[4.0, 0.0], [1.0, 3.0]]).reshape(1, 1, 2, 2)
    np.testing.assert_array_equal(split_halves(returns), [[0.5]])
    # Three episodes: by the first (candidate 0) a mean of 1; by the mean of the others (1) a 2.
    returns = np.array([[4.0, 0.0, 2.0], [2.0, 3.0, 5.0]]).reshape(1, 1, 2, 3)
    np.testing.assert_array_equal(split_halves(returns), [[1.5]])
    assert split_halves(returns[..., :1]) is None


def test_split_halves_does_not_profit_from_luck() -> None:
    """Ten candidates that differ by noise alone: the best of them looks good and is not."""
    returns = np.random.default_rng(0).normal(0.0, 1.0, (50, 20, 10, 4))
    found = split_halves(returns)
    assert found is not None
    assert found.shape == (50, 20)
    assert returns.mean(axis=-1).max(axis=-1).mean() > 0.5
    assert abs(found.mean()) < 0.1


def test_decimals_go_by_the_largest_unless_the_suite_fixes_them() -> None:
    assert [decimals(x) for x in (0.9, -2.0, 19.9, -20.0, 5000.0)] == [3, 2, 2, 1, 1]
    assert decimals([0.1, np.nan, 100.0]) == 1
    assert decimals([]) == decimals([np.nan]) == 3
    assert decimals(0.5, 1) == 1
    assert summarise(np.array([0.5, 0.7])).shown(None) == "0.600 ± 0.141"
