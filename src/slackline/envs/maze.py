"""Maze2d: walk down a corridor, round whatever walls stand in it.

The paper's maze in our reading; its code was never published. The grid is 21 × 11. A border two
cells thick, as far as the agent sees, leaves a corridor of 17 × 7, so that the shortest way from
the top-middle to the bottom-middle tile is 16 moves and the best return −16, as the paper says.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Discrete, Env
from slackline.envs.view import Tiles, View
from slackline.types import Array

HEIGHT, WIDTH = 21, 11
SIGHT = 2
"""How far the agent sees; also the thickness of the border, so that it never sees past it."""
START: tuple[int, int] = (SIGHT, WIDTH // 2)
GOAL: tuple[int, int] = (HEIGHT - 1 - SIGHT, WIDTH // 2)
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)
"""(down, right) of the actions up, down, left, right."""


class MazeParams(NamedTuple):
    walls: np.ndarray | Array
    """(HEIGHT, WIDTH): True where the agent cannot go."""


class MazeState(NamedTuple):
    row: Array
    column: Array


class Maze(Env):
    """Observation: the 5 × 5 square around the agent; 1 is a wall, 0 is free, −1 is the goal.

    The goal is in it because the corridor's bottom looks alike from its three middle tiles: an
    agent coming round a wall could not tell them apart. Reward: −1 for every step, the one onto the
    goal included. An agent that walks into a wall stays where it is. Nothing here is random.
    """

    observation_size = (2 * SIGHT + 1) ** 2
    action = Discrete(len(MOVES))

    def default_params(self) -> MazeParams:
        return MazeParams(parse_maze("\n".join(["......."] * (HEIGHT - 2 * SIGHT))))

    def reset(self, key: Array, params: MazeParams) -> tuple[Array, MazeState]:
        state = MazeState(*map(jnp.int32, START))
        return observe(state, params), state

    def step(
        self, key: Array, state: MazeState, action: Array, params: MazeParams
    ) -> tuple[Array, MazeState, Array, Array]:
        down, right = jnp.asarray(MOVES)[action]
        row, column = state.row + down, state.column + right
        blocked = jnp.asarray(params.walls)[row, column]
        state = MazeState(
            jnp.where(blocked, state.row, row), jnp.where(blocked, state.column, column)
        )
        arrived = (state.row == GOAL[0]) & (state.column == GOAL[1])
        return observe(state, params), state, jnp.float32(-1.0), arrived

    def view(self) -> View:
        tiles = Tiles(
            START,
            GOAL,
            border=SIGHT - 1,
            walls=lambda params: params.walls,
            place=lambda state: (state.row, state.column),
        )
        return View(tiles)


def observe(state: MazeState, params: MazeParams) -> Array:
    seen = jnp.asarray(params.walls).astype(jnp.float32).at[GOAL].set(-1.0)
    corner = (state.row - SIGHT, state.column - SIGHT)
    return jax.lax.dynamic_slice(seen, corner, (2 * SIGHT + 1, 2 * SIGHT + 1)).reshape(-1)


def parse_maze(drawing: str) -> np.ndarray:
    """The wall grid of a drawing of the corridor: a line a row, `#` for a wall, `.` for free."""
    rows = drawing.split()
    height, width = HEIGHT - 2 * SIGHT, WIDTH - 2 * SIGHT
    if len(rows) != height or any(len(row) != width for row in rows):
        raise ValueError(f"a maze is drawn as {height} rows of {width} characters")
    if odd := set(drawing) - set("#.\n "):
        raise ValueError(f"a maze is drawn with # and . only, not {''.join(sorted(odd))}")
    walls = np.ones((HEIGHT, WIDTH), bool)
    walls[SIGHT:-SIGHT, SIGHT:-SIGHT] = np.array([[tile == "#" for tile in row] for row in rows])
    if walls[START] or walls[GOAL]:
        raise ValueError("the top-middle and bottom-middle tiles must be free")
    return walls
