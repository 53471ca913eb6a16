"""MiniGrid's MultiRoom mazes: open doors, walk from room to room, find the green goal.

The Farama package generates a maze for a seed; everything after that runs in JAX. Dynamics,
observation, reward and time limit are those of its `MultiRoomEnv`, and the tests replay both.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Discrete, Env
from slackline.errors import needed, require_count
from slackline.types import Array

SIDE = 25
"""Every MultiRoom maze lies in a square of this many tiles, whatever its rooms."""
VIEW = 7
"""The agent sees this many tiles ahead, its own included, and half as many to either side."""
BORDER = VIEW - 1
"""Walls around the square, so that the agent never looks past the array's edge."""
WIDTH = SIDE + 2 * BORDER
MAX_ROOMS, MAX_SIZE = 6, 10
"""The largest maze that MiniGrid registers; more rooms may find no place in the square."""

EMPTY, WALL, DOOR, GOAL = 1, 2, 4, 8
"""MiniGrid's numbers of what a tile holds; 0 is a tile not seen."""
GREY = 5
"""Its number of the colour of walls."""
LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(7)

AHEAD = np.array([1, WIDTH, -1, -WIDTH], np.int32)
"""How far the tile ahead is in the flat array, facing right, down, left, up."""
ASIDE = np.roll(AHEAD, -1)
"""The same for the tile at the agent's right hand."""
COLUMN, ROW = np.indices((VIEW, VIEW), np.int32)
"""Of the view's tiles. MiniGrid's images have columns first, from left to right."""
FORTH, SIDEWAYS = VIEW - 1 - ROW, COLUMN - VIEW // 2
"""How many tiles ahead of the agent and to its right: it stands in the last row's middle."""


class MultiRoomParams(NamedTuple):
    tiles: np.ndarray | Array
    """(WIDTH, WIDTH): what each tile holds, packed; the first axis runs down."""
    start: np.int32 | Array
    """The agent's first tile, as an index into the flattened tiles."""
    facing: np.int32 | Array
    """Its first direction."""
    max_steps: np.int32 | Array
    """The maze's own time limit; an earlier arrival earns more of it."""


class MultiRoomState(NamedTuple):
    place: Array
    """Index into the flattened tiles."""
    facing: Array
    """0 right, 1 down, 2 left, 3 up."""
    shut: Array
    """Bit k is 1 while door k is shut. Bit 0, of tiles without a door, is always 0."""
    steps: Array
    """Taken so far: the reward depends on it."""


class MultiRoom(Env):
    """Observation: MiniGrid's 7 × 7 × 3 image (kind, colour, door state), flat and not scaled.

    Tiles hidden behind walls and shut doors are 0. Reward: 1 − 0.9 · steps / max_steps at the goal,
    where the episode ends, 0 elsewhere. There is nothing to carry, so pickup, drop and done do
    nothing. Nothing here is random.
    """

    observation_size = VIEW * VIEW * 3
    action = Discrete(7)

    def default_params(self) -> MultiRoomParams:
        return generate(seed=0)

    def time_limit(self, params: MultiRoomParams, horizon: int) -> Array:
        # A maze of four rooms has twice the time of one of two.
        return jnp.minimum(horizon, params.max_steps)

    def reset(self, key: Array, params: MultiRoomParams) -> tuple[Array, MultiRoomState]:
        state = MultiRoomState(
            place=jnp.int32(params.start),
            facing=jnp.int32(params.facing),
            shut=jnp.int32(~1),
            steps=jnp.int32(0),
        )
        return observe(state, params), state

    def step(
        self, key: Array, state: MultiRoomState, action: Array, params: MultiRoomParams
    ) -> tuple[Array, MultiRoomState, Array, Array]:
        ahead = state.place + jnp.asarray(AHEAD)[state.facing]
        tile = tile_at(params, ahead)
        kind, _, door = unpack(tile)
        turn = jnp.int32(action == RIGHT) - jnp.int32(action == LEFT)
        toggled = jnp.where((action == TOGGLE) & (door > 0), 1 << door, 0)
        state = MultiRoomState(
            place=jnp.where((action == FORWARD) & is_clear(tile, state.shut), ahead, state.place),
            facing=(state.facing + turn) & 3,
            shut=state.shut ^ toggled,
            steps=state.steps + 1,
        )
        arrived = (action == FORWARD) & (kind == GOAL)
        reward = jnp.where(arrived, reward_of_arrival(state.steps, params), 0.0)
        return observe(state, params), state, reward, arrived


def reward_of_arrival(steps: Array, params: MultiRoomParams) -> Array:
    """1 − 0.9 · steps / max_steps, as one division of whole numbers: it is rounded only once."""
    whole = 10 * jnp.int32(params.max_steps)
    return jnp.float32(whole - 9 * steps) / jnp.float32(whole)


