"""Pools: no step lost or doubled, whoever resets; spaces; and what goes wrong is named."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from host_probes import Diary, Faulty, Recorder, length, pool_of, recorded

import slackline as sl
from slackline.envs.api import Discrete
from slackline.envs.host import EnvironmentFailed, HostParams, Pool, Stepped, WatchedPool
from slackline.errors import SlacklineError
from slackline.networks.distributions import distribution_of

MODES = gym.vector.AutoresetMode


def vector_of(mode: Any, *, copy: bool = True) -> Callable[..., Any]:
    def diaries(num_envs: int) -> Any:
        return gym.vector.SyncVectorEnv([Diary] * num_envs, autoreset_mode=mode, copy=copy)

    return diaries


WAYS = {
    "sync": lambda: sl.gymnasium(Diary),
    "async": lambda: sl.gymnasium(Diary, workers="async"),
    "two processes": lambda: sl.gymnasium(Diary, workers=2),
    "same step": lambda: sl.gymnasium(vector_of(MODES.SAME_STEP)),
    "next step": lambda: sl.gymnasium(vector_of(MODES.NEXT_STEP)),
    "disabled": lambda: sl.gymnasium(vector_of(MODES.DISABLED)),
    "same step, one buffer": lambda: sl.gymnasium(vector_of(MODES.SAME_STEP, copy=False)),
    "next step, one buffer": lambda: sl.gymnasium(vector_of(MODES.NEXT_STEP, copy=False)),
    "disabled, one buffer": lambda: sl.gymnasium(vector_of(MODES.DISABLED, copy=False)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_step_appears_once_and_in_order(way: str) -> None:
    """What the pool tells is, environment by environment, what the diaries say."""
    pool = pool_of(WAYS[way](), num=3)
    first, steps = pool.reset(), 40
    told = [(first, None)] + [
        (s.observation, s) for s in map(pool.step, [np.zeros(3, int)] * steps)
    ]
    pool.close()
    real = 0
    for seed in range(3):
        episode, count, resting = 0, 0, False
        np.testing.assert_array_equal(first[seed], [seed, 0, 0])
        for before, (after, stepped) in pairwise(told):
            assert stepped is not None
            one = Stepped(*(part[seed] for part in stepped))
            assert one.real == (not resting)
            if resting:  # the library's reset: a new episode, and nothing else
                resting, episode, count = False, episode + 1, 0
                assert one.reward == 0.0
                assert not one.terminated
                assert not one.truncated
                np.testing.assert_array_equal(after[seed], [seed, episode, 0])
                continue
            np.testing.assert_array_equal(before[0][seed], [seed, episode, count])
            count, real = count + 1, real + 1
            ends, odd = count == length(seed, episode), episode % 2 == 1
            np.testing.assert_array_equal(one.reached, [seed, episode, count])
            assert (one.reward, one.terminated, one.truncated) == (
                count,
                ends * (not odd),
                ends * odd,
            )
            if ends and way.startswith("next step"):
                resting = True
            elif ends:
                episode, count = episode + 1, 0
            np.testing.assert_array_equal(after[seed], [seed, episode, count])
    assert pool.steps == real
    assert (real == 3 * steps) == (not way.startswith("next step"))


def test_the_pool_counts_what_the_environments_count() -> None:
    made: list[Diary] = []

    def diary() -> Diary:
        made.append(Diary())
        return made[-1]

    env = sl.gymnasium(diary)
    pool = pool_of(env, num=4)
    pool.reset()
    for _ in range(25):
        pool.step(np.ones(4, int))
    assert pool.steps == sum(one.steps for one in made) == 100
    pool.close()


def test_a_second_reset_begins_other_episodes() -> None:
    env = sl.gymnasium("CartPole-v1")
    pool = pool_of(env)
    first, second = pool.reset(), pool.reset()
    assert not np.isin(first, second).any()
    again = pool_of(env)
    np.testing.assert_array_equal(again.reset(), first)
    pool.close()
    again.close()


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (lambda: gym.make("CartPole-v1", max_episode_steps=7), 7),
        (lambda: gym.wrappers.TimeLimit(Faulty(), 9), 9),
        (lambda: gym.wrappers.TimeAwareObservation(gym.wrappers.TimeLimit(Faulty(), 15)), 15),
        (Faulty, 12),
    ],
)
def test_only_an_environment_without_a_time_limit_is_given_one(make: Any, limit: int) -> None:
    pool = pool_of(sl.gymnasium(make), num=1, horizon=12)
    pool.reset()
    ends = [t for t in range(1, 25) if pool.step(np.array([t % 2])).truncated[0]]
    assert ends[0] == limit
    pool.close()


def by_hand(first: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gymnasium's own CartPole from `first` (4,): its observations and whether it fell."""
    env: Any = gym.make("CartPole-v1").unwrapped
    env.reset()
    env.state = first.astype(np.float64)
    rows = [env.step(int(action)) for action in actions]
    return np.stack([row[0] for row in rows]), np.array([row[2] for row in rows])


