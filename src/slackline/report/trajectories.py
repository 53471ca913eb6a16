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

from slackline.drawing.labels import labels_of
from slackline.drawing.sheet import DPI, FREE, INK, QUIET, WALL, Sheet, new_sheet, styled
from slackline.envs.api import Params
from slackline.envs.view import Tiles
from slackline.errors import SlacklineError, require_count
from slackline.networks.distributions import distribution_of
from slackline.networks.mlp import MLP
from slackline.report.markup import Html, element, join
from slackline.subspace import Subspace
from slackline.suites.recorded import home_of
from slackline.suites.suite import TRAIN, Suite
from slackline.types import Array

MAX_COLUMNS = 50
LEVELS = (1, 2, 4, 10, 30)
"""A tile is shaded by the last of these that the steps spent on it reach."""
SHADES = ("#cfe3f2", "#93c3e3", "#4d9bcf", "#1f6ea8", "#0c3b66")
FAINT = "#8a929b"
CENTRED = "text-align:center;padding:8px 6px"
START_COLOUR, GOAL_COLOUR = "#00855f", "#d55e00"


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


def walks(subspace: Subspace, shots: int) -> Walks:
    """Let the K candidates walk through the training corridor and every maze of the suite."""
    require_count("shots", shots, high=MAX_COLUMNS)
    suite = home_of(subspace)
    tiles = tiles_of(suite)
    if tiles is None:
        raise SlacklineError(f"walks are drawn in mazes, and {suite.name} is not a maze")
    variations = (TRAIN, *suite.variations)
    params = suite.params_of(variations)
    zs = subspace.method.latent.candidates(shots)
    labels = labels_of(subspace.method.latent, zs)
    networks = subspace.networks_at(zs)

    def one(params: Params, network: MLP) -> tuple[Array, Array, Array]:
        return walk(suite, tiles, network, params)

    each = jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))
    found = map(np.asarray, jax.jit(each)(params, networks))
    names, walls = tuple(v.name for v in variations), np.asarray(tiles.walls(params))
    return Walks(tiles, names, walls, zs, labels, *found)


def tiles_of(suite: Suite) -> Tiles | None:
    """The grid that a suite's agents walk on, if it is one."""
    view = suite.env.view()
    return view.scene if view is not None and isinstance(view.scene, Tiles) else None


def walk(suite: Suite, tiles: Tiles, network: MLP, params: Params) -> tuple[Array, Array, Array]:
    """(visits (H, W), return, arrived) of one deterministic episode."""
    env, distribution, key = suite.jax_env, distribution_of(suite.env.action), jax.random.key(0)
    observation, state = env.reset(key, params)
    visits = jnp.zeros(tiles.walls(params).shape, jnp.int32).at[tiles.start].set(1)

    def going(carry: tuple[Array, ...]) -> Array:
        return ~carry[-1] & (carry[0] < suite.horizon)

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        time, observation, state, visits, total, _ = carry
        action = distribution.greedy(network(observation))
        observation, state, reward, arrived = env.step(key, state, action, params)
        visits = visits.at[tiles.place(state)].add(1)
        return time + 1, observation, state, visits, total + reward, arrived

    first = (jnp.int32(0), observation, state, visits, jnp.zeros(()), jnp.zeros((), bool))
    return jax.lax.while_loop(going, step, first)[3:]


def trimmed(grid: np.ndarray, border: int) -> np.ndarray:
    """A grid without the part of its border that need not be seen."""
    height, width = grid.shape
    return grid[border : height - border, border : width - border]


def shade_of(visits: np.ndarray) -> np.ndarray:
    """Index into SHADES, or −1 where the agent never was."""
    return np.searchsorted(LEVELS, visits, side="right") - 1


class Layout(NamedTuple):
    """Which walk stands where: mazes by policies, or one row of mazes for a single policy."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: list[list[tuple[int, int]]]
    """(maze, policy) by row and column."""


def layout_of(found: Walks) -> Layout:
    num_mazes, num_policies = found.returns.shape
    if num_policies == 1:
        return Layout(("",), found.mazes, [[(v, 0) for v in range(num_mazes)]])
    cells = [[(v, k) for k in range(num_policies)] for v in range(num_mazes)]
    return Layout(found.mazes, found.labels, cells)


# PNG: everything is placed in inches, from the top left corner

TILE, GAP, LEFT, TOP, BELOW = 0.1, 0.14, 0.85, 1.28, 0.34
EXPLANATION = (
    "Darker tiles: more steps spent there. Circle: start. Square: goal.",
    "Below each: the return (bold: the best in this maze), or stuck.",
)


def trajectories_png(subspace: Subspace, shots: int, path: str | Path) -> Path:
    """Draw the walks of a subspace's K candidates; returns the file written."""
    path = Path(path)
    with styled():
        sheet = sheet_of(walks(subspace, shots), f"{subspace.method.title}, seed {subspace.seed}")
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.figure.savefig(path)
    return path


