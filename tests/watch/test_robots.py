"""Brax's robots as they are drawn, without any training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import slackline as sl
from slackline.envs.brax import Ant
from slackline.suites.resolve import suite
from slackline.watch.episodes import run_episodes
from slackline.watch.scenes import ACCENT, FAR, NEAR, SKY, mix, painter_of
from slackline.watch.watched import step_seconds


def start_of(env: Any, params: Any) -> Any:
    """A past of one state."""
    _, state = jax.jit(env.reset)(jax.random.key(0), params)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)


def test_a_half_cheetah_stands_on_the_ground_and_its_big_shins_are_marked() -> None:
    found = suite("halfcheetah")
    usual = found.env.default_params()
    params = found.variation("BigShins").apply(usual)
    picture = painter_of(found.jax_env, params, usual)(start_of(found.jax_env, usual))
    parts = [shape for shape in picture.shapes if shape.edge]
    assert len(parts) == 8
    marked = {mix(ACCENT, SKY, share) for share in (NEAR, FAR)}
    assert [part.fill in marked for part in parts].count(True) == 2
    left, _, right, top = picture.window
    for part in parts:
        assert left < part.outline[:, 0].min()
        assert part.outline[:, 0].max() < right
        assert part.outline[:, 1].max() < top
    assert min(part.outline[:, 1].min() for part in parts) == pytest.approx(0.0, abs=0.15)
    assert picture.note == "0.0 m"
    assert step_seconds(found.jax_env, params) == pytest.approx(0.05)


def test_an_impaired_robot_is_drawn_as_the_one_inside() -> None:
    found = suite("halfcheetah-hard")
    usual = found.env.default_params()
    params = found.variation("BigShinsTwice").apply(usual)
    picture = painter_of(found.jax_env, params, usual)(start_of(found.jax_env, usual))
    marked = {mix(ACCENT, SKY, share) for share in (NEAR, FAR)}
    assert [shape.fill in marked for shape in picture.shapes if shape.edge].count(True) == 2
    assert step_seconds(found.jax_env, params) == pytest.approx(0.05)


def test_an_ant_is_drawn_whole_in_perspective() -> None:
    env: Any = Ant()
    params = env.default_params()
    picture = painter_of(env, params, params)(start_of(env, params))
    parts = [shape for shape in picture.shapes if shape.edge]
    assert len(parts) == len(env.bones(params).radius)
    left, bottom, right, top = picture.window
    corners = np.concatenate([part.outline for part in parts])
    assert (corners.min(axis=0) > [left, bottom]).all()
    assert (corners.max(axis=0) < [right, top]).all()


@pytest.mark.parametrize("engine", ["positional", "generalized"])
def test_a_line_is_watched_on_the_other_engines(engine: str) -> None:
    """Which want their numbers as JAX has them."""
    line = sl.load(Path(__file__).parents[2] / "results" / "halfcheetah" / "halfcheetah-lop")
    elsewhere = replace(line, suite=f"halfcheetah-{engine}")
    variation = suite(elsewhere.suite).variation("TinyGravity")
    zs = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    found = run_episodes(elsewhere, variation, zs)
    assert (found.lengths == 1000).all()
    assert found.returns[0] != found.returns[1]
