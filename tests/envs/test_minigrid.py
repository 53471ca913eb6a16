"""MultiRoom against the Farama package itself: every step of long random and scripted walks."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minigrid.envs.multiroom import MultiRoomEnv

from slackline.envs import minigrid as ours
from slackline.envs.minigrid import (
    DONE,
    DROP,
    FORWARD,
    LEFT,
    PICKUP,
    RIGHT,
    TOGGLE,
    WALL,
    MultiRoom,
    MultiRoomParams,
    generate,
)
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE
from slackline.methods.latent import Point
from slackline.paper import paper_average, paper_score
from slackline.rollout import CompiledRunner, Fixed, Jobs
from slackline.suites.minigrid import maze
from slackline.suites.resolve import suite
from slackline.types import Array

ENV, SUITE, KEY = MultiRoom(), suite("minigrid"), jax.random.key(0)
MAZES = [(seed, 2, 4) for seed in range(12)] + [(seed, 4, 5) for seed in range(12)] + [(0, 6, 10)]
"""(seed, rooms, size)"""
NUM_STEPS = 1200
STEP, RESET = jax.jit(ENV.step), jax.jit(ENV.reset)


def real_maze(seed: int, rooms: int, size: int) -> Any:
    env: Any = MultiRoomEnv(minNumRooms=rooms, maxNumRooms=rooms, maxRoomSize=size)
    env.reset(seed=seed)
    return env


class Seen(NamedTuple):
    """A walk of T steps; where an episode ended, the next step is the first of another."""

    first: np.ndarray
    """The observation of the first reset, (147,)."""
    observation: np.ndarray
    """After every step, before any reset, (T, 147)."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    restarted: np.ndarray
    """What is seen after the step and the reset that may follow, (T, 147)."""


# The plans


def moves_from(env: Any, place: tuple[int, int], facing: int) -> Iterator[tuple[list[int], Any]]:
    """What one can do on a tile: turn, or walk ahead, through a door if need be."""
    yield [LEFT], (place, (facing - 1) % 4)
    yield [RIGHT], (place, (facing + 1) % 4)
    dx, dy = ((1, 0), (0, 1), (-1, 0), (0, -1))[facing]
    ahead = (place[0] + dx, place[1] + dy)
    tile = env.grid.get(*ahead)
    if tile is None or tile.type == "goal":
        yield [FORWARD], (ahead, facing)
    elif tile.type == "door":
        yield [TOGGLE, FORWARD], (ahead, facing)


def way_to_the_goal(env: Any) -> list[int]:
    """Breadth-first search on the real maze, all doors shut."""
    begin = (tuple(map(int, env.agent_pos)), int(env.agent_dir))
    ways: dict[Any, list[int]] = {begin: []}
    queue = deque(ways)
    while queue:
        now = queue.popleft()
        if now[0] == tuple(env.goal_pos):
            return ways[now]
        for actions, then in moves_from(env, *now):
            if then not in ways:
                ways[then] = ways[now] + actions
                queue.append(then)
    raise AssertionError("no way to the goal")


DETOURS = (
    *([LEFT, RIGHT], [RIGHT, LEFT], [LEFT] * 4, [PICKUP], [DROP], [DONE]),
    *([TOGGLE, TOGGLE], [LEFT, FORWARD, RIGHT], [RIGHT, TOGGLE, LEFT, DONE]),
)
"""Ways to stay on course; but those with a step or a toggle in them may lead astray."""
LIKELY = (0.13, 0.13, 0.4, 0.05, 0.05, 0.19, 0.05)
"""Of a walk at random: it comes further than one that does everything equally often."""


