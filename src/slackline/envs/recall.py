"""Rebuilding the episode that a single Gymnasium environment was in, from what a checkpoint keeps.

An environment is rebuilt by its own `get_state()` and `set_state(state)` if it has both, else by
playing the episode again: the same seed, the same random numbers before the reset that began it,
the same actions. Whether that led to where it was is checked, by the return here and by the
observation in the pool. Where it did not, or where its metadata say `"resume": "anew"` (a robot
should not move by itself), a new episode begins.

Gymnasium is imported here, so this module is imported on first use.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from slackline.envs.host import Kept, Misbehaved, Told
from slackline.errors import SlacklineError

RECALL = "slackline_recall"
"""The option of `reset` that has environment i rebuild the episode of its i-th value."""

MASK = 2**64 - 1


class Memory(NamedTuple):
    """What one episode is rebuilt from."""

    seed: int
    later: bool
    before: np.ndarray
    now: np.ndarray
    state: str
    actions: np.ndarray
    """(T, ...), all since it began."""
    whole: bool
    """Whether they are all there."""
    episode_return: float
    elapsed: int
    fresh_seed: int


def memories(kept: Kept, actions: np.ndarray, told: Told) -> list[Memory]:
    """By environment; `actions` (T, N, ...) as the environments take them."""
    found = []
    for i, elapsed in enumerate(told.elapsed.tolist()):
        own = actions[max(len(actions) - elapsed, 0) :, i]
        rest = float(told.episode_return[i]), elapsed, int(told.fresh_seeds[i])
        first = int(kept.seeds[i]), bool(kept.later[i]), kept.before[i], kept.now[i], kept.states[i]
        found.append(Memory(*first, own, len(own) == elapsed, *rest))
    return found


class Recalling(gym.Wrapper):
    """Remembers how its episode began. Around everything else, and costs nothing in a step."""

    def __init__(self, env: gym.Env, index: int):
        super().__init__(env)
        self.step = env.step  # type: ignore[method-assign]
        self.index = index
        """Its place in the pool."""
        self.recalled = ""
        """How the last episode was rebuilt: "replay", "state", or "" where it was not."""
        self._spaces = env.observation_space, env.action_space
        self._anew = (env.metadata or {}).get("resume") == "anew"
        self._seed, self._later, self._before = -1, False, words(None)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if options and RECALL in options:
            return self._rebuilt(options[RECALL][self.index])
        self._seed = self._seed if seed is None else seed
        self._later, self._before = seed is None, words(self._generator())
        began = self.env.reset(seed=seed, options=options)
        self._insist_on_spaces()
        return began

    def kept(self) -> tuple[int, bool, np.ndarray, np.ndarray, str]:
        """What `Memory` begins with."""
        seed = -1 if self._anew else self._seed
        state = encoded(self._own("get_state")()) if self._has_state() else ""
        return seed, self._later, self._before, words(self._generator()), state

    def _rebuilt(self, memory: Memory) -> tuple[Any, dict[str, Any]]:
        self.recalled = ""
        if memory.seed >= 0 and memory.whole and not self._anew:
            try:
                began = self._by_state(memory) if memory.state else self._by_replay(memory)
                self._insist_on_spaces()
            except Misbehaved:
                raise
            except Exception:  # it is the user's code, and here it was only an attempt
                began = None
            if began is not None:
                self.recalled = "state" if memory.state else "replay"
                return began
        return self.reset(seed=memory.fresh_seed)

    def _by_state(self, memory: Memory) -> tuple[Any, dict[str, Any]] | None:
        if not self._has_state():
            return None
        began = self.reset(seed=memory.seed)
        self._later, self._before = memory.later, memory.before
        restore(self._generator(), memory.now)
        self._own("set_state")(decoded(memory.state))
        for env in layers(self.env):
            if isinstance(env, gym.wrappers.TimeLimit):
                env._elapsed_steps = memory.elapsed
        return began

    def _by_replay(self, memory: Memory) -> tuple[Any, dict[str, Any]] | None:
        """None where the actions lead elsewhere."""
        seen, info = self.reset(seed=memory.seed)
        if memory.later:
            restore(self._generator(), memory.before)
            seen, info = self.reset(options={})
        total = 0.0
        for action in memory.actions:
            seen, reward, terminated, truncated, info = self.env.step(action)
            total += float(np.float32(reward))
            if terminated or truncated:
                return None
        return (seen, info) if total == memory.episode_return else None

    def _insist_on_spaces(self) -> None:
        now = self.env.observation_space, self.env.action_space
        for name, before, space in zip(("observation", "action"), self._spaces, now, strict=True):
            if space is not before and space != before:
                raise Misbehaved(
                    f"changed the {name}_space from {before} to {space}; spaces must stay as they "
                    "are"
                )

    def _generator(self) -> Any:
        """Gymnasium's own generator of the environment, None before it has one."""
        return getattr(self.env.unwrapped, "_np_random", None)

    def _has_state(self) -> bool:
        names = ("get_state", "set_state")
        return all(callable(getattr(self.env.unwrapped, name, None)) for name in names)

    def _own(self, name: str) -> Any:
        return getattr(self.env.unwrapped, name)


