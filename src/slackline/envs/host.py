"""Environments outside JAX: EnvPool's, Gymnasium's, and users' own.

They cannot be traced, so they are stepped as a pool, N at once, on NumPy arrays. A pool hides how
its library resets: `step` tells both what a step led to and what to act on next.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from slackline.envs.advice import advice
from slackline.envs.api import Continuous, Discrete, Env, Spaces
from slackline.envs.camera import Camera
from slackline.envs.sentinel import ROOM, sentinel
from slackline.envs.view import View
from slackline.errors import NotNamed, SlacklineError, in_one_line, require_number

T = TypeVar("T")
TIMEOUT = 60.0
"""Seconds that a step of all environments, or a reset, may take before it counts as hung; the
variable SLACKLINE_TIMEOUT says otherwise."""

GLANCE = 1.0
"""Seconds between two looks at the clock. Time that the whole process was stopped (Ctrl-Z, a laptop
that sleeps) counts as one glance: it says nothing about the environment."""


def time_out() -> float:
    """Seconds, from the variable if it is set."""
    word = os.environ.get("SLACKLINE_TIMEOUT", "")
    try:
        seconds: Any = float(word) if word else TIMEOUT
    except ValueError:
        seconds = word
    require_number("SLACKLINE_TIMEOUT", seconds, above=0.0, high=1e6)
    return seconds


LOG = logging.getLogger("slackline")

CRASHED = "its code or a library that it uses crashed, or somebody killed it (out of memory?)"
FINITE = "an episode should end before its numbers overflow"


class EnvironmentFailed(SlacklineError):  # noqa: N818
    """An environment outside JAX raised, hung, or returned what it must not."""

    def __init__(self, message: str, *, has_traceback: bool = False):
        super().__init__(message)
        self.has_traceback = has_traceback
        """Whether what it was raised from shows more, in the user's own code."""


class Misbehaved(Exception):  # noqa: N818
    """What an environment did that it must not, to be read after "step 12"."""


class Stepped(NamedTuple):
    """One step of N environments; every field has a leading axis N."""

    reached: np.ndarray
    """The observation after the step, before any reset."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observation: np.ndarray
    """What to act on next: the first observation of a new episode where one ended."""
    real: np.ndarray
    """False where the library spent the step on a reset and ignored the action."""


class Kept(NamedTuple):
    """What N running episodes can be rebuilt from; see `envs/recall.py`. Every array has a leading
    axis N."""

    seeds: np.ndarray
    """(N,) int64, of the first reset; -1 where an episode cannot be rebuilt."""
    later: np.ndarray
    """(N,) bool: whether a later reset than that began the episode."""
    before: np.ndarray
    """(N, 6) uint64: the random numbers' state before the reset that began the episode."""
    now: np.ndarray
    """(N, 6) uint64: the same just now."""
    states: tuple[str, ...]
    """N texts: what the environments say of their state themselves, "" of those that do not."""


class Told(NamedTuple):
    """What N running episodes have shown; every array has a leading axis N."""

    observation: np.ndarray
    episode_return: np.ndarray
    elapsed: np.ndarray
    fresh_seeds: np.ndarray
    """For new episodes where those that were kept cannot be rebuilt."""


class Pool(abc.ABC):
    """N environments that are stepped together and start a new episode by themselves."""

    num_envs: int

    @abc.abstractmethod
    def reset(self) -> np.ndarray:
        """Begin an episode everywhere: observations (N, size), float32, or pictures (N, H, W, C),
        uint8."""

    @abc.abstractmethod
    def step(self, actions: np.ndarray) -> Stepped:
        """Do `actions` (N,) or (N, size)."""

    def close(self) -> None:  # noqa: B027 (most have nothing to give back)
        """Give back processes and memory."""

    def give_up(self) -> None:  # noqa: B027
        """Never close it again: it hung, and would hang once more."""

    def diagnosis(self) -> str:
        """After a step or a reset that raised: what does not fit its spaces, "" if nothing."""
        return ""

    def keep(self) -> Kept | None:
        """What the running episodes could be rebuilt from; None: they cannot be."""
        return None

    def recall(self, kept: Kept, actions: np.ndarray, told: Told) -> tuple[np.ndarray, np.ndarray]:
        """Rebuild kept episodes in place of a first reset: the observations, and (N,) whether each
        episode is the one that was kept; where it is not, another one begins.

        `actions` (T, N, ...) are the last T that were done; `told` is what had come of them.
        """
        raise NotImplementedError


