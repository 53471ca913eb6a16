"""Stop hopeless episodes while many seeds and variations are played: `episode.py` for batches.

Environments in JAX end them themselves (`Watching`); outside JAX the runner stops playing them
(`Watch`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from slackline.adapt.adapter import State
from slackline.adapt.episode import Course
from slackline.adapt.model import believe
from slackline.envs.api import Env
from slackline.envs.host import Stepped
from slackline.rollout import HostRunning, Moment
from slackline.types import Array


class Watched(NamedTuple):
    """Episodes that were played above floors; every field begins with (S, V, n)."""

    returns: Any
    """Up to where they ended or were stopped."""
    lengths: Any
    hopeless: Any
    """Whether they were stopped."""
    partial: Any
    """The return after every step, (S, V, n, T); nothing is said of steps after the end."""


class Courses:
    """How the best whole episode of every seed and variation went, and what stopping has saved."""

    def __init__(self, num_seeds: int, num_variations: int, margin: float):
        self.margin = margin
        self.each = [[Course() for _ in range(num_variations)] for _ in range(num_seeds)]
        self.played_steps = np.zeros((num_seeds, num_variations), np.int64)

    @property
    def saved_steps(self) -> np.ndarray:
        return np.array([[course.saved_steps for course in row] for row in self.each])

    def floors(self, states: list[list[State]], longest: int | None) -> np.ndarray:
        """Below which return after each step an episode is hopeless, (S, V, T); T is the longest
        episode there can be, or has been."""
        steps = max(len(course.partial) for row in self.each for course in row)
        found = np.full((*self.played_steps.shape, longest or max(steps, 1)), -np.inf)
        for s, v in np.ndindex(*self.played_steps.shape):
            course = self.each[s][v]
            if course.known:
                num = min(len(course.partial), found.shape[2])
                found[s, v, :num], found[s, v, num:] = course.partial[:num], course.partial[-1]
                found[s, v] -= self.margin * believe(states[s][v]).noise
        return found.astype(np.float32)

    def tell(self, played: Watched) -> np.ndarray:
        """What the adapters are told, (S, V, n): a hopeless episode as if it had gone on as well
        as the best one did. Whole episodes may be the best from now on."""
        told = played.returns.astype(np.float64)
        for s, v, i in np.ndindex(*told.shape):
            steps = int(played.lengths[s, v, i])
            self.played_steps[s, v] += steps
            course = self.each[s][v]
            if played.hopeless[s, v, i]:
                told[s, v, i] += course.given_up(steps)
            else:
                course.finished(played.partial[s, v, i, :steps].astype(np.float64))
        return told


class WatchingState(NamedTuple):
    inner: Any
    total: Array
    time: Array
    hopeless: Array


class Watching(Env):
    """An environment whose episodes end where their return falls below a floor; its parameters are
    those of the environment and the floor after every step, (T,)."""

    def __init__(self, env: Env, horizon: int):
        self.env, self.horizon = env, horizon
        self.observation_size, self.action = env.observation_size, env.action

    def default_params(self) -> tuple[Any, Array]:
        return self.env.default_params(), jnp.full(self.horizon, -jnp.inf)

    def reset(self, key: Array, params: tuple[Any, Array]) -> tuple[Array, WatchingState]:
        observation, inner = self.env.reset(key, params[0])
        return observation, WatchingState(inner, jnp.float32(0), jnp.int32(0), jnp.bool_(False))

    def step(
        self, key: Array, state: WatchingState, action: Array, params: tuple[Any, Array]
    ) -> tuple[Array, WatchingState, Array, Array]:
        own, floor = params
        observation, inner, reward, terminated = self.env.step(key, state.inner, action, own)
        total, time = state.total + reward, state.time + 1
        over = terminated | (time >= self.env.time_limit(own, self.horizon))
        hopeless = ~over & (total < floor[state.time])
        after = WatchingState(inner, total, time, hopeless)
        return observation, after, reward, terminated | hopeless

    def time_limit(self, params: tuple[Any, Array], horizon: int) -> int | Array:
        return self.env.time_limit(params[0], horizon)


class Following:
    """A recorder of what `Watching` knows: (the return after every step (T,), whether it was
    stopped)."""

    def __init__(self, longest: int):
        self.longest = longest

    def begin(self, state: WatchingState, observation: Array) -> tuple[Array, Array]:
        return jnp.zeros(self.longest), jnp.bool_(False)

    def add(self, record: tuple[Array, Array], moment: Moment) -> tuple[Array, Array]:
        partial, hopeless = record
        total = jnp.where(moment.going, moment.state.total, partial[moment.time])
        return partial.at[moment.time].set(total), hopeless | (moment.going & moment.state.hopeless)


class Watch:
    """Follows the episodes of one pool outside JAX, and says which to stop."""

    def __init__(self, floors: np.ndarray, num_jobs: int):
        self.floors, self.num_jobs = floors, num_jobs
        """(C, T), one row a copy; how many episodes each copy plays."""
        self.partial: list[list[list[float]]] = [[[] for _ in range(num_jobs)] for _ in floors]
        self.hopeless = np.zeros((len(floors), num_jobs), bool)

    def __call__(self, job: np.ndarray, running: HostRunning, did: Stepped) -> np.ndarray:
        """Which environments (C, N), playing these jobs, have hopeless episodes. One whose
        environment has others to play goes on: only its own end resets it."""
        given_up = np.zeros(job.shape, bool)
        for c, b in np.argwhere(did.real & (job < self.num_jobs)).tolist():
            own, total = int(job[c, b]), float(running.episode_return[c, b])
            self.partial[c][own].append(total)
            step = min(len(self.partial[c][own]), self.floors.shape[1]) - 1
            last = own + job.shape[1] >= self.num_jobs and not running.fresh[c, b]
            if last and total < self.floors[c, step]:
                given_up[c, b] = self.hopeless[c, own] = True
        return given_up
