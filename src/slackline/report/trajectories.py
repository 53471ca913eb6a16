"""Where the policies of a subspace walk: the paper's pictures of Maze2d.

Rows are mazes, columns the K policies that adaptation tries. Evaluation is deterministic and so are
the mazes, so that one episode of each says everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from markupsafe import Markup

from slackline.drawing.labels import labels_of
from slackline.drawing.sheet import (
    DPI,
    FREE,
    INK,
    QUIET,
    WALL,
    Sheet,
    file_of,
    new_sheet,
    styled,
)
from slackline.envs.api import Params
from slackline.envs.view import Tiles
from slackline.errors import SlacklineError, require_count
from slackline.io.files import write_output
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Network
from slackline.report.markup import fill
from slackline.rollout import CompiledRunner, Jobs, Played, Recorder, Visits
from slackline.subspace import Subspace
from slackline.suites.recorded import home_of
from slackline.suites.suite import TRAIN, Suite
from slackline.types import Array

MAX_COLUMNS = 50
LEVELS = (1, 2, 4, 10, 30)
"""A tile is shaded by the last of these that the steps spent on it reach."""
SHADES = ("#cfe3f2", "#93c3e3", "#4d9bcf", "#1f6ea8", "#0c3b66")
FAINT = "#8a929b"
START_COLOUR, GOAL_COLOUR = "#00855f", "#d55e00"
PALETTE = (FREE, *SHADES, WALL)
EXPLANATION = (
    "Darker tiles: more steps spent there. Circle: start. Square: goal.",
    "Below each: the return (bold: the best in this maze), or stuck.",
)


class Walks(NamedTuple):
    """One episode of each of K policies in each of V mazes; the training corridor comes first."""

    tiles: Tiles
    mazes: tuple[str, ...]
    walls: np.ndarray
    """(V, H, W)"""
    zs: np.ndarray
    """(K, size)"""
    labels: tuple[str, ...]
    """What tells a policy from the others: z on a line, its number elsewhere."""
    visits: np.ndarray
    """Steps that ended on each tile, the start counted once: (V, K, H, W)."""
    returns: np.ndarray
    """(V, K)"""
    arrived: np.ndarray
    """Whether the goal was reached, (V, K)."""

    def caption(self, maze: int, policy: int) -> str:
        """`−22`, or `stuck` for a policy that never arrives."""
        if not self.arrived[maze, policy]:
            return "stuck"
        return f"{self.returns[maze, policy]:g}".replace("-", "−")

    def is_best(self, maze: int, policy: int) -> bool:
        """Whether no policy does better in this maze (and this one arrives)."""
        best = self.returns[maze].max()
        return bool(self.arrived[maze, policy] and self.returns[maze, policy] == best)


def walks(subspace: Subspace, shots: int, suite: Suite | None = None) -> Walks:
    """Let the K candidates walk through the training corridor and every maze of the suite, which is
    the one they were trained on where none is given."""
    require_count("shots", shots, high=MAX_COLUMNS)
    suite = home_of(subspace) if suite is None else suite
    tiles = tiles_of(suite)
    if tiles is None:
        raise SlacklineError(f"walks are drawn in mazes, and {suite.name} is not a maze")
    variations = (TRAIN, *suite.variations)
    params = suite.params_of(variations)
    zs = subspace.method.latent.drawn_by(subspace.seed).candidates(shots)
    labels = labels_of(subspace.method.latent, zs)
    names, walls = tuple(v.name for v in variations), np.asarray(tiles.walls(params))
    played = walked(subspace, suite, params, zs, Visits(walls.shape[1:], tiles.place))
    visits, returns, arrived = (
        np.asarray(x).reshape(len(names), len(zs), *x.shape[1:])
        for x in (played.recorded, played.returns, played.terminated)
    )
    return Walks(tiles, names, walls, zs, labels, visits, returns, arrived)


def walked(
    subspace: Subspace, suite: Suite, params: Params, zs: np.ndarray, recorder: Recorder
) -> Played:
    """One episode of every z in every maze, mazes first: V × K in a row."""
    method, distribution = subspace.method, distribution_of(suite.env.action)
    runner = CompiledRunner(suite.jax_env, suite.horizon)
    num_mazes = len(jax.tree.leaves(params)[0])
    maze, policy = np.indices((num_mazes, len(zs))).reshape(2, -1)

    def run(acting: Network, jobs: Jobs) -> Played:
        def act(observation: Array, z: Array) -> Array:
            return distribution.greedy(method.outputs(acting, observation, z))

        return runner.episodes(act, jobs, recorder)

    # Nothing in a maze is random.
    key = jnp.broadcast_to(jax.random.key(0), maze.shape)
    jobs = Jobs(jax.tree.map(lambda leaf: leaf[maze], params), zs[policy], key)
    return jax.jit(run)(jax.tree.map(jnp.asarray, subspace.acting), jobs)


def tiles_of(suite: Suite) -> Tiles | None:
    """The grid that a suite's agents walk on, if it is one."""
    view = suite.env.view()
    return view.scene if view is not None and isinstance(view.scene, Tiles) else None


def shade_of(visits: np.ndarray) -> np.ndarray:
    """Index into SHADES, or −1 where the agent never was."""
    return np.searchsorted(LEVELS, visits, side="right") - 1


