"""The walks through the mazes, and their pictures."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from slackline.api import Line
from slackline.envs.maze import GOAL, START, Maze, MazeParams
from slackline.errors import SlacklineError
from slackline.learn.learner import Learner
from slackline.methods.catalogue import method
from slackline.networks.mlp import MLP
from slackline.report.trajectories import (
    SHADES,
    layout_of,
    shade_of,
    trajectories_html,
    trajectories_png,
    walks,
)
from slackline.suites.resolve import suite

UP, DOWN, LEFT, RIGHT = range(4)
MAZES = ("Train", *(v.name for v in suite("maze2d").variations))


def untrained(name: str, suite_name: str = "maze2d", **options: int) -> Line:
    """A subspace fresh from the initialiser."""
    found, chosen = suite(suite_name), method(name, **options)
    state = Learner(found.env, found.horizon, chosen.member).init(jax.random.key(0), found.hyper)
    policy = jax.tree.map(np.asarray, state.networks.policy)
    if chosen.num_members > 1:
        policy = jax.tree.map(lambda leaf: np.repeat(leaf, chosen.num_members, axis=0), policy)
    critic = jax.tree.map(np.asarray, state.networks.critic)
    return Line(suite_name, chosen, 0, found.env.action, policy, critic)


def stubborn(*actions: int) -> Line:
    """A line whose anchors always take the same action each, whatever they see."""
    line = untrained("lop")
    layers = line.policy.layers  # type: ignore[union-attr]
    *_, last = layers
    bias = np.zeros_like(last.bias)
    for anchor, action in enumerate(actions):
        bias[anchor, action] = 1.0
    quiet = jax.tree.map(np.zeros_like, layers)
    return replace(line, policy=MLP((*quiet[:-1], quiet[-1]._replace(bias=bias))))


def test_a_line_between_down_and_up() -> None:
    """z = 0 is the second anchor (up, stuck at the start), z = 1 the first (straight down)."""
    found = walks(stubborn(DOWN, UP), 4)
    assert found.mazes == MAZES
    assert found.visits.shape == (6, 4, 21, 11)
    assert found.returns[0].tolist() == [-100, -100, -16, -16]
    assert found.arrived[:, 3].tolist() == [True, True, False, False, False, False]
    assert found.visits[0, 0][START] == 101
    assert found.visits[0, 3][:, START[1]].tolist() == [0, 0] + [1] * 17 + [0, 0]
    assert found.visits[0, 3][GOAL] == 1
    assert found.labels == ("z = 0.00", "z = 0.33", "z = 0.67", "z = 1.00")
    assert walks(stubborn(DOWN, UP), 2).labels == ("z = 0.00", "z = 1.00")
    assert [found.caption(0, k) for k in range(4)] == ["stuck", "stuck", "−16", "−16"]
    assert [found.is_best(0, k) for k in range(4)] == [False, False, True, True]
    assert not any(found.is_best(2, k) for k in range(4))


@pytest.mark.parametrize("name", ["single", "ensemble", "lop", "cop", "bop", "diayn_r"])
def test_every_kind_of_subspace_walks(name: str) -> None:
    subspace = untrained(name)
    found = walks(subspace, 3)
    assert found.visits.shape == (6, len(found.zs), 21, 11)
    steps = found.visits.sum(axis=(2, 3)) - 1
    np.testing.assert_array_equal(steps, -found.returns)
    assert not found.visits[:, :, found.walls[0]].any(), "nobody walks through the border"
    assert not (found.visits * found.walls[:, None]).any(), "nobody walks through walls"
    expected = (1, 6) if name == "single" else (6, len(found.zs))
    layout = layout_of(found)
    assert (len(layout.rows), len(layout.columns)) == expected
    assert len({*layout.columns}) == expected[1]


def test_walks_are_what_adaptation_measures() -> None:
    line = untrained("lop")
    found = walks(line, 5)
    for v, name in enumerate(found.mazes):
        measured = line.adapt(name, shots=5, episodes=1, score_episodes=1)
        np.testing.assert_array_equal(measured.returns[:, 0], found.returns[v])


class Hurried(Maze):
    """With a time limit of its own: ten steps less."""

    def time_limit(self, params: MazeParams, horizon: int) -> int:
        return horizon - 10


def test_walks_keep_the_environment_s_own_time_limit() -> None:
    hurried = replace(suite("maze2d"), env=Hurried())
    found = walks(stubborn(DOWN, UP), 2, hurried)
    assert found.returns[0].tolist() == [-90, -16]
    assert found.visits[0, 0][START] == 91


def test_shades_grow_with_the_time_spent() -> None:
    assert shade_of(np.array([0, 1, 2, 3, 4, 9, 10, 29, 30, 101])).tolist() == [
        *[-1, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    ]
    assert len(SHADES) == 5


def test_the_html_is_one_table_of_pictures() -> None:
    text = trajectories_html(stubborn(DOWN, UP), 4)
    root = ElementTree.fromstring(text)
    pictures = root.findall(".//svg")
    assert len(pictures) == 24
    labels = [picture.get("aria-label") for picture in pictures]
    assert labels[0] == "Train, z = 0.00: stuck"
    assert labels[3] == "Train, z = 1.00: −16"
    assert [th.text for th in root.findall(".//tbody/tr/th")] == list(MAZES)
    down = pictures[3].findall("path")[1]
    assert down.get("fill") == SHADES[0]
    squares = re.findall(r"M4 (\d+)h1v1h-1z", down.get("d") or "")
    assert list(map(int, squares)) == list(range(1, 18))


def test_a_single_policy_is_one_row_of_mazes() -> None:
    root = ElementTree.fromstring(trajectories_html(untrained("single"), 10))
    assert [th.text for th in root.findall(".//thead/tr/th")][1:] == list(MAZES)
    assert len(root.findall(".//tbody/tr")) == 1


def test_the_png_is_drawn(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    for name, subspace in {"line": stubborn(DOWN, LEFT), "single": untrained("single")}.items():
        path = trajectories_png(subspace, 5, tmp_path / f"{name}.png")
        pixels = image.imread(path)[..., :3]
        assert pixels.shape[1] >= 800
        dark = np.abs(pixels - np.array([0x3A, 0x42, 0x4B]) / 255).max(axis=-1) < 0.01
        assert 0.05 < dark.mean() < 0.5, "the walls"
        blue = np.abs(pixels - np.array([0xCF, 0xE3, 0xF2]) / 255).max(axis=-1) < 0.01
        assert (blue.mean() > 0.002) or name == "single", "the walk"


def test_what_cannot_be_drawn_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SlacklineError, match="cartpole is not a maze"):
        walks(untrained("lop", "cartpole"), 3)
    with pytest.raises(SlacklineError, match="shots is 0"):
        walks(untrained("lop"), 0)
    pytest.importorskip("matplotlib")
    (tmp_path / "link.png").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SlacklineError, match="is a symbolic link"):
        trajectories_png(untrained("lop"), 3, tmp_path / "link.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SlacklineError, match="figures need matplotlib"):
        trajectories_png(untrained("lop"), 3, tmp_path / "no.png")
