"""What holds of every episode, whichever back end plays it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import FromZero

from slackline.envs.api import Discrete, Env
from slackline.envs.cartpole import CartPole, CartPoleState
from slackline.envs.gymnasium import describe
from slackline.envs.host import EnvironmentFailed
from slackline.rollout import (
    CompiledRunner,
    Film,
    HostJobs,
    HostRunner,
    Jobs,
    Played,
    Recorder,
    runner_of,
)
from slackline.types import Array

HORIZON = 5
LAST, BREAK = 3, 7


class Ladder(FromZero):
    """The observation counts the steps from 0, and the reward is the action; action 2 ends the
    episode at the 3rd step, action 7 breaks the observation there and action 8 the reward."""

    action = Discrete(9)

    def step(
        self, key: Array, state: Array, action: Array, params: Any
    ) -> tuple[Array, Array, Array, Array]:
        count = state + 1
        last = count == LAST
        seen = jnp.where(last & (action == BREAK), jnp.nan, count.astype(jnp.float32))
        reward = jnp.where(last & (action == BREAK + 1), jnp.inf, action.astype(jnp.float32))
        return seen[None], count, reward, last & (action == 2)


class HostLadder(gym.Env):
    """The same ladder outside JAX; its library cuts it."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Discrete(9)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        last = self.count == LAST
        seen = np.nan if last and action == BREAK else self.count
        reward = np.inf if last and action == BREAK + 1 else float(action)
        return np.full(1, seen, np.float32), reward, bool(last and action == 2), False, {}


def limited(horizon: int = HORIZON) -> Any:
    return gym.wrappers.TimeLimit(HostLadder(), horizon)


def ladders(mode: str) -> Any:
    """A library that resets as `mode` says."""

    def make(num_envs: int) -> Any:
        modes = gym.vector.AutoresetMode
        return gym.vector.SyncVectorEnv([limited] * num_envs, autoreset_mode=modes[mode])

    return make


def as_z_says(observation: Any, z: Any) -> Any:
    """The policy at z does the action z."""
    return z[..., 0].astype("int32")


def compiled(env: Env, zs: np.ndarray, recorder: Recorder | None = None) -> Played:
    keys = jax.random.split(jax.random.key(0), len(zs))
    runner = CompiledRunner(env, HORIZON)
    played = jax.jit(lambda z: runner.episodes(as_z_says, Jobs((), z, keys), recorder))(zs)
    return jax.tree.map(np.asarray, played)


def hosted(make: Any, zs: np.ndarray, slots: int, recorder: Recorder | None = None) -> Played:
    """Of one copy, without its axis."""
    env = describe("ladder", make, {})
    jobs = HostJobs(env.default_params(), zs[None], np.arange(slots)[None])
    played = HostRunner(env, HORIZON).episodes(as_z_says, jobs, recorder)
    return jax.tree.map(lambda x: np.asarray(x)[0], played)


ZS = np.array([1, 2, 3, 2, 0], np.float32)[:, None]
RETURNS, LENGTHS = [5.0, 6.0, 15.0, 6.0, 0.0], [5, 3, 5, 3, 5]
TERMINATED = [False, True, False, True, False]


def insist_on_the_known_values(played: Played) -> None:
    np.testing.assert_array_equal(played.returns, RETURNS)
    np.testing.assert_array_equal(played.lengths, LENGTHS)
    np.testing.assert_array_equal(played.terminated, TERMINATED)


def insist_on_the_known_film(film: Any) -> None:
    """Every observation up to the final one, of the right episode and from its start."""
    for k, length in enumerate(LENGTHS):
        seen = film.frames[k].reshape(HORIZON + 1)
        np.testing.assert_array_equal(seen[: length + 1], np.arange(length + 1))
        np.testing.assert_array_equal(film.rewards[k, :length], ZS[k, 0])


FILM = Film(HORIZON, of="observation")


def test_a_compiled_episode_ends_by_itself_or_at_its_time_limit() -> None:
    played = compiled(Ladder(), ZS, recorder=FILM)
    insist_on_the_known_values(played)
    insist_on_the_known_film(played.recorded)
    insist_on_the_known_film(compiled(Ladder(), ZS, recorder=Film(HORIZON)).recorded)