class Walk(NamedTuple):
    """One picture: what is on which tile, as an index into `PALETTE`, and what stands below."""

    name: str
    """Which maze and policy."""
    tiles: np.ndarray
    """(H, W)"""
    start: tuple[int, int]
    goal: tuple[int, int]
    caption: str
    is_best: bool
    arrived: bool


class Layout(NamedTuple):
    """Which walk stands where: mazes by policies, or one row of mazes for a single policy."""

    columns: tuple[str, ...]
    rows: list[tuple[str, list[Walk]]]


def layout_of(found: Walks) -> Layout:
    num_mazes, num_policies = found.returns.shape
    if num_policies == 1:
        return Layout(found.mazes, [("", [picture(found, v, 0) for v in range(num_mazes)])])
    rows = [[picture(found, v, k) for k in range(num_policies)] for v in range(num_mazes)]
    return Layout(found.labels, list(zip(found.mazes, rows, strict=True)))


def picture(found: Walks, maze: int, policy: int) -> Walk:
    cut, walls = found.tiles.border, found.walls[maze]
    tiles = np.where(walls, len(PALETTE) - 1, shade_of(found.visits[maze, policy]) + 1)
    height, width = walls.shape
    start, goal = ((row - cut, col - cut) for row, col in (found.tiles.start, found.tiles.goal))
    return Walk(
        name=f"{found.mazes[maze]}, {found.labels[policy]}",
        tiles=tiles[cut : height - cut, cut : width - cut],
        start=start,
        goal=goal,
        caption=found.caption(maze, policy),
        is_best=found.is_best(maze, policy),
        arrived=bool(found.arrived[maze, policy]),
    )


def title_of(subspace: Subspace) -> str:
    return f"{subspace.method.title}, seed {subspace.seed}"


# PNG: everything is placed in inches, from the top left corner

TILE, GAP, LEFT, TOP, BELOW = 0.1, 0.14, 0.85, 1.28, 0.34


def trajectories_png(
    subspace: Subspace, shots: int, path: str | Path, suite: Suite | None = None
) -> Path:
    """Draw the walks of a subspace's K candidates; returns the file written."""
    with styled():
        sheet = sheet_of(layout_of(walks(subspace, shots, suite)), title_of(subspace))
        return write_output(Path(path), file_of(sheet.figure))


def sheet_of(layout: Layout, title: str) -> Sheet:
    tall, wide = (TILE * n for n in layout.rows[0][1][0].tiles.shape)
    width = max(LEFT + len(layout.columns) * (wide + GAP) + 0.1, 5.0)
    height = TOP + len(layout.rows) * (tall + BELOW) + 0.05
    sheet = new_sheet(width, height, DPI)
    sheet.write(0.12, 0.14, title, fontsize=14, weight="bold")
    sheet.write(0.12, 0.46, "\n".join(EXPLANATION), color=QUIET)
    places = [LEFT + j * (wide + GAP) for j in range(len(layout.columns))]
    for x, text in zip(places, layout.columns, strict=True):
        sheet.write(x + wide / 2, TOP - 0.22, text, ha="center", color=QUIET)
    for i, (name, row) in enumerate(layout.rows):
        y = TOP + i * (tall + BELOW)
        sheet.write(0.12, y, name, weight="bold")
        for x, each in zip(places, row, strict=True):
            _draw_walk(sheet.axes(x, y, wide, tall), each)
            weight, colour = "bold" if each.is_best else "normal", INK if each.arrived else FAINT
            look = {"weight": weight, "color": colour, "ha": "center"}
            sheet.write(x + wide / 2, y + tall + 0.05, each.caption, **look)
    return sheet


def _draw_walk(axes: Any, walk: Walk) -> None:
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in PALETTE])
    axes.imshow(palette[walk.tiles], interpolation="nearest")
    axes.plot(*walk.start[::-1], "o", ms=4.6, mfc="white", mec=START_COLOUR, mew=1.5)
    axes.plot(*walk.goal[::-1], "s", ms=5.2, mfc=GOAL_COLOUR, mec="white", mew=0.8)
    axes.set_axis_off()


# HTML


def trajectories_html(subspace: Subspace, shots: int, suite: Suite | None = None) -> Markup:
    """The same as a fragment of the page: a table of small inline SVGs."""
    return fill(
        "walks.html",
        title=title_of(subspace),
        layout=layout_of(walks(subspace, shots, suite)),
        explanation=" ".join(EXPLANATION),
        wall=WALL,
        outlines=outlines,
        colours=(START_COLOUR, GOAL_COLOUR),
    )


def outlines(walk: Walk) -> list[tuple[str, str]]:
    """(colour, SVG path) of the free tiles, to be drawn on a ground of wall, and of the walk."""
    shades = [(colour, walk.tiles == i) for i, colour in enumerate(SHADES, 1)]
    masks = [(FREE, walk.tiles < len(PALETTE) - 1), *shades]
    return [(colour, _path(mask)) for colour, mask in masks if mask.any()]


def _path(mask: np.ndarray) -> str:
    """Unit squares, neighbours in a row joined."""
    parts = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
        parts += [f"M{a} {y}h{b - a}v1h{a - b}z" for a, b in edges.reshape(-1, 2)]
    return "".join(parts)