class HostParams(NamedTuple):
    """What a variation may change: how the environment is made, and which sensors work."""

    options: Mapping[str, Any]
    """Keyword arguments of the environment's maker."""
    sensors: np.ndarray | None = None
    """(observation_size,) that multiplies the observation: 1 alive, 0 dead. None: all alive."""


@dataclass(frozen=True)
class HostEnv(abc.ABC):
    """How to make an environment, and its spaces. Equal and hashed by these, not by the maker:
    what was compiled for one serves the other."""

    in_jax: ClassVar[bool] = False

    name: str
    """What made it, as the command line would say it: `gym:LunarLander-v3`."""
    observation_size: int
    action: Discrete | Continuous
    picture: tuple[int, int, int] | None = field(default=None, kw_only=True)
    """(H, W, C) if that is what is seen, in bytes; None: a vector."""
    shortest_limit: int = field(default=0, kw_only=True)
    """No episode is truncated before it has this many steps; 0 if the environment declares no time
    limit."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return self.picture or (self.observation_size,)

    @property
    def spaces(self) -> Spaces:
        return Spaces(self.observation_shape, self.action)

    def for_jax(self, name: str) -> Env:
        """An error: it cannot be traced. `name` is the suite's."""
        raise SlacklineError(
            f"{name} does not run in JAX; it can be trained on and adapted to, no more"
        )

    def default_params(self) -> HostParams:
        return HostParams({})

    def view(self) -> View | None:
        """None: environments outside JAX draw themselves, by `render()`."""
        return None

    def filmed(self, camera: Camera) -> HostEnv:
        """The same environment, whose pools show `camera` what they look like."""
        raise SlacklineError(f"{self.name}: cannot be filmed, since it has no render()")

    @abc.abstractmethod
    def open(self, params: HostParams, seeds: Sequence[int], horizon: int) -> Pool:
        """Make one with each seed. Where they have no time limit of their own, `horizon` is it."""


@dataclass(frozen=True)
class RecordedEnv(HostEnv):
    """An environment as a file describes it: a name and spaces. It cannot be played, since nothing
    that a file names is ever imported or made; the user has to name it again."""

    word: str | None = field(compare=False, kw_only=True)
    """What the user can name it by; None: it was an object."""
    refusal: NotNamed = field(compare=False, kw_only=True, repr=False)
    """Says how to name it."""

    @property
    def may_run_in_jax(self) -> bool:
        """Whether it was an object that has no word, as environments written in JAX are."""
        return self.word is None and not self.refusal.flags

    def for_jax(self, name: str) -> Env:
        if self.may_run_in_jax:
            raise self.refusal
        return super().for_jax(name)

    def default_params(self) -> HostParams:
        raise self.refusal

    def open(self, params: HostParams, seeds: Sequence[int], horizon: int) -> Pool:
        raise self.refusal


def open_pool(env: HostEnv, params: HostParams, seeds: Sequence[int], horizon: int) -> WatchedPool:
    """A pool with checks and time-outs, and with dead sensors set to 0."""
    return WatchedPool(env, params, len(seeds), lambda: env.open(params, seeds, horizon))