def test_envpool_keeps_final_observations_and_wastes_no_step() -> None:
    """Every episode is the one that Gymnasium plays from its first observation."""
    env, num = sl.envpool("CartPole-v1", max_episode_steps=12), 4
    assert env.name == "envpool:CartPole-v1?max_episode_steps=12"
    pool = pool_of(env, num)
    draw, seen, rows = np.random.default_rng(0), pool.reset(), []
    for _ in range(60):
        action = draw.integers(0, 2, num) if len(rows) % 30 > 14 else np.arange(num) % 2
        rows.append((seen, action, pool.step(action)))
        seen = rows[-1][2].observation
        assert rows[-1][2].real.all()
    assert pool.steps == 60 * num
    ended = {"terminated": 0, "truncated": 0}
    for i in range(num):
        start = 0
        for t, (_, _, did) in enumerate(rows):
            done = did.terminated[i] or did.truncated[i]
            assert did.truncated[i] == (t - start + 1 == 12 and not did.terminated[i])
            if done:
                episode = rows[start : t + 1]
                known, fallen = by_hand(episode[0][0][i], np.array([a[i] for _, a, _ in episode]))
                reached = np.stack([d.reached[i] for _, _, d in episode])
                np.testing.assert_allclose(reached, known, atol=1e-4)
                # A fall in the very step of the limit is a truncation to EnvPool.
                assert did.terminated[i] == (fallen[-1] and t - start + 1 < 12)
                assert not fallen[:-1].any()
                assert (np.abs(did.observation[i]) <= 0.05).all()
                ended["terminated" if did.terminated[i] else "truncated"] += 1
                start = t + 1
            else:
                np.testing.assert_array_equal(did.observation[i], did.reached[i])
    assert min(ended.values()) > 2
    pool.close()


def test_discrete_actions_count_from_the_space_s_start() -> None:
    env, made = recorded(action=gym.spaces.Discrete(4, start=3))
    assert env.action == Discrete(4)
    pool = pool_of(env, num=4)
    pool.reset()
    pool.step(np.arange(4))
    assert [int(one.given[0]) for one in made[-4:]] == [3, 4, 5, 6]
    pool.close()


def test_box_actions_are_rescaled_to_each_dimension_s_bounds() -> None:
    low, high = np.array([[-1.0, 0.0], [2.0, -8.0]]), np.array([[3.0, 1.0], [4.0, -4.0]])
    env, made = recorded(action=gym.spaces.Box(low, high, dtype=np.float64))
    pool = pool_of(env, num=4)
    pool.reset()
    said = np.array([[-20.0] * 4, [20.0] * 4, [0.0] * 4, [*np.arctanh([-0.5, 0.5]), 20.0, -20.0]])
    actions: Any = distribution_of(env.action).greedy(said)  # type: ignore[arg-type]
    pool.step(actions)
    got = np.stack([one.given[0] for one in made[-4:]])
    between = np.array([[0.0, 0.75], [4.0, -8.0]])
    np.testing.assert_allclose(got, np.stack([low, high, (low + high) / 2, between]), atol=1e-6)
    assert all(env.action_space.contains(given) for given, env in zip(got, made[-4:], strict=True))
    pool.close()


