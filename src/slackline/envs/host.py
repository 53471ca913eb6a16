"""Environments that live outside JAX: EnvPool's, Gymnasium's, anybody's.

They cannot be traced, so they are stepped as a pool, N at once, on NumPy arrays. A pool hides how
its library resets: `step` tells both what a step led to and what to act on next.
"""

from __future__ import annotations

import abc
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackline.envs.advice import advice
from slackline.envs.api import Continuous, Discrete, Env, Spaces
from slackline.envs.camera import Camera
from slackline.envs.view import View
from slackline.errors import NotNamed, SlacklineError, in_one_line, require_number

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


class EnvironmentFailed(SlacklineError):  # noqa: N818
    """A host environment raised, hung, or returned what it must not."""


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
    """No episode is truncated before it has this many steps; 0: who knows."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return self.picture or (self.observation_size,)

    @property
    def spaces(self) -> Spaces:
        return Spaces(self.observation_shape, self.action)

    def for_jax(self, name: str) -> Env:
        """Refuses, in the name of a suite, whoever wants to trace it."""
        raise SlacklineError(
            f"{name} does not run in JAX; it can be trained on and adapted to, no more"
        )

    def default_params(self) -> HostParams:
        return HostParams({})

    def view(self) -> View | None:
        """Hosts are not drawn."""
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
    """The pool everybody uses: checked, timed, and blind where sensors are dead."""
    return WatchedPool(env, params, len(seeds), lambda: env.open(params, seeds, horizon))


class WatchedPool(Pool):
    """A pool that names the environment and the step when something goes wrong.

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
        self._timeout = time_out() if timeout is None else timeout
        self._shape, self._sensors = (num_envs, *env.observation_shape), params.sensors
        self._kind = np.float32 if env.picture is None else np.uint8
        self.steps = 0
        """Steps that all environments together have really taken."""
        self._worker = Worker(self.name)
        self._pool: Pool = self._call("being made", make)

    def reset(self) -> np.ndarray:
        return self._seen("a reset", self._call("a reset", self._pool.reset))

    def step(self, actions: np.ndarray) -> Stepped:
        if not np.isfinite(actions).all():
            raise SlacklineError(f"{self.name}: was given an action that is not finite")
        when = f"step {self.steps:,}"
        stepped = self._call(when, lambda: self._pool.step(actions))
        reached = self._seen(when, stepped.reached)
        new = stepped.observation is not stepped.reached
        observation = self._seen(when, stepped.observation) if new else reached
        reward = np.asarray(stepped.reward, np.float32)
        if reward.shape != (self.num_envs,):
            raise EnvironmentFailed(
                f"{self.name}: {when} returned rewards of shape {reward.shape}, not one number each"
            )
        if not np.isfinite(reward).all():
            raise EnvironmentFailed(f"{self.name}: {when} returned a reward that is not finite")
        self.steps += int(np.sum(stepped.real))
        return stepped._replace(reached=reached, observation=observation, reward=reward)

    def close(self) -> None:
        """Never an error of its own: what there was to say of the environment has been said, and
        a training that is complete is not lost to it."""
        with suppress(SlacklineError):
            self._call("being closed", self._pool.close)
        self._worker.dismiss()

    def _seen(self, when: str, observation: Any) -> np.ndarray:
        """An observation of the right shape and of finite numbers, dead sensors at 0."""
        seen = np.asarray(observation, self._kind)
        if seen.shape != self._shape:
            raise EnvironmentFailed(
                f"{self.name}: {when} returned observations of shape {seen.shape}, "
                f"not {self._shape}"
            )
        if not np.isfinite(seen).all():
            raise EnvironmentFailed(
                f"{self.name}: {when} returned an observation that is not finite"
            )
        if self._sensors is None:
            return seen
        alive = np.asarray(self._sensors, np.float32).reshape(self._shape[1:])
        return (seen * alive).astype(self._kind)

    def _call(self, when: str, work: Callable[[], Any]) -> Any:
        try:
            return self._worker.do(work, self._timeout)
        except TimeoutError:
            raise EnvironmentFailed(
                f"{self.name}: {when} took longer than {self._timeout:g} s and was given up "
                "(the variable SLACKLINE_TIMEOUT sets that number)"
            ) from None
        except SlacklineError:
            raise
        except (Exception, SystemExit) as error:
            told = f"{when} raised {type(error).__name__}: {in_one_line(error) or 'no message'}"
            raise EnvironmentFailed(f"{self.name}: {advice(error) or told}") from error


class Worker:
    """One thread that does what it is told, in order. A daemon: a hung one does not hold the
    program back when it ends, and is asked nothing more."""

    def __init__(self, name: str):
        self._todo: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._hung = False
        threading.Thread(target=self._run, name=f"slackline {name}", daemon=True).start()

    def do(self, work: Callable[[], Any], timeout: float) -> Any:
        if self._hung:  # what it says later would be the answer to an earlier question
            raise TimeoutError
        self._todo.put(work)
        answer = self._wait(timeout)
        if answer is None:
            self._hung = True
            raise TimeoutError
        result, error = answer
        if error is not None:
            raise error
        return result

    def _wait(self, timeout: float) -> tuple[Any, BaseException | None] | None:
        while timeout > 0.0:
            glance = min(timeout, GLANCE)
            with suppress(queue.Empty):
                return self._done.get(timeout=glance)
            timeout -= glance
        return None

    def dismiss(self) -> None:
        self._todo.put(None)

    def _run(self) -> None:
        while (work := self._todo.get()) is not None:
            try:
                self._done.put((work(), None))
            except BaseException as error:  # whatever it is, the caller must know
                self._done.put((None, error))