class WatchedPool(Pool):
    """A pool whose errors name the environment and the step.

    The environments run on a thread of their own, so that one that hangs can be given up.
    """

    def __init__(
        self,
        env: HostEnv,
        params: HostParams,
        num_envs: int,
        make: Callable[[], Pool],
        timeout: float | None = None,
    ):
        self.name, self.num_envs = env.name, num_envs
        self._shape, self._sensors = (num_envs, *env.observation_shape), params.sensors
        self._kind = np.float32 if env.picture is None else np.uint8
        self.steps = 0
        """Steps that all environments together have really taken."""
        self._pool: Pool | None = None
        self._watch = Watch(env.name, timeout, self._diagnosis, self._give_up)
        self._pool = self._watch.call("being made", make)
        self._watch.note_processes()

    @property
    def pool(self) -> Pool:
        """What is watched."""
        assert self._pool is not None
        return self._pool

    def reset(self) -> np.ndarray:
        return self._seen("a reset", self._watch.call("a reset", self.pool.reset))

    def step(self, actions: np.ndarray) -> Stepped:
        if not np.isfinite(actions).all():
            raise SlacklineError(f"{self.name}: was given an action that is not finite")
        when, pool = f"step {self.steps:,}", self.pool
        stepped = self._watch.call(when, lambda: pool.step(actions))
        reached = self._seen(when, stepped.reached)
        new = stepped.observation is not stepped.reached
        observation = self._seen(when, stepped.observation) if new else reached
        reward = self._rewards(when, stepped.reward)
        for name in ("terminated", "truncated"):
            if (shape := np.shape(getattr(stepped, name))) != (self.num_envs,):
                raise EnvironmentFailed(
                    f"{self.name}: {when} returned {name} of shape {shape}, not one bool each"
                )
        self.steps += int(np.sum(stepped.real))
        return stepped._replace(reached=reached, observation=observation, reward=reward)

    def together(self, work: Callable[[], T]) -> T:
        """Do `work`, which steps this pool many times, on the environments' thread: one change of
        threads instead of two a step. Each step may still take as long as a step may."""
        return self._watch.hand_over(work)

    def close(self) -> None:
        """Never raises: a training that is complete must not be lost because its environment fails
        to close."""
        self._watch.close(self.pool.close)

    def keep(self) -> Kept | None:
        """None also where asking the environments fails: the checkpoint is written without them."""
        try:
            return self._watch.call("being asked for its state", self.pool.keep)
        except EnvironmentFailed as error:
            LOG.warning("%s; resumed from here, new episodes begin", error)
            return None

    def recall(self, kept: Kept, actions: np.ndarray, told: Told) -> tuple[np.ndarray, np.ndarray]:
        def work() -> tuple[np.ndarray, np.ndarray]:
            return self.pool.recall(kept, actions, told)

        # Every step that is played again may take as long as any.
        seen, same = self._watch.call("being rebuilt", work, allowance=1 + len(actions))
        return self._seen("being rebuilt", seen), same

    def _rewards(self, when: str, given: Any) -> np.ndarray:
        """One finite number each."""
        try:
            with np.errstate(over="ignore"):  # infinite then, and named below
                reward = np.asarray(given, np.float32)
        except (TypeError, ValueError):
            raise EnvironmentFailed(
                f"{self.name}: {when} returned rewards that are not numbers"
            ) from None
        if reward.shape != (self.num_envs,):
            raise EnvironmentFailed(
                f"{self.name}: {when} returned rewards of shape {reward.shape}, not one number each"
            )
        if not np.isfinite(reward).all():
            i = int(np.argmin(np.isfinite(reward)))
            raise EnvironmentFailed(
                f"{self.name}: {when} returned a reward that is not finite "
                f"({np.asarray(given)[i]:g} of environment {i}, as float32); {FINITE}"
            )
        return reward

    def _seen(self, when: str, observation: Any) -> np.ndarray:
        """An observation of the right shape and of finite numbers, dead sensors at 0."""
        seen = np.asarray(observation, self._kind)
        if seen.shape != self._shape:
            raise EnvironmentFailed(
                f"{self.name}: {when} returned observations of shape {seen.shape}, "
                f"not {self._shape}"
            )
        # Bytes are always finite, and NumPy would make a float of each to look.
        if self._kind is np.float32 and not np.isfinite(seen).all():
            flat = seen.reshape(self.num_envs, -1)
            i, entry = np.argwhere(~np.isfinite(flat))[0].tolist()
            raise EnvironmentFailed(
                f"{self.name}: {when} returned an observation that is not finite "
                f"({flat[i, entry]:g} at entry {entry} of environment {i}); {FINITE}"
            )
        if self._sensors is None:
            return seen
        alive = np.asarray(self._sensors, np.float32).reshape(self._shape[1:])
        return (seen * alive).astype(self._kind)

    def _diagnosis(self) -> str:
        return "" if self._pool is None else self._pool.diagnosis()

    def _give_up(self) -> None:
        if self._pool is not None:
            self._pool.give_up()


