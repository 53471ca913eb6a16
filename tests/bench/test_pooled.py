"""Pooled statistics against rliable's own numbers, SciPy, and in literal numbers.

rliable 1.2.0 is unmaintained and brings pandas, arch and seaborn, so that it is not installed here.
Its numbers below are those of, with `a` and `b` as here:

    from rliable import library, metrics
    metrics.aggregate_iqm(a); metrics.probability_of_improvement(a, b)
    library.get_interval_estimates({"a": a}, lambda x: np.array([metrics.aggregate_iqm(x)]),
        reps=4000, random_state=np.random.RandomState(0))
    library.get_interval_estimates({"ab": (a, b)}, metrics.probability_of_improvement,
        reps=500, random_state=np.random.RandomState(0))
    library.create_performance_profile({"a": a}, np.linspace(-1, 3, 5), reps=2000)
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from probes import properties
from scipy import stats as scipy_stats

from slackline.bench.pooled import (
    differences,
    holm,
    improvement,
    pooled_iqm,
    probability_of_improvement,
    profile,
    share_seeds,
)
from slackline.bench.stats import iqm_interval

generator = np.random.default_rng(0)
a, b = generator.normal(1.0, 1.0, (8, 4)), generator.normal(0.5, 1.0, (6, 4))

matrices = arrays.arrays(np.float64, (4, 3), elements=st.floats(-100.0, 100.0, width=32))


def test_iqm_and_its_interval_are_rliables() -> None:
    found = pooled_iqm([a], resamples=4000, together=False)
    assert found.value == pytest.approx(0.8191652231124465, rel=1e-12)
    assert [found.low, found.high] == pytest.approx([0.56055, 1.11353], abs=0.03)


def test_probability_of_improvement_is_rliables() -> None:
    found = probability_of_improvement([(a, b)], resamples=500, together=False)
    assert found.value == pytest.approx(0.4739583333333333, rel=1e-12)
    assert [found.low, found.high] == pytest.approx([0.328125, 0.61458333], abs=0.04)


def test_performance_profile_is_rliables() -> None:
    share, low, high = profile(a, np.linspace(-1.0, 3.0, 5))
    np.testing.assert_array_equal(share, [0.96875, 0.875, 0.4375, 0.09375, 0.0])
    assert (low <= share).all()
    assert (share <= high).all()


def test_probability_of_improvement_is_mann_and_whitneys() -> None:
    expected = [
        scipy_stats.mannwhitneyu(x, y, alternative="greater").statistic / 48
        for x, y in zip(a.T, b.T, strict=True)
    ]
    assert float(improvement(a, b)) == pytest.approx(np.mean(expected), rel=1e-12)
    assert float(improvement(a, a)) == 0.5
    assert float(improvement(a + 100.0, a)) == 1.0


@properties
@given(matrix=matrices)
def test_intervals_stay_within_what_was_seen(matrix: np.ndarray) -> None:
    found = pooled_iqm([matrix], resamples=100)
    assert matrix.min() - 1e-9 <= found.low <= found.high <= matrix.max() + 1e-9
    better = probability_of_improvement([(matrix, matrix[::-1])], resamples=100)
    assert 0.0 <= better.low <= better.high <= 1.0


def test_an_interval_is_cut_to_the_possible_range() -> None:
    matrix = np.array([[200.0, 190.0], [150.0, 195.0], [200.0, 200.0]])
    low, high = iqm_interval(matrix)
    assert high > 200.0
    assert iqm_interval(matrix, bounds=(0.0, 200.0)) == (low, 200.0)


def test_whole_seeds_are_resampled() -> None:
    """A seed that is good on one variation and on all alike: more variations tell nothing new."""
    one = np.random.default_rng(1).normal(0.0, 1.0, (8, 1))
    alone, many = pooled_iqm([one]), pooled_iqm([np.tile(one, 16)])
    assert many.high - many.low > 0.8 * (alone.high - alone.low)
    apart = pooled_iqm([np.tile(one, 16)], together=False)
    assert apart.high - apart.low < 0.5 * (many.high - many.low)


def test_strata_are_resampled_apart() -> None:
    """Suites whose seeds agree leave nothing uncertain, however far apart they are."""
    strata = [np.full((3, 2), 1.0), np.full((5, 2), 1000.0)]
    found = pooled_iqm(strata)
    assert found.low == found.value == found.high


def test_seeds_in_common_are_resampled_together() -> None:
    luck = np.random.default_rng(2).normal(0.0, 10.0, (10, 1))
    pair = (luck + 1.0, luck)
    together, apart = (
        probability_of_improvement([pair], paired=[paired]) for paired in (True, False)
    )
    assert together.value == apart.value
    assert together.high - together.low < apart.high - apart.low


def test_one_seed_has_no_interval() -> None:
    assert np.isnan(pooled_iqm([a[:1]])[1:]).all()
    assert np.isnan(probability_of_improvement([(a, b[:1])])[1:]).all()
    assert np.isnan(profile(a[:1], np.zeros(2))[1]).all()
    assert np.isnan(differences(a, b[:1])).all()


def test_differences_are_the_t_tests() -> None:
    welch = scipy_stats.ttest_ind(a, b, equal_var=False).pvalue  # type: ignore[attr-defined]
    np.testing.assert_allclose(differences(a, b), welch, rtol=1e-9)
    pairs = scipy_stats.ttest_rel(a[:6], b).pvalue  # type: ignore[attr-defined]
    np.testing.assert_allclose(differences(a[:6], b, paired=True), pairs, rtol=1e-9)
    np.testing.assert_array_equal(differences(np.ones((3, 2)), np.ones((3, 2))), [1.0, 1.0])


def test_holm_literal() -> None:
    """Four looks: 0.01·4, then 0.02·3, then the larger of that and 0.03·2, then 0.5."""
    np.testing.assert_allclose(holm(np.array([0.02, 0.5, 0.01, 0.03])), [0.06, 0.5, 0.04, 0.06])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])


def test_shared_seeds() -> None:
    assert share_seeds((0, 1), [0, 1])
    assert not share_seeds((0, 1), (0, 1, 2))
