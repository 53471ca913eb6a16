"""Scenes show what is so: where things are, how large, and what was changed."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from slackline.envs.view import Bones, Skeleton, View
from slackline.errors import SlacklineError
from slackline.suites import NAMES
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN
from slackline.watch.scenes import (
    ACCENT,
    BODY,
    FAR,
    NEAR,
    SKY,
    Picture,
    behind,
    changed_bones,
    changed_fields,
    metres,
    mix,
    painter_of,
)

CLASSIC = ("cartpole", "acrobot", "pendulum", "pendulum-continuous", "maze2d")
ACCENTS = {mix(ACCENT, SKY, share) for share in (NEAR, FAR)} | {ACCENT}


class Pose(NamedTuple):
    pos: np.ndarray
    rot: np.ndarray


class Hopper:
    """A body of three links, above each other along x; params is the radius of the last."""

    flat = True

    def bones(self, params: float) -> Bones:
        start = np.zeros((3, 3))
        end = np.array([(0, 0, 0.5), (0, 0, 0.5), (0.5, 0, 0)], float)
        end[1, 1] = 0.0 if self.flat else 0.4
        return Bones(np.arange(3), start, end, np.array([0.1, 0.1, params]))

    def pose(self, state: Pose) -> tuple[np.ndarray, np.ndarray]:
        return state.pos, state.rot

    def view(self) -> View:
        return View(Skeleton(self.bones, self.pose))


class Crab(Hopper):
    flat = False


def standing(x: float, height: float = 0.5) -> Pose:
    """Link 1 behind link 0, link 2 before it; nothing turned. A past of two states."""
    pos = np.array([(x, 0, height), (x - 0.4, 0, height), (x + 0.4, 0, height)], float)
    rot = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    start = pos - np.array([x, 0.0, 0.0])
    return Pose(np.stack([start, pos]), np.stack([rot, rot]))


def fills(picture: Picture) -> list[str]:
    return [shape.fill for shape in picture.shapes]


def bodies(picture: Picture) -> list[np.ndarray]:
    """The outlines of what has an edge."""
    return [shape.outline for shape in picture.shapes if shape.edge]


def past_of(name: str, variation: str) -> tuple[Any, Any, Any]:
    """(one state as a past, changed and usual params) of a suite."""
    found = suite(name)
    usual = found.env.default_params()
    params = found.variation(variation).apply(usual)
    _, state = found.jax_env.reset(jax.random.key(0), params)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state), params, usual


def test_colours_mix() -> None:
    assert mix("#000000", "#ffffff", 0.5) == "#808080"
    assert mix("#0a141e", "#ffffff", 0.0) == "#0a141e"
    assert mix("#0a141e", "#d55e00", 1.0) == "#d55e00"


@pytest.mark.parametrize("name", [name for name in NAMES if name in CLASSIC])
def test_every_classic_environment_has_a_scene(name: str) -> None:
    for variation in (TRAIN, *suite(name).variations):
        past, params, usual = past_of(name, variation.name)
        picture = painter_of(suite(name).jax_env, params, usual)(past)
        left, bottom, right, top = picture.window
        assert left < right
        assert bottom < top
        for outline in bodies(picture):
            assert np.isfinite(outline).all()
            assert (outline.min(axis=0) > [left, bottom]).all()
            assert (outline.max(axis=0) < [right, top]).all()
        if variation is TRAIN:
            assert not ACCENTS & set(fills(picture)), "nothing is changed in training"


@pytest.mark.parametrize(
    ("name", "variation"),
    [
        ("cartpole", "LongPole"),
        ("cartpole", "StrongPush"),
        ("pendulum", "Light"),
        ("acrobot", "Heavy"),
        ("maze2d", "Maze2"),
    ],
)
def test_what_was_changed_has_the_accent(name: str, variation: str) -> None:
    past, params, usual = past_of(name, variation)
    assert ACCENTS & set(fills(painter_of(suite(name).jax_env, params, usual)(past)))


def test_a_pole_twice_as_long_is_drawn_twice_as_long() -> None:
    heights = []
    for variation in ("Train", "LongPole"):
        past, params, usual = past_of("cartpole", variation)
        past = past._replace(angle=np.zeros(1), position=np.zeros(1))
        outlines = bodies(painter_of(suite("cartpole").jax_env, params, usual)(past))
        heights.append(max(outline[:, 1].max() for outline in outlines) - 0.42 - 0.055)
    np.testing.assert_allclose(heights, [1.0, 2.0], atol=1e-6)


def test_a_hanging_acrobot_and_an_upright_pendulum_are_drawn_so() -> None:
    past, params, usual = past_of("acrobot", "Train")
    past = jax.tree.map(np.zeros_like, past)
    low = min(
        o[:, 1].min() for o in bodies(painter_of(suite("acrobot").jax_env, params, usual)(past))
    )
    assert low == pytest.approx(-2.09, abs=0.01)
    past, params, usual = past_of("pendulum", "Train")
    past = jax.tree.map(np.zeros_like, past)
    high = max(
        o[:, 1].max() for o in bodies(painter_of(suite("pendulum").jax_env, params, usual)(past))
    )
    assert high == pytest.approx(1.15, abs=0.01)


def test_distances_are_said_without_a_minus_zero() -> None:
    assert [metres(x) for x in (-0.04, 0.04, -1.26, 12.0)] == ["0.0 m", "0.0 m", "−1.3 m", "12.0 m"]


def test_changed_fields_are_named() -> None:
    usual = suite("cartpole").jax_env.default_params()
    assert changed_fields(usual._replace(length=1.0, force=5.0), usual) == {"length", "force"}
    assert changed_fields(usual, usual) == set()


def test_changed_bones_are_those_of_another_size_or_place() -> None:
    usual = Hopper().bones(0.1)
    np.testing.assert_array_equal(changed_bones(usual, usual), [False] * 3)
    np.testing.assert_array_equal(changed_bones(Hopper().bones(0.2), usual), [False, False, True])
    moved = usual._replace(end=usual.end + np.array([[0.1], [0], [0]]))
    np.testing.assert_array_equal(changed_bones(moved, usual), [True, False, False])


def test_a_planar_body_is_drawn_from_the_side_around_its_torso() -> None:
    hopper: Any = Hopper()
    picture = painter_of(hopper, 0.2, 0.1)(standing(7.25))
    hind, torso, front = bodies(picture)
    np.testing.assert_allclose(hind.min(axis=0), [-0.5, 0.4], atol=1e-9)
    np.testing.assert_allclose(torso.max(axis=0), [0.1, 1.1], atol=1e-9)
    np.testing.assert_allclose(front.max(axis=0), [1.1, 0.7], atol=1e-9)
    assert fills(picture)[-3:] == [
        mix(BODY, SKY, FAR),
        mix(BODY, SKY, NEAR),
        mix(ACCENT, SKY, NEAR),
    ]
    assert picture.note == "7.2 m"
    assert [(round(x, 2), text) for x, _, text in picture.labels] == [(-0.25, "7 m"), (0.75, "8 m")]


def test_the_camera_follows_a_jump() -> None:
    hopper: Any = Hopper()
    low, high = (
        painter_of(hopper, 0.1, 0.1)(standing(0.0, height)).labels[0].y for height in (0.5, 3.0)
    )
    assert high == pytest.approx(low - 2.2)


def test_which_links_are_hind_ones() -> None:
    np.testing.assert_array_equal(behind(standing(0.0).pos[0]), [False, True, False])


def test_a_body_in_space_is_drawn_back_to_front() -> None:
    crab: Any = Crab()
    start = standing(2.0)
    picture = painter_of(crab, 0.3, 0.1)(start)
    assert len(bodies(picture)) == 3
    assert picture.note == "2.0 m"
    widths = [np.ptp(outline[:, 0]) for outline in bodies(picture)]
    assert all(0.1 < width < 1.5 for width in widths)
    turned = Pose(start.pos[:, :, [1, 0, 2]], start.rot)  # along y: the hind link is the nearest
    near = bodies(painter_of(crab, 0.1, 0.1)(turned))[-1]
    far = bodies(painter_of(crab, 0.1, 0.1)(turned))[0]
    assert near[:, 1].mean() < far[:, 1].mean(), "what is nearer stands lower in the picture"


def test_an_environment_without_a_scene_is_told() -> None:
    class Unseen:
        def view(self) -> None:
            return None

    env: Any = Unseen()
    with pytest.raises(SlacklineError, match=r"Unseen has no view\(\)"):
        painter_of(env, None, None)