def layers(env: Any) -> list[Any]:
    """An environment and all that it wraps."""
    found = [env]
    while isinstance(env, gym.Wrapper):
        env = env.env
        found.append(env)
    return found


def words(generator: Any) -> np.ndarray:
    """(6,) uint64: the state of a PCG64, which is what Gymnasium uses; zeros for any other."""
    found = np.zeros(6, np.uint64)
    state = None if generator is None else generator.bit_generator.state
    if state is not None and state["bit_generator"] == "PCG64":
        value, inc = state["state"]["state"], state["state"]["inc"]
        rest = state["has_uint32"], state["uinteger"]
        found[:] = (value >> 64, value & MASK, inc >> 64, inc & MASK, *rest)
    return found


def restore(generator: Any, found: np.ndarray) -> None:
    """Put a generator into the state that `words` wrote."""
    if generator is None or not found.any():
        return
    high, low, inc_high, inc_low, has, left = (int(word) for word in found)
    numbers = {"state": high << 64 | low, "inc": inc_high << 64 | inc_low}
    whole = {"bit_generator": "PCG64", "state": numbers, "has_uint32": has, "uinteger": left}
    generator.bit_generator.state = whole


def encoded(state: Any) -> str:
    """What `get_state` returned, as JSON: numbers, words, bytes, arrays, and lists of them."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            if array.dtype.kind not in "biufc":
                raise Misbehaved(f"get_state() returned an array of {array.dtype}")
            text = base64.b64encode(array.tobytes()).decode()
            return {"array": text, "dtype": array.dtype.str, "shape": list(array.shape)}
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, Mapping):
            return {"table": {str(key): plain(each) for key, each in value.items()}}
        if isinstance(value, list | tuple):
            return {type(value).__name__: list(map(plain, value))}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise Misbehaved(
            f"get_state() returned a {type(value).__name__}; it must be made of numbers, words, "
            "bytes, arrays, lists, tuples and tables by words"
        )

    return json.dumps(plain(state))


def decoded(text: str) -> Any:
    """The inverse of `encoded`."""

    def value(plain: Any) -> Any:
        if not isinstance(plain, dict):
            return plain
        if "array" in plain:
            if not re.fullmatch(r"[<>|=]?[biufc]\d{1,2}", plain["dtype"]):
                raise ValueError("not a dtype that encoded() writes")
            raw = np.frombuffer(
                base64.b64decode(plain["array"], validate=True), np.dtype(plain["dtype"])
            )
            return raw.reshape(plain["shape"]).copy()
        ((kind, inner),) = plain.items()
        if kind == "bytes":
            return base64.b64decode(inner, validate=True)
        if kind == "table":
            return {key: value(each) for key, each in inner.items()}
        return (tuple if kind == "tuple" else list)(map(value, inner))

    try:
        return value(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SlacklineError("the state of an environment in the checkpoint is damaged") from None


PARENT_SECONDS = 1.0


def end_with_parent() -> None:
    """End this process soon after its parent has, also in the middle of a step that hangs."""
    above, parent = os.getppid(), multiprocessing.parent_process()

    def watch() -> None:
        # The process above may be a fork server, which outlives the one that asked for this.
        while os.getppid() == above and (parent is None or parent.is_alive()):
            time.sleep(PARENT_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="slackline parent", daemon=True).start()