def episodes(env: Any, rng: np.random.Generator) -> Iterator[list[int]]:
    """The way to the goal at once and at the last moment, then with detours and at random in turn.

    Whatever comes of it, it is long enough for the time to run out.
    """

    def at_random() -> list[int]:
        return rng.choice(7, size=env.max_steps, p=LIKELY).tolist()

    way = way_to_the_goal(env)
    yield way + at_random()
    yield [DONE] * (env.max_steps - len(way)) + way
    while True:
        detours = [DETOURS[i] if rng.random() < 0.3 else [] for i in rng.integers(9, size=len(way))]
        astray = [a for detour, action in zip(detours, way, strict=True) for a in (*detour, action)]
        yield astray + at_random()
        yield at_random()


# The two implementations


def walk_for_real(seed: int, rooms: int, size: int) -> tuple[np.ndarray, Seen, int]:
    """(actions, what the real environment made of them, through how many doors they led)"""
    env, doors, taken, rows = real_maze(seed, rooms, size), 0, [], []
    first = env.gen_obs()["image"].reshape(-1)
    plans = episodes(env, np.random.default_rng((seed, rooms)))
    plan = next(plans)
    while len(taken) < NUM_STEPS:
        action = plan.pop(0)
        seen, reward, terminated, truncated, _ = env.step(action)
        under = env.grid.get(*env.agent_pos)
        doors += action == FORWARD and under is not None and under.type == "door"
        after = seen
        if terminated or truncated:
            after, _ = env.reset(seed=seed)
            plan = next(plans)
        image, fresh = (x["image"].reshape(-1) for x in (seen, after))
        rows.append((image, reward, terminated, truncated, fresh))
        taken.append(action)
    return np.array(taken, np.int32), Seen(first, *map(np.array, zip(*rows, strict=True))), doors


@jax.jit
@jax.vmap
def walk(params: MultiRoomParams, actions: Array) -> Any:
    first, state = ENV.reset(KEY, params)

    def step(carry: Any, action: Array) -> tuple[Any, Any]:
        elapsed, state = carry
        seen, state, reward, terminated = ENV.step(KEY, state, action, params)
        truncated = elapsed + 1 >= ENV.time_limit(params, SUITE.horizon)
        fresh, stepped = (0, *ENV.reset(KEY, params)), (elapsed + 1, seen, state)
        elapsed, after, state = jax.tree.map(
            lambda new, old: jnp.where(terminated | truncated, new, old), fresh, stepped
        )
        return (elapsed, state), (seen, reward, terminated, truncated, after)

    return first, *jax.lax.scan(step, (jnp.int32(0), state), actions)[1]


def stacked(mazes: list[MultiRoomParams]) -> MultiRoomParams:
    return MultiRoomParams(*(jnp.asarray(np.stack(leaves)) for leaves in zip(*mazes, strict=True)))


def test_every_step_is_the_real_one() -> None:
    walks = [walk_for_real(*number) for number in MAZES]
    actions = np.stack([taken for taken, _, _ in walks])
    replayed = jax.tree.map(np.asarray, walk(stacked([generate(*n) for n in MAZES]), actions))
    assert len(MAZES) >= 20
    assert actions.size >= 20_000
    for i, (number, (_, real, doors)) in enumerate(zip(MAZES, walks, strict=True)):
        found = Seen(*(leaf[i] for leaf in replayed))
        for name in ("first", "observation", "restarted", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(found, name), getattr(real, name), name)
        np.testing.assert_array_equal(found.reward, real.reward.astype(np.float32))
        assert real.terminated.sum() >= 3, f"{number}: the goal was hardly ever reached"
        assert real.truncated.sum() >= 3, f"{number}: the time was hardly ever up"
        assert (real.terminated & real.truncated).any(), f"{number}: never at the last moment"
        assert doors >= 3 * (number[1] - 1), f"{number}: doors were hardly ever passed"
    assert sum(real.terminated.sum() for _, real, _ in walks) > 250
    rewards, seen = (np.concatenate([w[1][i] for w in walks]) for i in (2, 1))
    assert len(np.unique(rewards)) > 40
    assert len(np.unique(seen, axis=0)) > 1000


