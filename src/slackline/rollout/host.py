"""The runner of environments outside JAX, in pools.

Everything has one more leading axis than in `compiled.py`, the copy C: networks that act in one
call, and whose environments step in one pool. The libraries keep the time limits and do
the resets (`envs/host.py`); a value that is not finite is refused by the pool, which names the
environment and the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from slackline.envs.host import (
    HostEnv,
    HostParams,
    Kept,
    Stepped,
    Told,
    WatchedPool,
    open_pool,
)
from slackline.errors import SlacklineError
from slackline.rollout.base import DrawZ, Greedy, Moment, Played, Recorder, Totals
from slackline.types import Array, Transition

LONGEST = 100_000
"""Steps after which an episode counts as endless: an environment's own time limit may well be
longer than the suite's horizon, which is for those that have none."""

MAX_ACTIONS = 2**26
"""Bytes of actions that are remembered, and kept in checkpoints."""

Tensors = Mapping[str, np.ndarray]
RUNNING = ("observation", "z", "fresh", "episode_return", "elapsed")
"""What the runner knows of the environments, (C, N, ...) each."""
KEPT = ("seeds", "later", "before", "now")
"""What they are rebuilt from, (C · N, ...) each."""

HostAct = Callable[[int, np.ndarray, np.ndarray, np.ndarray], tuple[Any, ...]]
"""(number of the step, observations (C, N, ...), z (C, N, size), whether an episode begins (C, N))
-> (z, with new ones where an episode begins, actions as they are stored, as the environment takes
them, the former's log-probabilities or None, and values where the policy knows them)"""

Stop = Callable[[np.ndarray, "HostRunning", Stepped], np.ndarray]
"""(the jobs (C, N) being played, the environments after a step, that step) -> (C, N) which of these
episodes to stop. The environment plays no other after it."""


class HostJobs(NamedTuple):
    """J episodes to play with each of C policies."""

    params: HostParams
    """Of every environment."""
    z: np.ndarray
    """(C, J, size)"""
    seeds: np.ndarray
    """(C, slots): of the environments that play them. Libraries seed an environment once, so that
    episodes after the first of a slot continue its random numbers."""