@pytest.mark.parametrize("make", [limited, ladders("NEXT_STEP"), ladders("SAME_STEP")])
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_an_episode_of_a_pool_is_the_same(make: Any, slots: int) -> None:
    """Also where fewer environments play them in turn, however they are reset."""
    played = hosted(make, ZS, slots, FILM)
    insist_on_the_known_values(played)
    insist_on_the_known_film(played.recorded)
    assert hosted(make, ZS, slots).recorded == ()


@pytest.mark.parametrize("breaks", [BREAK, BREAK + 1])
def test_a_value_that_is_not_finite_stops_the_episode(breaks: int) -> None:
    """In JAX its return is NaN, and the others' are theirs; a pool refuses it at once."""
    played = compiled(Ladder(), np.array([[1], [breaks]], np.float32))
    np.testing.assert_array_equal(played.returns, [5.0, np.nan])
    np.testing.assert_array_equal(played.lengths, [5, LAST])
    np.testing.assert_array_equal(played.terminated, [False, False])
    with pytest.raises(EnvironmentFailed, match=r"ladder: step 2 returned .* is not finite"):
        hosted(limited, np.array([[breaks]], np.float32), 1)


class Hasty(Ladder):
    """With a time limit of its own."""

    def time_limit(self, params: Any, horizon: int) -> int:
        return horizon - 1


def test_an_environment_s_own_time_limit_counts() -> None:
    np.testing.assert_array_equal(compiled(Hasty(), ZS).lengths, [4, 3, 4, 3, 4])
    assert CompiledRunner(Hasty(), HORIZON).shortest_limit == 4


class FromState(Env):
    """CartPole from the state that its parameters are."""

    observation_size, action = CartPole.observation_size, CartPole.action

    def default_params(self) -> np.ndarray:
        return np.zeros(4, np.float32)

    def reset(self, key: Array, params: Array) -> tuple[Array, CartPoleState]:
        return params, CartPoleState(*params)

    def step(self, key: Array, state: CartPoleState, action: Array, params: Any) -> Any:
        return CartPole().step(key, state, action, CartPole().default_params())


def test_cartpole_s_episodes_are_gymnasium_s() -> None:
    """The same start and the same policy: the same returns, lengths, ends and observations."""
    horizon, num = 30, 6
    starts = np.random.default_rng(0).uniform(-0.05, 0.05, (num, 4)).astype(np.float32)
    zs = np.arange(num, dtype=np.float32)[:, None] % 2

    def act(observation: Any, z: Any) -> Any:
        """The policy at 1 balances, the one at 0 topples."""
        leans = observation[..., 2] + 0.5 * observation[..., 3] > 0
        return (leans == (z[..., 0] > 0.5)).astype("int32")

    class Same(gym.Wrapper):
        """Starts at the state that its seed is the number of."""

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            first = starts[seed or 0]
            self.unwrapped.state = first.astype(np.float64)  # type: ignore[attr-defined]
            return first, {}

    film = Film(horizon, of="observation")
    keys = jax.random.split(jax.random.key(0), num)
    runner = CompiledRunner(FromState(), horizon)
    ours: Any = jax.jit(lambda: runner.episodes(act, Jobs(jnp.asarray(starts), zs, keys), film))()
    env = describe("cart", lambda: Same(gym.make("CartPole-v1", max_episode_steps=horizon)), {})
    jobs = HostJobs(env.default_params(), zs[None], np.arange(num)[None])
    theirs = HostRunner(env, horizon).episodes(act, jobs, film)
    for mine, hosts in zip(ours[:3], theirs[:3], strict=True):
        np.testing.assert_array_equal(mine, hosts[0])
    assert 0 < np.sum(ours.terminated) < num
    for k, length in enumerate(ours.lengths):
        mine, hosts = ours.recorded.frames[k], theirs.recorded.frames[0, k]
        np.testing.assert_allclose(mine[: length + 1], hosts[: length + 1], rtol=1e-4, atol=1e-5)


def test_the_back_end_is_chosen_by_the_environment() -> None:
    ladder, host = Ladder(), describe("ladder", limited, {})
    assert runner_of(ladder, 3) == CompiledRunner(ladder, 3)
    assert runner_of(host, 3) == HostRunner(host, 3)
    assert (ladder.in_jax, host.in_jax) == (True, False)
    assert ladder.spaces == host.spaces == ((1,), Discrete(9))