# One thing at a time


def states_and_rewards(
    params: MultiRoomParams, actions: list[int]
) -> tuple[list[Any], list[float]]:
    """The states (the first included) and rewards of a walk."""
    states, rewards = [RESET(KEY, params)[1]], []
    for action in actions:
        _, state, reward, _ = STEP(KEY, states[-1], jnp.int32(action), params)
        states.append(state)
        rewards.append(float(reward))
    return states, rewards


@pytest.mark.parametrize("action", [PICKUP, DROP, DONE])
def test_there_is_nothing_to_carry(action: int) -> None:
    """In front of every tile on the way: only the time goes on."""
    way = way_to_the_goal(real_maze(3, 4, 5))
    params = generate(3, 4, 5)
    for state in states_and_rewards(params, way)[0]:
        _, after, reward, terminated = STEP(KEY, state, jnp.int32(action), params)
        assert after == state._replace(steps=state.steps + 1)
        assert (float(reward), bool(terminated)) == (0.0, False)


def test_walls_and_shut_doors_stop_the_agent() -> None:
    """Walking on and on ahead, in every direction, never leaves the first room."""
    params = generate(0)
    room = np.flatnonzero(np.asarray(params.tiles).reshape(-1) & 15 == WALL)
    states, rewards = states_and_rewards(params, ([FORWARD] * 5 + [LEFT]) * 8)
    assert not set(room) & {int(state.place) for state in states}
    assert not any(rewards)
    assert len({int(state.place) for state in states}) <= 4  # a room of size 4 has 2 × 2 tiles


def test_a_door_opens_and_shuts() -> None:
    params = generate(0)
    way = way_to_the_goal(real_maze(0, 2, 4))
    door = way.index(TOGGLE)
    states, _ = states_and_rewards(
        params, [*way[:door], FORWARD, TOGGLE, TOGGLE, FORWARD, TOGGLE, FORWARD]
    )
    shut, opened, again, stopped, opened_again, inside = states[-6:]
    assert shut.shut == again.shut != opened.shut == opened_again.shut
    assert shut.place == stopped.place != inside.place
    kinds = [
        np.asarray(ours.observe(state, params)).reshape(7, 7, 3)[3, 5].tolist()
        for state in (shut, opened)
    ]
    assert kinds[0] == [*kinds[1][:2], 1]
    assert kinds[1][0] == ours.DOOR


@pytest.mark.parametrize("rooms", [2, 4])
def test_reward_is_the_real_one_at_every_step(rooms: int) -> None:
    """1 − 0.9 · steps / max_steps, which MiniGrid computes in double precision."""
    real, params = real_maze(0, rooms, 5), generate(0, rooms, 5)
    reward = jax.jit(ours.reward_of_arrival)
    for real.step_count in range(1, 20 * rooms + 1):
        assert float(reward(jnp.int32(real.step_count), params)) == np.float32(real._reward())


def test_every_maze_has_its_own_time() -> None:
    """In training and in adaptation: 20 steps a room, cut there and not terminated."""

    def turn(noise: Array, observation: Array, z: Array) -> tuple[Array, Array, Array]:
        action = jnp.full(observation.shape[0], LEFT)
        return action, action, jnp.zeros(observation.shape[0])

    no_noise = jnp.zeros((100, 2))
    for rooms in (2, 4):
        params = generate(0, rooms, 5)
        runner, draw_z = CompiledRunner(Fixed(ENV, params), SUITE.horizon), Point().sample
        running = runner.start(KEY, draw_z, 2)
        _, steps, ended = runner.steps(KEY, running, turn, draw_z, no_noise)
        cut = np.arange(1, 101) % (20 * rooms) == 0
        np.testing.assert_array_equal(steps.truncated, np.stack([cut, cut], axis=1))
        assert not np.asarray(steps.terminated).any()
        assert ended.length_sum == 20 * rooms * ended.count