class HostRunning:
    """C × N environments in mid-episode. Mutable, as the environments are."""

    def __init__(self, pool: WatchedPool, shape: tuple[int, int], z_size: int):
        self.pool, self.shape = pool, shape
        self.observation: np.ndarray
        self.z = np.zeros((*shape, z_size), np.float32)
        self.fresh = np.ones(shape, bool)
        """Where an episode begins, which needs a z of its own."""
        self.episode_return = np.zeros(shape)
        self.elapsed = np.zeros(shape, np.int64)
        self.actions: deque[np.ndarray] = deque()
        """The last ones, (C · N, ...) each: those of the running episodes, if they are not too
        many."""

    def begin(self) -> None:
        """Begin an episode everywhere."""
        self.observation = self.by_copy(self.pool.reset())

    def keep(self) -> Tensors:
        """All of it as arrays, for a checkpoint; {} if the episodes could not be rebuilt."""
        kept = self.pool.keep()
        if kept is None:
            return {}
        *arrays, states = kept
        texts = [text.encode() for text in states]
        return {
            **{name: getattr(self, name).copy() for name in RUNNING},
            **dict(zip(KEPT, arrays, strict=True)),
            "states": np.frombuffer(b"".join(texts), np.uint8),
            "state_sizes": np.array([len(text) for text in texts], np.int64),
            "actions": np.stack(self.actions) if self.actions else np.zeros((0, len(texts))),
            "steps": np.array([self.pool.steps], np.int64),
        }

    def recall(self, tensors: Tensors, fresh_seeds: np.ndarray) -> np.ndarray:
        """Go on where `keep` was called; (C, N) whether each episode is the one that was kept. New
        ones, by `fresh_seeds` (C, N), begin where it is not."""
        for name in RUNNING:
            setattr(self, name, tensors[name].copy())
        whole, sizes = tensors["states"].tobytes(), tensors["state_sizes"]
        ends = np.cumsum(sizes)
        texts = [
            whole[end - size : end].decode(errors="replace")
            for end, size in zip(ends, sizes, strict=True)
        ]
        kept = Kept(**{name: tensors[name] for name in KEPT}, states=tuple(texts))
        told = Told(
            self.observation.reshape(-1, *self.observation.shape[2:]),
            self.episode_return.reshape(-1),
            self.elapsed.reshape(-1),
            fresh_seeds.reshape(-1),
        )
        seen, same = self.pool.recall(kept, tensors["actions"], told)
        self.observation, same = self.by_copy(seen), self.by_copy(same)
        self.fresh |= ~same
        self.forget_ended()
        self.actions.extend(tensors["actions"])
        self.pool.steps = int(tensors["steps"][0])
        return same

    def remember(self, env_action: np.ndarray) -> None:
        """Remember the actions, from which an episode can be rebuilt."""
        self.actions.append(env_action.reshape(-1, *env_action.shape[2:]))

    def forget_actions(self) -> None:
        """Keep those of the running episodes, the last ones if they are many."""
        needed = int(self.elapsed.max())
        if self.actions:
            needed = min(needed, max(MAX_ACTIONS // max(self.actions[-1].nbytes, 1), 1))
        while len(self.actions) > needed:
            self.actions.popleft()

    def step(self, env_action: np.ndarray) -> Stepped:
        """Take the actions (C, N, ...); every field of the result is (C, N, ...)."""
        did = Stepped(
            *map(self.by_copy, self.pool.step(env_action.reshape(-1, *env_action.shape[2:])))
        )
        self.observation, self.fresh = did.observation, did.terminated | did.truncated
        self.episode_return += did.reward
        self.elapsed += did.real
        return did

    def forget_ended(self) -> None:
        """Begin to count anew where an episode ended."""
        self.episode_return[self.fresh], self.elapsed[self.fresh] = 0.0, 0

    def by_copy(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(*self.shape, *x.shape[1:])

    def close(self) -> None:
        self.pool.close()


@dataclass(frozen=True)
class HostRunner:
    """Plays `env`, whose episodes are cut after `horizon` steps if it has no limit of its own."""

    env: HostEnv
    horizon: int

    @property
    def shortest_limit(self) -> int:
        """No episode is truncated before it has this many steps; 0 where no limit is declared."""
        return self.env.shortest_limit

    def start(self, key: Array, draw_z: DrawZ, num_envs: int) -> tuple[()]:
        """Nothing: the environments cannot be part of a compiled state; `open` makes them."""
        return ()

    def open(
        self,
        seeds: np.ndarray,
        z_size: int,
        params: HostParams | None = None,
        begin: Callable[[HostRunning], Any] = HostRunning.begin,
    ) -> HostRunning:
        """Make an environment with each of the seeds (C, N) and reset it, or begin otherwise."""
        params = self.env.default_params() if params is None else params
        pool = open_pool(self.env, params, seeds.reshape(-1).tolist(), self.horizon)
        try:
            running = HostRunning(pool, seeds.shape, z_size)  # type: ignore[arg-type]
            begin(running)
            return running
        except BaseException:
            pool.close()
            raise

    def steps(
        self, running: HostRunning, act: HostAct, num: int, *, together: bool = False
    ) -> tuple[Transition, Totals]:
        """Step every environment `num` times: (C, T, N, ...), and sums by copy, (C,).

        `together`: `act` is quick and in NumPy, so that all of it runs on the environments' thread
        instead of changing threads twice a step.
        """

        def play() -> tuple[Transition, Totals]:
            window = Window(num)
            for t in range(num):
                self._step(running, act, t, window)
            return window.transition(), window.totals(running.shape[0])

        played = running.pool.together(play) if together else play()
        running.forget_actions()
        return played

    def _step(self, running: HostRunning, act: HostAct, t: int, window: Window) -> None:
        seen = running.observation
        drawn = act(t, seen, running.z, running.fresh)
        played: Any = (x if x is None else np.asarray(x) for x in drawn)
        z, action, env_action, log_prob, *value = played
        running.z = z
        running.remember(env_action)
        did = running.step(env_action)
        if running.fresh.any():
            window.ended.append(totals_of(running))
            running.forget_ended()
        judged = value[0] if value else None
        row = (seen, z, action, log_prob, did.reward, did.terminated, did.truncated, did.reached)
        window.note(t, Transition(*row, did.real, judged))  # type: ignore[arg-type]

    def episodes(
        self,
        act: Greedy,
        jobs: HostJobs,
        recorder: Recorder | None = None,
        stop: Stop | None = None,
    ) -> Played:
        """Play every job to its end; slot b of a copy plays its jobs b, b + slots, and so on.

        All that is played is (C, J, ...). Environments outside JAX do not show their states, so
        that a recorder is given observations only. `stop` may end the last episode of a slot early.
        """
        running = self.open(jobs.seeds, 0, jobs.params)
        try:
            return self._play_all(running, act, jobs, Notes(recorder), stop)
        finally:
            running.close()

    def _play_all(
        self,
        running: HostRunning,
        act: Greedy,
        jobs: HostJobs,
        notes: Notes,
        stop: Stop | None = None,
    ) -> Played:
        (num_copies, num_jobs, _), slots = jobs.z.shape, running.shape[1]
        job = np.tile(np.arange(slots), (num_copies, 1))
        rows = np.arange(num_copies)[:, None]
        returns = np.full((num_copies, num_jobs), np.nan)
        lengths, terminated = np.zeros(returns.shape, np.int64), np.zeros(returns.shape, bool)
        notes.begin(running, np.ones(running.shape, bool))
        while (job < num_jobs).any():
            z = jobs.z[rows, np.minimum(job, num_jobs - 1)]
            did = running.step(np.asarray(act(running.observation, z)))
            notes.add(running, did)
            ended = running.fresh if stop is None else running.fresh | stop(job, running, did)
            for c, b in np.argwhere(ended).tolist():
                if (own := int(job[c, b])) < num_jobs:
                    returns[c, own] = running.episode_return[c, b]
                    lengths[c, own] = running.elapsed[c, b]
                    terminated[c, own] = did.terminated[c, b]
                    notes.keep(c, own, b)
                job[c, b] += slots
            running.forget_ended()
            # Where a library resets in a step of its own, the episode begins after that step.
            notes.begin(running, running.fresh | ~did.real)
            self._insist_on_an_end(running, job < num_jobs)
        return Played(returns, lengths, terminated, notes.all_of(*returns.shape))

    def _insist_on_an_end(self, running: HostRunning, needed: np.ndarray) -> None:
        longest = max(self.horizon, LONGEST)
        if (running.elapsed[needed] > longest).any():
            raise SlacklineError(
                f"{self.env.name}: an episode has not ended after {longest:,} steps; give the "
                "environment a time limit"
            )


class Window:
    """Collects the steps of T calls of the pool."""

    def __init__(self, num: int):
        self._num = num
        self._rows: list[np.ndarray | None] = []
        """By field of a transition, (C, T, N, ...). Fresh ones for every window: JAX may go on
        reading the last one's."""
        self.ended: list[Totals] = []
        """Of the steps that ended an episode."""

    def note(self, t: int, step: Transition) -> None:
        if not self._rows:
            self._rows = [self._room_for(x) for x in step]
        for rows, x in zip(self._rows, step, strict=True):
            if rows is not None:
                rows[:, t] = x

    def transition(self) -> Transition:
        return Transition(*self._rows)  # type: ignore[arg-type]

    def totals(self, num_copies: int) -> Totals:
        """By copy; what is unsound was refused by the pool."""
        zeros = np.zeros(num_copies, np.int64)
        nothing: Any = Totals(zeros, np.zeros(num_copies), zeros, zeros)  # type: ignore[arg-type]
        sums: Any = jax.tree.map(lambda *x: np.sum(x, axis=0), nothing, *self.ended)
        return sums._replace(sound=np.full(num_copies, self._num))

    def _room_for(self, x: Any) -> np.ndarray | None:
        if x is None:
            return None
        copies, *rest = x.shape
        return np.empty((copies, self._num, *rest), x.dtype)


class Notes:
    """What a recorder keeps of the episodes of a pool; nothing without one."""

    def __init__(self, recorder: Recorder | None):
        self._recorder = recorder
        self._add = None if recorder is None else jax.jit(recorder.add)
        self._open: dict[tuple[int, int], Any] = {}
        """By copy and slot: the record of the running episode."""
        self._kept: dict[tuple[int, int], Any] = {}
        """By copy and job: whole ones."""

    def begin(self, running: HostRunning, where: np.ndarray) -> None:
        if self._recorder is None:
            return
        for c, b in np.argwhere(where).tolist():
            self._open[c, b] = self._recorder.begin((), running.observation[c, b])

    def add(self, running: HostRunning, did: Stepped) -> None:
        if self._add is None:
            return
        for c, b in np.argwhere(did.real).tolist():
            time: Any = np.int32(running.elapsed[c, b] - 1)
            going: Any = np.bool_(True)
            moment = Moment(time, (), did.reached[c, b], did.reward[c, b], going)
            self._open[c, b] = self._add(self._open[c, b], moment)

    def keep(self, copy: int, job: int, slot: int) -> None:
        if self._recorder is not None:
            self._kept[copy, job] = self._open[copy, slot]

    def all_of(self, num_copies: int, num_jobs: int) -> Any:
        """Stacked as the returns are, (C, J, ...)."""
        if self._recorder is None:
            return ()
        rows = [
            jax.tree.map(lambda *x: np.stack(x), *(self._kept[c, j] for j in range(num_jobs)))
            for c in range(num_copies)
        ]
        return jax.tree.map(lambda *x: np.stack(x), *rows)


def totals_of(running: HostRunning) -> Totals:
    """By copy, of the episodes that the last step ended."""
    done = running.fresh
    sums: Any = (
        np.sum(done, axis=1),
        np.sum(running.episode_return, axis=1, where=done),
        np.sum(running.elapsed, axis=1, where=done),
        np.ones(running.shape[0], np.int64),
    )
    return Totals(*sums)