def test_an_action_that_is_no_number_never_reaches_the_environment() -> None:
    env, made = recorded(action=gym.spaces.Box(-1.0, 1.0, (1,)))
    pool = pool_of(env, num=1)
    pool.reset()
    with pytest.raises(SlacklineError, match="recorder: was given an action that is not finite"):
        pool.step(np.array([[np.nan]]))
    assert made[-1].given == []
    pool.close()


OBSERVATIONS = {
    "Box": gym.spaces.Box(-1.0, 1.0, (2, 3), np.float64),
    "pixels": gym.spaces.Box(0, 255, (2, 2), np.uint8),
    "Discrete": gym.spaces.Discrete(4, start=-1),
    "MultiBinary": gym.spaces.MultiBinary((2, 2)),
    "MultiDiscrete": gym.spaces.MultiDiscrete([2, 3]),
    "Tuple": gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 1.0, (2,)))),
    "Dict": gym.spaces.Dict(
        {
            "wheel": gym.spaces.Box(-1.0, 1.0, (2, 2)),
            "arm": gym.spaces.Dict({"grip": gym.spaces.Discrete(2)}),
        }
    ),
}


@pytest.mark.parametrize("mode", [MODES.DISABLED, MODES.SAME_STEP, MODES.NEXT_STEP])
@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_observations_are_flattened_as_gymnasium_does(kind: str, mode: Any) -> None:
    space, made = OBSERVATIONS[kind], []

    def recorder() -> Recorder:
        made.append(Recorder(observation=space))
        return made[-1]

    def recorders(num_envs: int) -> Any:
        return gym.vector.SyncVectorEnv([recorder] * num_envs, autoreset_mode=mode)

    env = sl.gymnasium(recorders)
    assert (env.name, env.observation_size) == ("recorders", gym.spaces.flatdim(space))
    pool = pool_of(env, num=2)
    seen, did = pool.reset(), pool.step(np.zeros(2, int))
    for i, one in enumerate(made[-2:]):
        first, final, *fresh = [np.asarray(gym.spaces.flatten(space, x)) for x in one.shown]
        np.testing.assert_allclose(seen[i], first, rtol=1e-6)
        np.testing.assert_allclose(did.reached[i], final, rtol=1e-6)
        np.testing.assert_allclose(did.observation[i], fresh[0] if fresh else final, rtol=1e-6)
        assert bool(fresh) == (mode != MODES.NEXT_STEP)
    assert seen.dtype == did.reached.dtype == np.float32
    pool.close()


GRAPH = gym.spaces.Graph(gym.spaces.Box(-1.0, 1.0, (2,)), None)
UNSUPPORTED = [
    gym.spaces.Text(5),
    gym.spaces.Sequence(gym.spaces.Discrete(2)),
    GRAPH,
    gym.spaces.Dict({"camera": gym.spaces.Text(3), "arm": gym.spaces.Discrete(2)}),
    gym.spaces.OneOf([gym.spaces.Discrete(2), gym.spaces.Discrete(3)]),
    gym.spaces.Box(0.0, 1.0, (0,)),
]


@pytest.mark.parametrize("space", UNSUPPORTED, ids=lambda space: type(space).__name__)
def test_unsupported_observations_are_named(space: Any) -> None:
    with pytest.raises(SlacklineError, match="its observation space is") as refusal:
        recorded(observation=space)
    assert str(space)[:60] in one_line(refusal)
    assert "supported are Box observations" in str(refusal.value)