def sheet_of(found: Walks, title: str) -> Sheet:
    layout = layout_of(found)
    tall, wide = (TILE * n for n in trimmed(found.walls[0], found.tiles.border).shape)
    width = max(LEFT + len(layout.columns) * (wide + GAP) + 0.1, 5.0)
    height = TOP + len(layout.rows) * (tall + BELOW) + 0.05
    sheet = new_sheet(width, height, DPI)
    sheet.write(0.12, 0.14, title, fontsize=14, weight="bold")
    sheet.write(0.12, 0.46, "\n".join(EXPLANATION), color=QUIET)
    for j, text in enumerate(layout.columns):
        sheet.write(LEFT + j * (wide + GAP) + wide / 2, TOP - 0.22, text, ha="center", color=QUIET)
    for i, row in enumerate(layout.cells):
        y = TOP + i * (tall + BELOW)
        sheet.write(0.12, y, layout.rows[i], weight="bold")
        for j, (v, k) in enumerate(row):
            x = LEFT + j * (wide + GAP)
            _draw_walk(sheet.axes(x, y, wide, tall), found, v, k)
            weight = "bold" if found.is_best(v, k) else "normal"
            colour = INK if found.arrived[v, k] else FAINT
            caption = {"weight": weight, "color": colour, "ha": "center"}
            sheet.write(x + wide / 2, y + tall + 0.05, found.caption(v, k), **caption)
    return sheet


def _draw_walk(axes: Any, found: Walks, maze: int, policy: int) -> None:
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in (FREE, *SHADES, WALL)])
    index = shade_of(trimmed(found.visits[maze, policy], found.tiles.border)) + 1
    index[trimmed(found.walls[maze], found.tiles.border)] = len(palette) - 1
    axes.imshow(palette[index], interpolation="nearest")
    start, goal, cut = found.tiles.start, found.tiles.goal, found.tiles.border
    axes.plot(start[1] - cut, start[0] - cut, "o", ms=4.6, mfc="white", mec=START_COLOUR, mew=1.5)
    axes.plot(goal[1] - cut, goal[0] - cut, "s", ms=5.2, mfc=GOAL_COLOUR, mec="white", mew=0.8)
    axes.set_axis_off()


# HTML


def trajectories_html(subspace: Subspace, shots: int) -> Html:
    """The same as a fragment of the page: a table of small inline SVGs."""
    found = walks(subspace, shots)
    layout = layout_of(found)
    labels = [element("th", text, scope="col", style=CENTRED) for text in layout.columns]
    head = element("thead", element("tr", element("th", "", scope="col"), *labels))
    body = [
        element("tr", element("th", name, scope="row"), *(_cell(found, v, k) for v, k in row))
        for name, row in zip(layout.rows, layout.cells, strict=True)
    ]
    words = f"{subspace.method.title}, seed {subspace.seed}. {' '.join(EXPLANATION)}"
    table = element("table", element("caption", words), head, element("tbody", *body))
    return element("div", table, class_="scroll walks")


def _cell(found: Walks, maze: int, policy: int) -> Html:
    text = found.caption(maze, policy)
    bold = "font-weight:700" if found.is_best(maze, policy) else None
    style = bold if found.arrived[maze, policy] else "color:var(--quiet,#5b6570)"
    svg = _svg(found, maze, policy)
    return element("td", svg, element("div", text, style=style), style=CENTRED)


def _svg(found: Walks, maze: int, policy: int) -> Html:
    """A wall-coloured ground, the free tiles as holes in it, the walk on top."""
    walls, shades = (
        trimmed(found.walls[maze], found.tiles.border),
        shade_of(trimmed(found.visits[maze, policy], found.tiles.border)),
    )
    height, width = walls.shape
    start, goal, cut = found.tiles.start, found.tiles.goal, found.tiles.border
    where = f"{found.mazes[maze]}, {found.labels[policy]}"
    layers = [
        element("rect", width=width, height=height, fill=WALL),
        _tiles(~walls, FREE),
        *(_tiles(shades == i, colour) for i, colour in enumerate(SHADES) if (shades == i).any()),
        element(
            "circle",
            cx=start[1] - cut + 0.5,
            cy=start[0] - cut + 0.5,
            r=0.4,
            fill="#fff",
            stroke=START_COLOUR,
            stroke_width=0.24,
        ),
        element(
            "rect",
            x=goal[1] - cut + 0.12,
            y=goal[0] - cut + 0.12,
            width=0.76,
            height=0.76,
            fill=GOAL_COLOUR,
        ),
    ]
    return element(
        "svg",
        join(*layers),
        viewBox=f"0 0 {width} {height}",
        width=width * 7,
        height=height * 7,
        role="img",
        aria_label=f"{where}: {found.caption(maze, policy)}",
    )


def _tiles(mask: np.ndarray, colour: str) -> Html:
    """One path of unit squares, neighbours in a row joined."""
    parts = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
        parts += [f"M{a} {y}h{b - a}v1h{a - b}z" for a, b in edges.reshape(-1, 2)]
    return element("path", d="".join(parts), fill=colour, shape_rendering="crispEdges")
