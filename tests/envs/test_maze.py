"""Maze2d against a second implementation written from the paper's words, on plain Python lists.

The authors' maze was never published, so there is no original to replay.
"""

from __future__ import annotations

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackline.envs.maze import GOAL, START, Maze, MazeParams, MazeState, parse_maze
from slackline.methods.latent import Point
from slackline.rollout import CompiledRunner
from slackline.suites.maze2d import DRAWINGS
from slackline.suites.resolve import suite
from slackline.types import Array

SUITE = suite("maze2d")
ENV = SUITE.jax_env
UP, DOWN, LEFT, RIGHT = range(4)
SHORTEST = {"Train": 16, "Maze1": 16, "Maze2": 20, "Maze3": 20, "Maze4": 22, "Maze5": 20}
STEP = jax.jit(ENV.step)
RESET = jax.jit(ENV.reset)


class SlowMaze:
    """The corridor as a set of free tiles, its top-left tile (0, 0)."""

    def __init__(self, drawing: str):
        rows = drawing.split()
        self.free = {(r, c) for r in range(17) for c in range(7) if rows[r][c] == "."}
        self.place = (0, 3)

    def look(self) -> list[int]:
        around = [
            (self.place[0] + r, self.place[1] + c) for r in range(-2, 3) for c in range(-2, 3)
        ]
        return [-1 if tile == (16, 3) else int(tile not in self.free) for tile in around]

    def move(self, action: int) -> bool:
        r, c = self.place
        wanted = {UP: (r - 1, c), DOWN: (r + 1, c), LEFT: (r, c - 1), RIGHT: (r, c + 1)}[action]
        if wanted in self.free:
            self.place = wanted
        return self.place == (16, 3)


def shortest_path(walls: np.ndarray) -> int | None:
    """Breadth-first search from the start to the goal."""
    distance: dict[tuple[int, int], int] = {START: 0}
    queue = deque(distance)
    while queue:
        row, column = queue.popleft()
        for tile in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if not walls[tile] and tile not in distance:
                distance[tile] = distance[row, column] + 1
                queue.append(tile)
    return distance.get(GOAL)


def maze(name: str) -> MazeParams:
    return SUITE.variation(name).apply(ENV.default_params())


def walk(params: MazeParams, actions: list[int]) -> tuple[list[tuple[int, int]], float, bool]:
    """(tiles visited, return, terminated) of a scripted walk, cut where it terminates."""
    _, state = RESET(jax.random.key(0), params)
    tiles, total, terminated = [], 0.0, False
    for action in actions:
        assert not terminated, "the walk goes on after the end"
        _, state, reward, ended = STEP(jax.random.key(0), state, jnp.int32(action), params)
        tiles.append((int(state.row), int(state.column)))
        total, terminated = total + float(reward), bool(ended)
    return tiles, total, terminated


def test_the_suite_has_the_papers_shape() -> None:
    assert [v.name for v in SUITE.variations] == [f"Maze{i}" for i in range(1, 6)]
    assert SUITE.horizon == 100
    assert maze("Train").walls.shape == (21, 11)
    assert (~np.asarray(maze("Train").walls)).sum() == 17 * 7
    np.testing.assert_array_equal(maze("Maze1").walls, maze("Train").walls)


@pytest.mark.parametrize(("name", "moves"), SHORTEST.items())
def test_every_maze_can_be_solved(name: str, moves: int) -> None:
    assert shortest_path(np.asarray(maze(name).walls)) == moves
    if name != "Train":
        assert f"{moves} moves" in SUITE.variation(name).description


@pytest.mark.parametrize("name", SHORTEST)
def test_walking_straight_down_is_optimal_or_stuck(name: str) -> None:
    straight = walk(maze(name), [DOWN] * 16)
    assert straight[1] == -16.0
    assert straight[2] == (name in ("Train", "Maze1"))


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("Maze2", [DOWN] * 7 + [LEFT] * 2 + [DOWN] * 2 + [RIGHT] * 2 + [DOWN] * 7),
        ("Maze3", [LEFT] * 2 + [DOWN] * 16 + [RIGHT] * 2),
        ("Maze4", [DOWN] * 4 + [RIGHT] * 3 + [DOWN] * 12 + [LEFT] * 3),
        ("Maze5", [RIGHT] * 2 + [DOWN] * 16 + [LEFT] * 2),
    ],
)
def test_a_detour_reaches_the_goal(name: str, script: list[int]) -> None:
    tiles, total, terminated = walk(maze(name), script)
    assert tiles[-1] == GOAL
    assert (total, terminated) == (-float(SHORTEST[name]), True)


