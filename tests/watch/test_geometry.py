"""Turning, outlines and perspective, in numbers."""

from __future__ import annotations

import numpy as np
import pytest

from slackline.watch.geometry import box, capsule, disc, looking, rotate


def area(outline: np.ndarray) -> float:
    """Signed: positive against the clock."""
    x, y = outline.T
    return float(0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def test_a_quarter_turn_about_z_takes_x_to_y() -> None:
    half = np.sqrt(0.5)
    turned = rotate(np.array([half, 0, 0, half]), np.array([1.0, 0.0, 2.0]))
    np.testing.assert_allclose(turned, [0.0, 1.0, 2.0], atol=1e-12)


def test_turning_agrees_with_scipy() -> None:
    spatial = pytest.importorskip("scipy.spatial.transform")
    numbers = np.random.default_rng(0)
    rot = numbers.normal(size=(7, 4))
    rot /= np.linalg.norm(rot, axis=-1, keepdims=True)
    vectors = numbers.normal(size=(7, 3))
    theirs = spatial.Rotation.from_quat(rot, scalar_first=True).apply(vectors)
    np.testing.assert_allclose(rotate(rot, vectors), theirs, atol=1e-12)


def test_a_capsule_is_a_box_with_round_ends() -> None:
    outline = capsule(np.array([1.0, 1.0]), np.array([3.0, 1.0]), 0.5)
    np.testing.assert_allclose(outline.min(axis=0), [0.5, 0.5])
    np.testing.assert_allclose(outline.max(axis=0), [3.5, 1.5])
    assert area(outline) == pytest.approx(2.0 * 1.0 + np.pi * 0.25, rel=0.02)


def test_a_tapered_capsule_touches_both_circles_and_its_sides_are_tangents() -> None:
    """Radii 2 and 1 at distance 5: sin of the taper is 1/5."""
    start, end = np.zeros(2), np.array([5.0, 0.0])
    outline = capsule(start, end, 2.0, 1.0)
    np.testing.assert_allclose(outline.min(axis=0)[0], -2.0)
    np.testing.assert_allclose(outline.max(axis=0)[0], 6.0)
    last_at_end, first_at_start = outline[len(outline) // 2 - 1], outline[len(outline) // 2]
    np.testing.assert_allclose(first_at_start, [0.4, 2.0 * np.sqrt(0.96)])
    side = last_at_end - first_at_start
    assert side @ first_at_start == pytest.approx(0.0, abs=1e-9)
    assert side @ (last_at_end - end) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("r0", "r1", "centre"), [(2.0, 0.5, 0.0), (0.5, 2.0, 1.0), (1.0, 1.0, 0)])
def test_a_circle_inside_the_other_leaves_the_larger_one(
    r0: float, r1: float, centre: float
) -> None:
    end = np.array([0.0 if r0 == r1 else 1.0, 0.0])
    outline = capsule(np.zeros(2), end, r0, r1)
    apart = np.linalg.norm(outline - np.array([centre, 0.0]), axis=-1)
    np.testing.assert_allclose(apart, max(r0, r1))


def test_all_outlines_turn_the_same_way() -> None:
    shapes = (disc(np.ones(2), 2.0), capsule(np.ones(2), np.zeros(2), 0.3, 0.2), box(0, 0, 2, 1))
    assert all(area(outline) > 0 for outline in shapes)


def test_a_camera_draws_its_target_in_the_middle_at_its_true_size() -> None:
    camera = looking(np.array([0.0, -5.0, 0.0]), np.zeros(3))
    points = np.array([(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 5, 0), (0, -2.5, 1)], float)
    places, depths = camera.project(points)
    np.testing.assert_allclose(places, [(0, 0), (1, 0), (0, 1), (0.5, 0), (0, 2)], atol=1e-12)
    np.testing.assert_allclose(depths, [5, 5, 5, 10, 2.5])


def test_a_camera_from_above_keeps_upright_things_upright() -> None:
    camera = looking(np.array([-1.0, -3.0, 2.0]), np.zeros(3))
    places, _ = camera.project(np.array([(0, 0, 0), (0, 0, 1)], float))
    assert places[1, 0] == pytest.approx(0.0, abs=1e-12)
    assert places[1, 1] > 0.5
    np.testing.assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