def test_an_arrival_after_the_time_is_up_does_not_count() -> None:
    """The same way to the goal in the same maze, with time enough and one step too little."""
    params, way = generate(5), way_to_the_goal(real_maze(5, 2, 4))
    limits = (len(way), len(way) - 1)
    both = stacked([params._replace(max_steps=np.int32(limit)) for limit in limits])
    clocked = Clocked(jnp.array(way + [DONE] * 40))

    def act(time: Array, z: Array) -> Array:
        return clocked.plan[time[:, 0].astype(int)]

    jobs = Jobs(both, jnp.zeros((2, 0)), KEYS)
    returns = CompiledRunner(clocked, SUITE.horizon).episodes(act, jobs).returns
    np.testing.assert_allclose(returns, [0.1, 0.0], rtol=1e-6)


KEYS = jax.random.split(KEY, 2)


class Clocked(MultiRoom):
    """Shows nothing but the time, so that a policy can follow a plan."""

    def __init__(self, plan: Array):
        self.plan = plan

    def reset(self, key: Array, params: Any) -> tuple[Array, Any]:
        return jnp.zeros(1), super().reset(key, params)[1]

    def step(self, key: Array, state: Any, action: Array, params: Any) -> Any:
        _, state, reward, terminated = super().step(key, state, action, params)
        return state.steps.astype(float)[None], state, reward, terminated


# The suite and the package


def test_the_suite_has_the_papers_shape() -> None:
    """One maze of two rooms to train in; three others and three of four rooms to test on."""
    mazes = [v.apply(ENV.default_params()) for v in SUITE.variations]
    assert [int(m.max_steps) for m in mazes] == [40] * 3 + [80] * 3
    assert int(ENV.default_params().max_steps) == 40
    doors = [int((np.asarray(m.tiles) >> 7).max()) for m in (ENV.default_params(), *mazes)]
    assert doors == [1] * 4 + [3] * 3
    layouts = {(m.tiles.tobytes(), int(m.start), int(m.facing)) for m in mazes}
    train = ENV.default_params()
    assert len(layouts | {(train.tiles.tobytes(), int(train.start), int(train.facing))}) == 7
    assert SUITE.hyper.algorithm == "a2c"
    assert (SUITE.protocol.shots, SUITE.protocol.episodes) == (10, 1)


def test_the_papers_rows_are_found() -> None:
    assert paper_score("minigrid", CATALOGUE["lop"], "TwoRoomsMaze2", 10) == (0.865, 0.0)
    assert paper_score("minigrid", CATALOGUE["diayn_r_l2"], "FourRoomsMaze3", 10) == (0.28, 0.345)
    assert paper_average("minigrid", CATALOGUE["lop"], 10) == 0.447


def test_a_maze_of_ones_own() -> None:
    params = maze(7, rooms=6, size=10)(ENV.default_params())
    assert (params.tiles == generate(7, 6, 10).tiles).all()
    assert int(params.max_steps) == 120 == SUITE.horizon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0, "rooms": 7}, "number of rooms is 7; .* 1 to 6"),
        ({"seed": 0, "size": 3}, "size of rooms is 3; .* 4 to 10"),
    ],
)
def test_a_maze_that_cannot_be_made(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(SlacklineError, match=message):
        maze(**arguments)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minigrid.envs.multiroom", None)
    with pytest.raises(SlacklineError, match=r"MiniGrid: pip install 'slackline-rl\[minigrid\]'"):
        generate(seed=987)


QUIET = """
import sys
from slackline.rollout import CompiledRunner, Fixed, Jobs
from slackline.suites.resolve import suite
env = suite("minigrid").jax_env
assert not {"minigrid", "pygame", "gymnasium"} & set(sys.modules)
env.default_params()
assert "minigrid" in sys.modules
"""


def test_the_package_comes_late_and_quietly() -> None:
    command = [sys.executable, "-W", "error", "-c", QUIET]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