@pytest.mark.parametrize(
    ("space", "why"),
    [
        (gym.spaces.MultiDiscrete([2, 2]), "supported are Discrete, and Box of floats"),
        (gym.spaces.MultiBinary(2), "supported are Discrete"),
        (gym.spaces.Box(0, 5, (2,), np.int64), "supported are Discrete"),
        (gym.spaces.Box(-np.inf, 1.0, (2,)), "has no bounds; wrap"),
        (gym.spaces.Dict({"legs": gym.spaces.Discrete(2)}), "supported are Discrete"),
    ],
    ids=str,
)
def test_unsupported_actions_are_named(space: Any, why: str) -> None:
    with pytest.raises(SlacklineError, match="recorder: its action space") as refusal:
        recorded(action=space)
    assert str(space) in one_line(refusal)
    assert why in str(refusal.value)


def one_line(raised: pytest.ExceptionInfo[SlacklineError]) -> str:
    assert "\n" not in str(raised.value)
    return str(raised.value)


def broken() -> Any:
    raise OSError("no such\nrobot")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: sl.gymnasium(broken), r"broken: cannot be made \(OSError: no such robot\)"),
        (lambda: sl.gymnasium("NoSuchRobot-v0"), "gym:NoSuchRobot-v0: cannot be made"),
        (lambda: sl.gymnasium("CartPole-v1", wind=1), r"gym:CartPole-v1\?wind=1: cannot be made"),
        (lambda: sl.gymnasium(lambda: 3), "lambda: has no observation_space; .* is a int"),
        (lambda: sl.gymnasium(Diary, workers="threads"), "workers is 'threads'"),  # type: ignore[arg-type]
        (lambda: sl.envpool("NoSuchRobot-v0"), "envpool:NoSuchRobot-v0: cannot be made"),
        (lambda: sl.envpool("CartPole-v1", wind=1), r"CartPole-v1\?wind=1: cannot be made"),
    ],
)
def test_what_cannot_be_made_is_named(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(SlacklineError, match=says) as refusal:
        ask()
    one_line(refusal)


@pytest.mark.parametrize("package", ["gymnasium", "envpool"])
def test_a_missing_package_says_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        SlacklineError, match=rf"pip install 'slackline-rl\[{package}\]'"
    ) as refusal:
        getattr(sl, package)("CartPole-v1")
    one_line(refusal)


def faulty(num: int, fault: str, timeout: float = 60.0, **options: Any) -> WatchedPool:
    env = sl.gymnasium(Faulty, fault=fault, **options)
    params = env.default_params()
    return WatchedPool(env, params, num, lambda: env.open(params, range(num), 100), timeout)


@pytest.mark.parametrize("num", [1, 2])
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("raises", "raised RuntimeError: the robot fell over"),
        ("exits", "raised SystemExit: 3"),
        ("nan", "returned an observation that is not finite"),
        ("reward", "returned a reward that is not finite"),
        ("shape", "raised ValueError: .*shape"),
    ],
)
def test_a_failure_names_the_environment_and_the_step(fault: str, says: str, num: int) -> None:
    """Six steps were good."""
    pool = faulty(num, fault)
    pool.reset()
    for _ in range(6):
        pool.step(np.zeros(num, int))
    named = rf'^host_probes:Faulty\?fault="{fault}": step {6 * num} {says}'
    with pytest.raises(EnvironmentFailed, match=named) as failure:
        pool.step(np.zeros(num, int))
    one_line(failure)
    assert pool.steps == 6 * num
    pool.close()


def test_an_environment_that_hangs_is_given_up_for_good() -> None:
    """Its late answer is not taken for that of the next question, and closing does not wait."""
    pool = faulty(1, "hangs", timeout=0.3, at=2)
    pool.reset()
    pool.step(np.zeros(1, int))
    with pytest.raises(EnvironmentFailed, match=r"step 1 took longer than 0.3 s and was given up"):
        pool.step(np.zeros(1, int))
    started = time.monotonic()
    with pytest.raises(EnvironmentFailed, match="was given up"):
        pool.reset()
    pool.close()
    assert time.monotonic() - started < 0.25


