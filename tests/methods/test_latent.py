"""Latent spaces: sampling laws, anchor coefficients, candidates and what counts as a z."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties
from scipy import stats

from slackline.errors import SlacklineError
from slackline.methods.latent import (
    Bezier,
    Interval,
    Latent,
    Members,
    Point,
    Simplex,
    Skills,
    low_discrepancy,
)

SPACES = [
    Point(),
    Simplex(2),
    Simplex(3),
    Simplex(5),
    Simplex(3, spread="even"),
    Bezier(3),
    Bezier(5),
    Interval(),
    Skills(10),
    Members(5),
]


@pytest.mark.parametrize("latent", SPACES, ids=repr)
def test_samples_and_candidates_lie_in_the_space(latent: Latent) -> None:
    samples = np.asarray(latent.sample(jax.random.key(0), 200))
    assert samples.shape == (200, latent.size)
    for z in (*samples, *latent.candidates(5)):
        assert latent.contains(z)
        np.testing.assert_array_equal(latent.parse(z), z)


@pytest.mark.parametrize("latent", SPACES, ids=repr)
def test_anchor_coefficients_sum_to_one(latent: Latent) -> None:
    weights = np.asarray(latent.weights(latent.sample(jax.random.key(0), 200)))
    assert weights.shape == (200, latent.num_anchors)
    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("latent", SPACES, ids=repr)
def test_a_cover_lies_in_the_space_and_repeats_nothing(latent: Latent) -> None:
    for cover in (latent.cover(9), latent.grid(9)):
        assert cover.shape == (len(np.unique(cover, axis=0)), latent.size)
        assert all(latent.contains(z) for z in cover)
    np.testing.assert_array_equal(latent.cover(9)[0], latent.nested(1)[0])
    assert latent.has_choice == (len(latent.cover(9)) > 1)


@pytest.mark.parametrize(
    ("latent", "num_covering", "num_in_grid"),
    [
        (Point(), 1, 1),
        (Simplex(2), 4, 4),
        (Interval(), 4, 4),
        (Bezier(5), 4, 4),
        (Simplex(3), 8, 4),
        (Members(3), 3, 3),
        (Skills(7), 7, 7),
        (Skills(10), 8, 10),
    ],
    ids=repr,
)
def test_how_many_cover_a_space(latent: Latent, num_covering: int, num_in_grid: int) -> None:
    assert len(latent.cover(4, wider=2)) == num_covering
    assert len(latent.grid(4)) == num_in_grid


@pytest.mark.parametrize("num", [2, 3, 5])
def test_simplex_is_sampled_flat(num: int) -> None:
    """Mean 1/N, variance (N−1)/(N²(N+1)), covariance −1/(N²(N+1)); z_1 follows Beta(1, N−1)."""
    z = np.asarray(Simplex(num).sample(jax.random.key(7), 40_000), np.float64)
    variance = (num - 1) / (num**2 * (num + 1))
    np.testing.assert_allclose(z.mean(axis=0), 1 / num, atol=5 * (variance / len(z)) ** 0.5)
    expected = np.full((num, num), -1 / (num**2 * (num + 1)))
    np.fill_diagonal(expected, variance)
    np.testing.assert_allclose(np.cov(z.T), expected, atol=0.03 * variance)
    for component in z.T:
        assert stats.kstest(component, stats.beta(1, num - 1).cdf).pvalue > 1e-4


@pytest.mark.parametrize("concentration", [0.3, 4.0])
def test_simplex_is_sampled_as_concentrated_as_told(concentration: float) -> None:
    """z_1 follows Beta(α, (N − 1) α); what adaptation tries stays spread over all of it."""
    latent = Simplex(3, concentration=concentration)
    z = np.asarray(latent.sample(jax.random.key(7), 20_000), np.float64)
    np.testing.assert_allclose(z.sum(axis=-1), 1.0, rtol=1e-5)
    for component in z.T:
        law = stats.beta(concentration, 2 * concentration)
        assert stats.kstest(component, law.cdf).pvalue > 1e-4
    np.testing.assert_array_equal(latent.candidates(20), Simplex(3).candidates(20))


def test_an_impossible_concentration_is_refused() -> None:
    with pytest.raises(SlacklineError, match=r"concentration is 0; .*0\.01"):
        Simplex(2, concentration=0)


@pytest.mark.parametrize("latent", [Interval(), Bezier(3)], ids=repr)
def test_interval_is_sampled_flat(latent: Latent) -> None:
    z = np.asarray(latent.sample(jax.random.key(0), 20_000))[:, 0]
    assert stats.kstest(z, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("latent", [Skills(10), Members(4)], ids=repr)
def test_skills_are_sampled_evenly(latent: Latent) -> None:
    counts = np.asarray(latent.sample(jax.random.key(0), 10_000)).sum(axis=0)
    assert counts.sum() == 10_000
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("latent", SPACES[1:], ids=repr)
def test_samples_differ_from_each_other_and_between_keys(latent: Latent) -> None:
    first = np.asarray(latent.sample(jax.random.key(0), 20))
    assert len(np.unique(first, axis=0)) > 3
    assert (first != np.asarray(latent.sample(jax.random.key(1), 20))).any()


def test_bezier_literal() -> None:
    """(1−z)², 2z(1−z), z²."""
    weights = Bezier(3).weights(jnp.array([[0.0], [0.25], [0.5], [1.0]]))
    expected = [[1, 0, 0], [0.5625, 0.375, 0.0625], [0.25, 0.5, 0.25], [0, 0, 1]]
    np.testing.assert_allclose(weights, expected, atol=1e-7)


@properties
@given(num=st.integers(3, 7), z=st.floats(0.0, 1.0, width=32))
def test_bezier_is_the_bernstein_basis(num: int, z: float) -> None:
    """The coefficients are binomial probabilities: a partition of unity."""
    expected = stats.binom.pmf(np.arange(num), num - 1, z)
    weights = Bezier(num).weights(jnp.array([z], jnp.float32))
    np.testing.assert_allclose(weights, expected, atol=1e-5)


@pytest.mark.parametrize("num", [3, 4, 8])
def test_bezier_ends_at_its_outer_anchors(num: int) -> None:
    ends = Bezier(num).weights(jnp.array([[0.0], [1.0]]))
    np.testing.assert_array_equal(ends, np.eye(num)[[0, -1]])


@pytest.mark.parametrize(
    ("shots", "expected"),
    [
        (1, [0.5]),
        (2, [0.0, 1.0]),
        (5, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (10, [k / 9 for k in range(10)]),
    ],
)
def test_candidates_on_a_line_literal(shots: int, expected: list[float]) -> None:
    first = np.array(expected, np.float32)
    line = Simplex(2).candidates(shots)
    np.testing.assert_allclose(line, np.stack([first, 1 - first], axis=-1), atol=1e-7)
    for latent in (Interval(), Bezier(3)):
        np.testing.assert_allclose(latent.candidates(shots), first[:, None], atol=1e-7)


@pytest.mark.parametrize("latent", [s for s in SPACES if s.size], ids=repr)
@pytest.mark.parametrize("shots", [1, 2, 5])
def test_candidates_are_as_many_as_asked_for_and_distinct(latent: Latent, shots: int) -> None:
    candidates = latent.candidates(shots)
    assert candidates.shape == (shots, latent.size)
    assert candidates.dtype == np.float32
    assert len(np.unique(candidates, axis=0)) == shots
    np.testing.assert_array_equal(candidates, latent.candidates(shots))


def test_low_discrepancy_literal() -> None:
    """Steps of 1/φ in one dimension, of 1/ρ and 1/ρ² (ρ = 1.3247…, the plastic ratio) in two."""
    np.testing.assert_allclose(
        low_discrepancy(3, 1)[:, 0], [0.118034, 0.736068, 0.354102], atol=1e-5
    )
    np.testing.assert_allclose(
        low_discrepancy(2, 2), [[0.254878, 0.069840], [0.009755, 0.639681]], atol=1e-5
    )


@pytest.mark.parametrize("num", [3, 4])
def test_even_candidates_fill_the_simplex_better_than_draws(num: int) -> None:
    """The worst-served z is nearer to a candidate than with draws as the paper makes them."""
    latent = Simplex(num, spread="even")
    everywhere = np.asarray(latent.sample(jax.random.key(5), 2000))

    def farthest(candidates: np.ndarray) -> float:
        apart = everywhere[:, None] - candidates[None]
        return float(np.linalg.norm(apart, axis=-1).min(axis=1).max())

    draws = [farthest(np.asarray(latent.sample(jax.random.key(i), 20))) for i in range(20)]
    assert farthest(latent.candidates(20)) < 0.9 * np.mean(draws)


def test_unknown_spread_is_refused() -> None:
    with pytest.raises(SlacklineError, match="it must be dirichlet or even"):
        Simplex(3, spread="odd")


def test_a_point_has_one_candidate() -> None:
    assert Point().candidates(10).shape == (1, 0)


def test_categorical_refuses_more_shots_than_skills() -> None:
    np.testing.assert_array_equal(Skills(4).candidates(4), np.eye(4))
    with pytest.raises(SlacklineError, match=r"shots is 5, but this method has 4 skills"):
        Skills(4).candidates(5)


def test_members_are_tried_in_order_and_no_more_than_there_are() -> None:
    np.testing.assert_array_equal(Members(3).candidates(2), np.eye(3)[:2])
    np.testing.assert_array_equal(Members(3).candidates(10), np.eye(3))
    z = jnp.eye(3)
    np.testing.assert_array_equal(Members(3).weights(z), z)


@pytest.mark.parametrize(
    ("latent", "z", "expected"),
    [
        (Point(), None, []),
        (Simplex(2), 0.25, [0.25, 0.75]),
        (Simplex(2), [0.25, 0.75], [0.25, 0.75]),
        (Simplex(2), 1, [1.0, 0.0]),
        (Simplex(3), (0.5, 0.25, 0.25), [0.5, 0.25, 0.25]),
        (Bezier(3), 0.25, [0.25]),
        (Interval(), np.float32(0.25), [0.25]),
        (Interval(), [1.0], [1.0]),
        (Skills(3), 2, [0.0, 0.0, 1.0]),
        (Members(3), 0, [1.0, 0.0, 0.0]),
        (Members(3), [0, 1, 0], [0.0, 1.0, 0.0]),
    ],
)
def test_shorthand(latent: Latent, z: Any, expected: list[float]) -> None:
    found = latent.parse(z)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.array(expected, np.float32), atol=1e-7)


@pytest.mark.parametrize(
    ("latent", "z", "message"),
    [
        (Point(), 0.5, "left out"),
        (Simplex(2), None, r"2 non-negative numbers with sum 1 \(or one number in \[0, 1\]"),
        (Simplex(2), 1.5, "2 non-negative numbers"),
        (Simplex(2), [0.5, 0.6], "2 non-negative numbers"),
        (Simplex(2), [1.5, -0.5], "2 non-negative numbers"),
        (Simplex(2), [0.2, 0.3, 0.5], "2 non-negative numbers"),
        (Simplex(2), float("nan"), "2 non-negative numbers"),
        (Simplex(3), 0.5, "3 non-negative numbers with sum 1$"),
        (Simplex(3), [float("nan"), 0.5, 0.5], "3 non-negative numbers"),
        (Bezier(3), -0.1, r"one number in \[0, 1\]"),
        (Interval(), [0.1, 0.2], r"one number in \[0, 1\]"),
        (Interval(), None, r"one number in \[0, 1\]"),
        (Interval(), float("inf"), r"one number in \[0, 1\]"),
        (Skills(3), 3, r"a one-hot vector of 3 \(or its index, 0 to 2\)"),
        (Skills(3), -1, "a one-hot vector of 3"),
        (Skills(3), 0.5, "a one-hot vector of 3"),
        (Skills(3), [0.5, 0.5, 0.0], "a one-hot vector of 3"),
        (Members(3), [1.0, 1.0, 0.0], "a one-hot vector of 3"),
        (Members(3), None, "a one-hot vector of 3"),
    ],
)
def test_errors_say_what_a_z_is(latent: Latent, z: Any, message: str) -> None:
    with pytest.raises(SlacklineError, match=message):
        latent.parse(z)


@pytest.mark.parametrize("z", ["middle", [[0.5], [0.5, 0.0]], {"z": 0.5}])
def test_what_is_not_even_numbers(z: Any) -> None:
    with pytest.raises(SlacklineError, match="2 non-negative numbers"):
        Simplex(2).parse(z)


@pytest.mark.parametrize(
    "make", [lambda: Simplex(1), lambda: Bezier(2), lambda: Skills(1), lambda: Members(1)]
)
def test_too_few_anchors_are_refused(make: Any) -> None:
    with pytest.raises(SlacklineError, match="whole number from"):
        make()


def test_corners_come_first() -> None:
    found = Simplex(3, spread="corners").candidates(9)
    np.testing.assert_allclose(found[0], 1 / 3, rtol=1e-6)
    np.testing.assert_array_equal(found[1:4], np.eye(3))
    np.testing.assert_array_equal(found[4:7], [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    np.testing.assert_array_equal(found[7:], Simplex(3, spread="even").candidates(2))
    np.testing.assert_array_equal(Simplex(3, spread="corners").candidates(2), found[:2])


def test_each_seed_draws_its_own_candidates() -> None:
    """Where they are draws; grids are the same for all."""
    latent = Simplex(3)
    np.testing.assert_array_equal(latent.drawn_by(0).candidates(5), latent.candidates(5))
    one, other = (latent.drawn_by(seed).candidates(5) for seed in (1, 2))
    assert not (one == other).any()
    np.testing.assert_array_equal(latent.drawn_by(1).candidates(5), one)
    np.testing.assert_allclose(one.sum(axis=-1), 1.0, rtol=1e-6)
    every = np.concatenate([latent.drawn_by(seed).candidates(20) for seed in range(200)])
    np.testing.assert_allclose(every.mean(axis=0), 1 / 3, atol=0.02)
    for same in (Simplex(2), Simplex(3, spread="even"), Bezier(3), Members(4)):
        assert same.drawn_by(7) is same


def centred_with(**shares: float) -> np.ndarray:
    """z of nine anchors with shares like a1=0.5 (anchors count from 1)."""
    z = np.zeros(9, np.float32)
    for name, share in shares.items():
        z[int(name[1:]) - 1] = share
    return z


@pytest.mark.parametrize(
    ("z", "text"),
    [
        (np.full(9, 1.0 / 9.0), "centre"),
        (centred_with(a4=1.0), "#4"),
        (centred_with(a1=0.5, a3=0.5), "0.50 #1 + 0.50 #3"),
        (centred_with(a2=0.3, a9=0.7), "0.70 #9 + 0.30 #2"),
        (centred_with(a1=0.4, a2=0.3, a3=0.2, a4=0.1), "0.40 #1 + 0.30 #2 + 0.20 #3 + …"),
        (centred_with(a1=0.999, a2=0.001), "#1"),
    ],
)
def test_many_anchors_are_shown_by_their_shares(z: np.ndarray, text: str) -> None:
    assert Simplex(9).show(z) == text


def test_few_anchors_are_shown_number_by_number() -> None:
    assert Simplex(3).show(np.array([0.2, 0.3, 0.5])) == "0.20 0.30 0.50"
    assert Simplex(2).show(np.array([0.25, 0.75])) == "0.25"


def test_z_of_many_anchors_may_be_given_by_name() -> None:
    latent = Simplex(9)
    assert (latent.parse("#4") == centred_with(a4=1.0)).all()
    np.testing.assert_allclose(latent.parse("centre"), np.full(9, 1.0 / 9.0), rtol=1e-6)
    for wrong in ("#0", "#10", "#", "middle", "0.5"):
        with pytest.raises(SlacklineError, match=r"must be 9 .* or an anchor: '#1' to '#9'"):
            latent.parse(wrong)


@pytest.mark.parametrize(
    ("latent", "middle"),
    [
        (Simplex(2), [0.5, 0.5]),
        (Simplex(3), [1 / 3, 1 / 3, 1 / 3]),
        (Interval(), [0.5]),
        (Bezier(3), [0.5]),
        (Members(2), [1.0, 0.0]),
        (Point(), []),
    ],
)
def test_every_space_has_a_centre(latent: Latent, middle: list[float]) -> None:
    np.testing.assert_allclose(latent.parse("centre"), middle, rtol=1e-6)
