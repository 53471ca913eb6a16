"""Single Gymnasium environments stepped in a few processes, several in each, through shared memory.

This process steps the first part of them, so that two processes keep two cores busy. A step is two
semaphores a process; everything else (resets, states) goes through a pipe.

Gymnasium is imported here, so this module is imported on first use.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from slackline.envs.host import Misbehaved, Worker
from slackline.envs.recall import end_with_parent
from slackline.envs.vector import DISABLED, LoopVector

Makers = Sequence[Callable[[], Any]]
STEP, ASK, END = 0, 1, 2
"""What a process is woken for."""
GLANCE = 1.0
"""Seconds between two looks at whether a process still lives."""


class Room(NamedTuple):
    """Memory that two processes share, for the environments of one of them."""

    order: Any
    """One number: STEP, ASK or END."""
    failed: Any
    """Whether the last step raised; the error is in the pipe."""
    action: Any
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any


class Places(NamedTuple):
    """The types and shapes of a room's arrays."""

    num: int
    seen: Any
    """A Box."""
    done: Any
    """A Box, or Discrete."""

    def shapes(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        one = {"order": (np.int64, (1,)), "failed": (np.bool_, (1,))}
        each = {"reward": np.float64, "terminated": np.bool_, "truncated": np.bool_}
        spaces = {"action": self.done, "observation": self.seen}
        return (
            one
            | {name: (kind, (self.num,)) for name, kind in each.items()}
            | {name: (s.dtype, (self.num, *s.shape)) for name, s in spaces.items()}
        )

    def memory(self, context: Any) -> dict[str, Any]:
        return {
            name: context.RawArray("b", max(1, int(np.prod(shape)) * np.dtype(kind).itemsize))
            for name, (kind, shape) in self.shapes().items()
        }

    def room(self, memory: dict[str, Any]) -> Room:
        """The arrays that the memory holds."""
        found = {}
        for name, (kind, shape) in self.shapes().items():
            count = int(np.prod(shape))
            found[name] = np.frombuffer(memory[name], kind, count).reshape(shape)
        return Room(**found)


class SharedVector:
    """What `VectorPool` needs of a vector environment, of environments in `num` processes."""

    def __init__(self, makers: Makers, num: int, start_method: str):
        parts = np.array_split(np.arange(len(makers)), num)
        self._own = LoopVector([makers[i] for i in parts[0]])
        self.num_envs = len(makers)
        self.single_observation_space = self._own.single_observation_space
        self.single_action_space = self._own.single_action_space
        self.metadata, self.closed, self.trouble = self._own.metadata, False, ""
        assert self.metadata["autoreset_mode"] == DISABLED
        self._bounds = [(int(part[0]), int(part[-1]) + 1) for part in parts]
        context: Any = multiprocessing.get_context(start_method)
        spaces: Any = self.single_observation_space, self.single_action_space
        self._others: list[Process] = []
        for first, end in self._bounds[1:]:
            places = Places(end - first, *spaces)
            self._others.append(Process(context, makers[first:end], places, first))
        for other in self._others:
            if other.answer() != spaces:
                raise Misbehaved("changed its spaces; every environment must have the same ones")
        self._observation = np.zeros((self.num_envs, *spaces[0].shape), spaces[0].dtype)

    @property
    def _env_obs(self) -> list[Any]:
        """Of this process's environments, for a diagnosis."""
        return self._own._env_obs

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        for other, (first, end) in zip(self._others, self._bounds[1:], strict=True):
            other.begin_step(actions[first:end])
        try:
            seen, reward, terminated, truncated, _ = self._own.step(actions[: self._bounds[0][1]])
        finally:
            for other in self._others:
                other.wait()
        for other in self._others:
            self._insist_on_success(other)
        rooms = [other.room for other in self._others]
        self._observation[: len(seen)] = seen
        for room, (first, end) in zip(rooms, self._bounds[1:], strict=True):
            self._observation[first:end] = room.observation
        reward = np.concatenate([reward, *(room.reward for room in rooms)])
        terminated = np.concatenate([terminated, *(room.terminated for room in rooms)])
        truncated = np.concatenate([truncated, *(room.truncated for room in rooms)])
        return self._observation, reward, terminated, truncated, {}

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """As a vector's: all of them, or those of a `reset_mask`."""
        rest = dict(options or {})
        mask = rest.pop("reset_mask", np.ones(self.num_envs, bool))
        asked = []
        for part, (first, end) in enumerate(self._bounds):
            own = mask[first:end]
            if not own.any():
                continue
            seeds = None if seed is None else list(seed[first:end])
            given = None if options is None else {**rest, "reset_mask": own}
            asked.append((part, first, end, {"seed": seeds, "options": given}))
        for part, _, _, arguments in asked:
            if part:
                self._others[part - 1].ask("reset", arguments)
        answers = [
            (self._others[part - 1].answer() if part else self._own.reset(**arguments)[0])
            for part, _, _, arguments in asked
        ]
        for (_, first, end, _), seen in zip(asked, answers, strict=True):
            self._observation[first:end] = seen
        return self._observation, {}

    def call(self, name: str) -> tuple[Any, ...]:
        """What each environment answers to a method without arguments, or has by that name."""
        for other in self._others:
            other.ask("call", {"name": name})
        own = self._own.call(name)
        return sum((tuple(other.answer()) for other in self._others), tuple(own))

    def render(self) -> tuple[Any, ...]:
        return self.call("render")

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for other in self._others:
                other.end()
            self._own.close()

    def _insist_on_success(self, other: Process) -> None:
        if other.room.failed[0]:
            error, self.trouble = other.connection.recv()
            raise error


class Process:
    """Another process, as this one sees it."""

    def __init__(self, context: Any, makers: Makers, places: Places, first: int):
        self.connection, theirs = context.Pipe()
        self._go, self._done = context.Semaphore(0), context.Semaphore(0)
        memory = places.memory(context)
        self.room = places.room(memory)
        wrapped: Any = gym.vector.utils.CloudpickleWrapper(list(makers))  # type: ignore[arg-type]
        arguments = (theirs, self._go, self._done, memory, places, wrapped, first)
        self._process = context.Process(
            target=work, args=(*arguments, Worker.prints_to_stderr), daemon=True
        )
        self._process.start()
        theirs.close()

    def begin_step(self, actions: np.ndarray) -> None:
        self.room.action[...] = actions
        self._wake(STEP)

    def ask(self, name: str, arguments: dict[str, Any]) -> None:
        self.connection.send((name, arguments))
        self._wake(ASK)

    def answer(self) -> Any:
        """To what it was asked, or the spaces of its environments at first."""
        self.wait()
        worked, found = self.connection.recv()
        if not worked:
            raise found
        return found

    def wait(self) -> None:
        """Until it has done what it was woken for."""
        while not self._done.acquire(timeout=GLANCE):
            if not self._process.is_alive():
                raise EOFError

    def end(self) -> None:
        self._wake(END)
        self._process.join(timeout=GLANCE)
        if self._process.is_alive():
            self._process.kill()

    def _wake(self, order: int) -> None:
        self.room.order[0] = order
        self._go.release()


def work(
    connection: Any,
    go: Any,
    done: Any,
    memory: dict[str, Any],
    places: Places,
    makers: Any,
    first: int,
    prints_to_stderr: bool,
) -> None:
    """The loop of the other process, until it is asked to end."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    if prints_to_stderr:
        sys.stdout = sys.stderr
    room, vector = places.room(memory), None
    try:
        vector = LoopVector(makers.fn)
        connection.send((True, (vector.single_observation_space, vector.single_action_space)))
    except BaseException as error:
        connection.send((False, sendable(error)))
        return
    finally:
        done.release()
    while go.acquire() and room.order[0] != END:
        if room.order[0] == STEP:
            step(vector, room, connection, first)
        else:
            connection.send(answered(vector, *connection.recv()))
        done.release()
    vector.close()


def step(vector: LoopVector, room: Room, connection: Any, first: int) -> None:
    try:
        seen, room.reward[:], room.terminated[:], room.truncated[:], _ = vector.step(room.action)
        room.observation[...] = seen
        room.failed[0] = False
    except BaseException as error:
        room.failed[0] = True
        connection.send((sendable(error), misfits(vector, first)))


def answered(vector: LoopVector, name: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
    """(True, the answer) or (False, what it raised)"""
    try:
        found: Any = getattr(vector, name)(**arguments)
        return True, found[0].copy() if name == "reset" else found
    except BaseException as error:
        return False, sendable(error)


def misfits(vector: LoopVector, first: int) -> str:
    """What the environments of a process, whose first is number `first`, returned that does not fit
    their space."""
    from slackline.envs.gymnasium import misfit

    for i, seen in enumerate(vector._env_obs):
        if problem := misfit(vector.single_observation_space, seen):
            return f"environment {first + i} returned {problem}"
    return ""


def sendable(error: BaseException) -> BaseException:
    """The error itself where the other end surely can have it, else its words."""
    plain = all(isinstance(said, str | int | float | None) for said in error.args)
    if plain and type(error).__module__ in ("builtins", Misbehaved.__module__):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")