def test_the_time_out_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKLINE_TIMEOUT", "0.3")
    env = sl.gymnasium(Faulty, fault="hangs", at=1)
    pool = pool_of(env, num=1)
    pool.reset()
    with pytest.raises(EnvironmentFailed, match=r"longer than 0.3 s .*SLACKLINE_TIMEOUT sets"):
        pool.step(np.zeros(1, int))
    pool.close()
    for word in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("SLACKLINE_TIMEOUT", word)
        with pytest.raises(SlacklineError, match=f"SLACKLINE_TIMEOUT is '?{word}'?; it must be"):
            pool_of(env, num=1)


SUSPENDED = """
import time
from slackline.envs import host

host.GLANCE = 0.2
worker = host.Worker("sleeper")
print("ready", flush=True)
print(worker.do(lambda: (time.sleep(0.6), "done")[1], timeout=1.2), flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs a way to stop a process")
def test_time_that_the_process_was_stopped_does_not_count() -> None:
    """Ctrl-Z for longer than the time-out, in the middle of a step."""
    child = subprocess.Popen([sys.executable, "-c", SUSPENDED], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGSTOP)
    time.sleep(2.0)
    child.send_signal(signal.SIGCONT)
    said, _ = child.communicate(timeout=60)
    assert said == "done\n"


@pytest.mark.filterwarnings("ignore:.*ERROR")  # how Gymnasium passes a worker's traceback on
def test_a_failure_in_a_process_of_its_own_is_named_too() -> None:
    env = sl.gymnasium(Faulty, workers="async", fault="raises", at=2)
    pool = pool_of(env, num=2)
    pool.reset()
    pool.step(np.zeros(2, int))
    with pytest.raises(EnvironmentFailed, match=r"Faulty.*: step 2 raised RuntimeError: the robot"):
        pool.step(np.zeros(2, int))
    pool.close()


class Scripted(Pool):
    """Answers what it is told to."""

    num_envs = 2

    def __init__(self, **changes: Any):
        size, no = np.ones((2, 3)), np.zeros(2, bool)
        self.answer = Stepped(size, np.ones(2), no, no, size, ~no)._replace(**changes)

    def reset(self) -> np.ndarray:
        return self.answer.observation

    def step(self, actions: np.ndarray) -> Stepped:
        return self.answer

    def close(self) -> None:
        raise RuntimeError("cannot be closed")


def scripted(sensors: np.ndarray | None = None, **changes: Any) -> WatchedPool:
    env = sl.gymnasium(Diary)
    return WatchedPool(env, HostParams({}, sensors), 2, lambda: Scripted(**changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reached": np.ones((2, 4))}, r"observations of shape \(2, 4\), not \(2, 3\)"),
        ({"observation": np.ones((1, 3))}, r"observations of shape \(1, 3\), not \(2, 3\)"),
        ({"observation": np.full((2, 3), np.inf)}, "an observation that is not finite"),
        ({"reward": np.ones((2, 1))}, r"rewards of shape \(2, 1\), not one number each"),
        ({"reward": np.array([1.0, np.nan])}, "a reward that is not finite"),
    ],
)
def test_an_answer_that_does_not_fit_is_named(changes: dict, says: str) -> None:
    pool = scripted(**changes)
    with pytest.raises(EnvironmentFailed, match=rf"Diary: step 0 returned {says}"):
        pool.step(np.zeros(2, int))


def test_a_pool_that_cannot_be_closed_hides_no_other_error() -> None:
    scripted().close()


def test_dead_sensors_read_zero() -> None:
    pool = scripted(np.array([1.0, 0.0, 1.0]), observation=np.full((2, 3), 5.0))
    np.testing.assert_array_equal(pool.reset(), [[5.0, 0.0, 5.0]] * 2)
    did = pool.step(np.zeros(2, int))
    np.testing.assert_array_equal(did.reached, [[1.0, 0.0, 1.0]] * 2)
    np.testing.assert_array_equal(did.observation, [[5.0, 0.0, 5.0]] * 2)


def test_environments_of_one_name_and_other_spaces_differ() -> None:
    """Or what was compiled for the one would serve the other."""
    two, three = (recorded(action=gym.spaces.Discrete(n))[0] for n in (2, 3))
    assert two == recorded()[0]
    assert hash(two) == hash(recorded()[0])
    assert two != three