class Watch:
    """Calls the user's code on a thread; if it fails or hangs, a one-line error names the
    environment."""

    def __init__(
        self,
        name: str,
        timeout: float | None = None,
        diagnosis: Callable[[], str] = str,
        give_up: Callable[[], None] = lambda: None,
    ):
        self.name = name
        self._timeout = time_out() if timeout is None else timeout
        self._diagnosis, self._give_up = diagnosis, give_up
        self._others = set(multiprocessing.active_children())
        self._started: list[Any] = []
        """Processes of the environments."""
        self._when = ""
        """Which call into the environment the work is in ("step 12"); "" between those."""
        self._worker, self._sentinel = Worker(name), sentinel()

    def call(self, when: str, work: Callable[[], Any], allowance: float = 1) -> Any:
        """What `work` returns; `when` is the call it is in ("step 12"), which errors say after the
        environment's name. It may take `allowance` times as long as a step may."""
        self._note(f"{self.name[:500]}: {when}")
        try:
            if self._worker.is_here:
                return self._at_once(when, work)
            return self._worker.do(work, self._timeout * allowance)
        except TimeoutError:
            raise self._given_up(when, self._timeout * allowance) from None
        except WorkFailed as failed:
            named = self._named(when, failed.error)
            # An error that was named already must not become its own cause: that is a cycle.
            raise named from None if named is failed.error else failed.error
        finally:
            self._note("")

    def hand_over(self, work: Callable[[], Any]) -> Any:
        """What `work` returns, which has several calls to make and makes them on the thread."""
        try:
            return self._worker.do(work, self._timeout, at=lambda: self._when)
        except TimeoutError:
            raise self._given_up(self._when, self._timeout) from None
        except WorkFailed as failed:
            raise failed.error from failed.error.__cause__
        finally:
            self._when = ""

    def _at_once(self, when: str, work: Callable[[], Any]) -> Any:
        """A call within work that was handed over."""
        self._worker.insist_on_interest()
        self._when = when
        try:
            return work()
        except BaseException as error:
            raise WorkFailed(error) from None
        finally:
            self._when = ""

    def _given_up(self, when: str, seconds: float) -> EnvironmentFailed:
        """The error that says the thread hangs."""
        self._note("")  # or the sentinel tells it, too, when the command ends
        self._end_processes()
        self._give_up()
        failed = EnvironmentFailed(
            f"{self.name}: {when} took longer than {seconds:g} s and was given up (the variable "
            "SLACKLINE_TIMEOUT sets that number)",
            has_traceback=True,
        )
        failed.add_note(f"It was here:\n{self._worker.stack()}")
        return failed

    def _note(self, what: str) -> None:
        if self._sentinel is not None:
            self._sentinel.note(what.encode()[: ROOM - 1])

    def note_processes(self) -> None:
        """Remember which were started so far, to tell how they ended if they do."""
        self._started = self._processes()

    def close(self, work: Callable[[], Any]) -> None:
        """Run the closing work; if that hangs, log a warning and go on."""
        try:
            if not self._worker.hung:
                self.call("being closed", work)
        except EnvironmentFailed as error:
            if self._worker.hung:
                LOG.warning("%s", error)
            self._end_processes()
            self._give_up()
        self._worker.dismiss()

    def _named(self, when: str, error: BaseException) -> SlacklineError:
        if isinstance(error, SlacklineError):
            return error
        if isinstance(error, Misbehaved):
            return EnvironmentFailed(f"{self.name}: {when} {error}")
        if isinstance(error, EOFError | ConnectionError) and (died := self._died()):
            return EnvironmentFailed(f"{self.name}: {when} ended its process ({died}); {CRASHED}")
        if known := advice(error):
            return EnvironmentFailed(f"{self.name}: {known}")
        told = f"{when} raised {type(error).__name__}: {in_one_line(error) or 'no message'}"
        misfit = self._diagnosis()
        why = f" ({misfit})" if misfit else ""
        return EnvironmentFailed(f"{self.name}: {told}{why}", has_traceback=True)

    def _processes(self) -> list[Any]:
        """Those that were started since, for the environments, and live."""
        return [child for child in multiprocessing.active_children() if child not in self._others]

    def _died(self) -> str:
        """How one of its processes ended, if one did."""
        ended = wait([child.sentinel for child in self._started], timeout=1.0)
        for child in self._started:
            if child.sentinel in ended and child.exitcode is not None:
                return ending(child.exitcode)
        return ""

    def _end_processes(self) -> None:
        """Kill its processes: one that hangs does not react to a request to end."""
        for child in self._processes():
            child.kill()
            child.join(timeout=1.0)