def observe(state: MultiRoomState, params: MultiRoomParams) -> Array:
    ahead, aside = (jnp.asarray(way)[state.facing] for way in (AHEAD, ASIDE))
    tiles = tile_at(params, state.place + FORTH * ahead + SIDEWAYS * aside)
    # The agent's own tile always looks empty, be it the goal or a doorway.
    tiles = jnp.where((FORTH == 0) & (SIDEWAYS == 0), EMPTY, tiles)
    visible = in_sight(is_clear(tiles, state.shut))
    kind, colour, door = unpack(jnp.where(visible, tiles, 0))
    image = jnp.stack([kind, colour, is_shut(door, state.shut).astype(jnp.int32)], axis=-1)
    return image.astype(jnp.float32).reshape(-1)


def in_sight(clear: Array) -> Array:
    """Which tiles of the view (VIEW, VIEW) are seen, given which of them one can see through.

    Sight starts at the agent and works away from it, row by row. Within a row it spreads sideways
    through clear tiles up to and including the first that is not; every clear tile seen shows the
    three tiles in front of it. A row is one number, with a bit for every tile.
    """
    rows = jnp.sum(jnp.where(clear, 1 << COLUMN, 0), axis=0)
    seen, lit = [], jnp.int32(1 << VIEW // 2)
    for row in reversed(range(VIEW)):
        shown = jnp.asarray(SHOWN)[lit, rows[row]]
        seen.append(lit | shown)
        lit = shown
    return (jnp.stack(seen[::-1])[None] >> COLUMN) & 1 > 0


def shown_by(lit: np.ndarray, clear: np.ndarray) -> np.ndarray:
    """What the clear tiles among the lit ones of a row show: in it, and as much in the next."""
    through = lit & clear
    for _ in range(VIEW - 1):
        through = widen(through) & clear
    return widen(through)


def widen(row: np.ndarray) -> np.ndarray:
    """A row's bits and their neighbours on both sides."""
    return (row | row << 1 | row >> 1) & (2**VIEW - 1)


# Looked up, because XLA would compute a row anew for every tile that depends on it.
SHOWN = shown_by(*np.indices((2**VIEW, 2**VIEW), np.int32))
"""`shown_by` of every row there can be."""


def tile_at(params: MultiRoomParams, places: Array) -> Array:
    return jnp.asarray(params.tiles).reshape(-1).at[places].get(mode="clip")


def is_clear(tiles: Array, shut: Array) -> Array:
    """Whether one can see and walk through."""
    kind, _, door = unpack(tiles)
    return (kind != WALL) & ~is_shut(door, shut)


def is_shut(door: Array, shut: Array) -> Array:
    return (shut >> door) & 1 > 0


def pack(kind: np.ndarray, colour: np.ndarray, door: np.ndarray) -> np.ndarray:
    """One number for a tile: what it holds, its colour, and the number of its door, 0 for none."""
    return (kind | colour << 4 | door << 7).astype(np.int32)


def unpack(tile: Array) -> tuple[Array, Array, Array]:
    """(kind, colour, door) of packed tiles."""
    return tile & 15, tile >> 4 & 7, tile >> 7


@cache
def generate(seed: int, rooms: int = 2, size: int = 4) -> MultiRoomParams:
    """The maze that MiniGrid's MultiRoom-N{rooms}-S{size} has for this seed."""
    check_maze(seed, rooms, size)
    with quiet_minigrid():
        real = multi_room_env()(minNumRooms=rooms, maxNumRooms=rooms, maxRoomSize=size)
        real.reset(seed=seed)
    return params_of(real)


def check_maze(seed: int, rooms: int, size: int) -> None:
    require_count("seed", seed, low=0, high=2**32 - 1)
    require_count("number of rooms", rooms, high=MAX_ROOMS)
    require_count("size of rooms", size, low=4, high=MAX_SIZE)


def params_of(real: Any) -> MultiRoomParams:
    """A MultiRoomEnv that was just reset, as parameters of ours."""
    kind, colour, _ = real.grid.encode().astype(np.int32).T
    door = np.where(kind == DOOR, np.cumsum(kind == DOOR).reshape(kind.shape), 0)
    tiles = np.pad(pack(kind, colour, door), BORDER, constant_values=WALL | GREY << 4)
    tiles.setflags(write=False)  # whoever asks for this maze again gets the same array
    column, row = real.agent_pos
    start = (row + BORDER) * WIDTH + column + BORDER
    return MultiRoomParams(tiles, *map(np.int32, (start, real.agent_dir, real.max_steps)))


def multi_room_env() -> Any:
    sentence = "mazes of rooms are generated by MiniGrid"
    return needed("minigrid.envs.multiroom", sentence, "minigrid").MultiRoomEnv


@contextlib.contextmanager
def quiet_minigrid() -> Iterator[None]:
    """Importing MiniGrid imports Pygame, which greets and warns; not on the user's screen."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