def test_walls_and_borders_block() -> None:
    tiles, total, terminated = walk(maze("Maze4"), [UP, *[DOWN] * 9, *[LEFT] * 4])
    assert tiles[0] == START, "the border above the start"
    assert tiles[7:10] == [(9, 5), (9, 5), (9, 5)], "the wall ahead"
    assert tiles[-2:] == [(9, 2), (9, 2)], "the border on the left"
    assert (total, terminated) == (-14.0, False)


def test_the_view() -> None:
    """At the start the border shows above; in front of a wall, the wall and its ends."""
    observation, _ = RESET(jax.random.key(0), maze("Train"))
    np.testing.assert_array_equal(
        observation.reshape(5, 5), [[1] * 5, [1] * 5, [0] * 5, [0] * 5, [0] * 5]
    )
    params = maze("Maze2")
    state = MazeState(jnp.int32(9), jnp.int32(4))
    observation, *_ = STEP(jax.random.key(0), state, jnp.int32(DOWN), params)
    np.testing.assert_array_equal(
        observation.reshape(5, 5), [[0] * 5, [0] * 5, [0] * 5, [0, 0, 1, 1, 1], [0] * 5]
    )
    state = MazeState(jnp.int32(17), jnp.int32(4))
    observation, *_ = STEP(jax.random.key(0), state, jnp.int32(LEFT), params)
    np.testing.assert_array_equal(
        observation.reshape(5, 5),
        [*[[1, 0, 0, 0, 0]] * 3, [1, 0, 0, 0, -1], [1] * 5],
    )
    observation, *_ = STEP(jax.random.key(0), state, jnp.int32(DOWN), params)
    np.testing.assert_array_equal(observation.reshape(5, 5)[2], [0, 0, 0, -1, 0])


@pytest.mark.usefixtures("strict_dtypes")
@given(
    tiles=st.lists(st.booleans(), min_size=119, max_size=119),
    actions=st.lists(st.integers(0, 3), min_size=1, max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_slow_maze(tiles: list[bool], actions: list[int]) -> None:
    """Any walls, any walk."""
    tiles[3] = tiles[-4] = False
    rows = ["".join("#" if t else "." for t in tiles[i : i + 7]) for i in range(0, 119, 7)]
    drawing = "\n".join(rows)
    slow, params = SlowMaze(drawing), MazeParams(parse_maze(drawing))
    observation, state = RESET(jax.random.key(0), params)
    assert observation.tolist() == slow.look()
    for action in actions:
        observation, state, reward, ended = STEP(
            jax.random.key(0), state, jnp.int32(action), params
        )
        assert bool(ended) == slow.move(action)
        assert (int(state.row) - 2, int(state.column) - 2) == slow.place
        assert observation.tolist() == slow.look()
        assert float(reward) == -1.0
        if ended:
            break


@pytest.mark.parametrize("drawing", DRAWINGS.values())
def test_the_drawings_are_what_is_walked(drawing: str) -> None:
    free = SlowMaze(drawing).free
    expected = {(r + 2, c + 2) for r, c in free}
    assert set(map(tuple, np.argwhere(~parse_maze(drawing)).tolist())) == expected


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        ("\n".join(["......."] * 16), "17 rows of 7"),
        ("\n".join(["........"] * 17), "17 rows of 7"),
        ("\n".join(["...x..."] * 17), "only, not x"),
        ("\n".join(["...#..."] + ["......."] * 16), "must be free"),
    ],
)
def test_a_bad_drawing_is_refused(drawing: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_maze(drawing)


def test_the_rollout_cuts_at_the_horizon() -> None:
    """An agent that only walks up is truncated, not terminated, after 100 steps at −100."""

    def up(noise: Array, observation: Array, z: Array) -> tuple[Array, Array, Array]:
        action = jnp.zeros(observation.shape[0], jnp.int32)
        return action, action, jnp.zeros(observation.shape[0])

    key, runner, draw_z = jax.random.key(0), CompiledRunner(ENV, SUITE.horizon), Point().sample
    running = runner.start(key, draw_z, 2)
    _, steps, episodes = runner.steps(key, running, up, draw_z, jnp.zeros((150, 2)))
    ends = np.argwhere(np.asarray(steps.truncated[:, 0]))[:, 0].tolist()
    assert ends == [99]
    assert not steps.terminated.any()
    assert (int(episodes.count), float(episodes.return_sum)) == (2, -200.0)


def test_mazes_stack() -> None:
    """Variations run as one program only if their parameters have one shape and type."""
    leaves = [jax.tree.leaves(maze(name)) for name in SHORTEST]
    assert {(leaf.shape, leaf.dtype) for row in leaves for leaf in row} == {
        ((21, 11), np.dtype(bool))
    }
    assert isinstance(ENV, Maze)