def ending(code: int) -> str:
    """What an exit code says: the signal's name, or the number."""
    if code < 0 and -code in set(signal.Signals):
        return signal.Signals(-code).name
    return f"exit code {code}"


class WorkFailed(Exception):  # noqa: N818
    """Work on another thread raised `error`."""

    def __init__(self, error: BaseException):
        super().__init__(error)
        self.error = error


class Abandoned(Exception):  # noqa: N818
    """The caller no longer waits for the work that is being done."""


@dataclass(eq=False)
class Job:
    """Work for a thread, and what came of it."""

    work: Callable[[], Any]
    result: Any = None
    error: BaseException | None = None
    abandoned: bool = False


class Worker:
    """One thread that runs jobs in order. It is a daemon, so that one that hangs does not keep the
    program from ending; it gets no further jobs."""

    prints_to_stderr: ClassVar[bool] = False
    """Whether print() within a job goes to stderr: a command's stdout may be piped to a program."""
    started: ClassVar[int] = 0
    """How many were started; if none was, no code of the user's has run."""

    def __init__(self, name: str):
        self._todo: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._job: Job | None = None
        """The job that is running."""
        self.hung = False
        Worker.started += 1
        self._thread = threading.Thread(target=self._run, name=f"slackline {name}", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller is on this thread."""
        return threading.get_ident() == self._thread.ident

    def insist_on_interest(self) -> None:
        """Stop work whose caller no longer waits for the result."""
        if self._job is not None and self._job.abandoned:
            raise Abandoned

    def do(
        self, work: Callable[[], Any], timeout: float, at: Callable[[], str] | None = None
    ) -> Any:
        """What `work` returns, unless it fails (WorkFailed) or takes too long (TimeoutError).

        With `at`, which says which call into the environment the work is in, each call may take
        that long; time between calls ("") does not count.
        """
        if self.hung:  # what it says later would be the answer to an earlier question
            raise TimeoutError
        job = Job(work)
        self._todo.put(job)
        try:
            self.hung = not self._wait(job, timeout, at)
        except BaseException:  # Ctrl-C
            job.abandoned = True
            raise
        if self.hung:
            raise TimeoutError
        if job.error is not None:
            raise WorkFailed(job.error)
        return job.result

    def _wait(self, job: Job, timeout: float, at: Callable[[], str] | None) -> bool:
        """Whether it was done in time."""
        left, before = timeout, "" if at is None else at()
        while left > 0.0:
            glance = min(left, GLANCE)
            with suppress(queue.Empty):
                if self._done.get(timeout=glance) is job:
                    return True
                continue  # the answer to a question that was abandoned
            now = before if at is None else at()
            left = timeout if at is not None and (not now or now != before) else left - glance
            before = now
        return False

    def stack(self) -> str:
        """The stack of the thread at this moment."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "" if frame is None else "".join(traceback.format_stack(frame))

    def dismiss(self) -> None:
        self._todo.put(None)

    def _run(self) -> None:
        while (job := self._todo.get()) is not None:
            self._job = job
            try:
                with users_output():
                    job.result = job.work()
            except BaseException as error:  # whatever it is, the caller must know
                job.error = error
            self._done.put(job)


def users_output() -> contextlib.AbstractContextManager[Any]:
    """A context in which the user's code prints to stderr, if `Worker.prints_to_stderr` says so."""
    if not Worker.prints_to_stderr:
        return contextlib.nullcontext()
    return contextlib.redirect_stdout(sys.stderr)
