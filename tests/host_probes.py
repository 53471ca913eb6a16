"""Small Gymnasium environments that keep a diary, so that nothing can be lost or doubled."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import gymnasium as gym
import numpy as np

from slackline.envs.gymnasium import GymnasiumEnv, describe
from slackline.envs.host import HostEnv, WatchedPool, open_pool


class Diary(gym.Env):
    """Observes (seed modulo 5, episode, step); the reward is the step. Episodes last 2, 3, 4, 2, 3
    … steps, longer by that seed; odd ones are truncated, even ones terminate."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.seed, self.episode, self.count, self.steps = 0, -1, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.seed = self.seed if seed is None else seed % 5
        self.episode, self.count = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.count, self.steps = self.count + 1, self.steps + 1
        ends = self.count == length(self.seed, self.episode)
        odd = self.episode % 2 == 1
        info = {"steps": self.steps}
        return self._seen(), float(self.count), ends and not odd, ends and odd, info

    def _seen(self) -> np.ndarray:
        return np.array([self.seed, self.episode, self.count], np.float32)


def length(seed: int, episode: int) -> int:
    return 2 + episode % 3 + seed


class Recorder(gym.Env):
    """One-step episodes; keeps what it was given and what it showed, drawn from its space;
    the reward is 1 for its favourite action, or minus the squared distance to `target`."""

    def __init__(
        self, action: Any = None, observation: Any = None, favourite: int = 1, target: float = 0.0
    ):
        self.action_space = action or gym.spaces.Discrete(2)
        self.observation_space = observation or gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.favourite, self.target = favourite, target
        self.given: list[Any] = []
        self.shown: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.given.append(action)
        if isinstance(self.action_space, gym.spaces.Discrete):
            reward = float(action == self.favourite)
        else:
            reward = -float(np.sum((action - self.target) ** 2))
        return self._seen(), reward, True, False, {}

    def _seen(self) -> Any:
        self.shown.append(self.observation_space.sample())
        return self.shown[-1]


class Faulty(gym.Env):
    """Endless, but for what goes wrong in one of its steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    fault = "none"
    """Or "raises", "exits", "hangs", "nan", "reward", "shape"."""

    def __init__(self, fault: str | None = None, at: int = 7):
        self.fault, self.at, self.count = fault or self.fault, at, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.count += 1
        seen, reward = np.zeros(1, np.float32), 1.0
        if self.count == self.at:
            match self.fault:
                case "raises":
                    raise RuntimeError("the robot\nfell over")
                case "exits":
                    raise SystemExit(3)
                case "hangs":
                    import time

                    time.sleep(1.0)
                case "nan":
                    seen = np.full(1, np.nan, np.float32)
                case "reward":
                    reward = float("inf")
                case "shape":
                    seen = np.zeros(2, np.float32)
        return seen, reward, False, False, {}


def pool_of(env: HostEnv, num: int = 3, horizon: int = 1000) -> WatchedPool:
    """Checked as everybody's is, with seeds 0, 1, …"""
    return open_pool(env, env.default_params(), list(range(num)), horizon)


def recorded(**options: Any) -> tuple[GymnasiumEnv, list[Recorder]]:
    """An environment, and every copy of it that will have been made."""
    made: list[Recorder] = []

    def recorder(**changed: Any) -> Recorder:
        made.append(Recorder(**options | changed))
        return made[-1]

    return describe("recorder", recorder, {}), made


class HostAim(gym.Env):
    """The return is −(last action − target)², with noise; between bounds −1 and 3, as probes.Aim.

    Episodes have 1 … `longest` steps, none of them an end if `endless`. The observation is `seen`.
    """

    observation_space = gym.spaces.Box(-9.0, 9.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 3.0, (1,), np.float32)

    def __init__(
        self,
        target: float = 2.0,
        noise: float = 0.0,
        longest: int = 1,
        *,
        endless: bool = False,
        seen: float = 1.0,
    ):
        self.target, self.noise, self.longest, self.endless = target, noise, longest, endless
        self.seen, self.left = np.full(1, seen, np.float32), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, self.longest + 1))
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.left -= 1
        ends = self.left == 0 and not self.endless
        error = float(action[0]) - self.target
        reward = self.noise * self.np_random.normal() - error**2 if ends else 0.0
        return self.seen, float(reward), ends, False, {}


class Lamp(gym.Env):
    """A dark picture with one bright half; the reward is 1 for naming it (0 left, 1 right), or, in
    a `mirror`, for naming the other. One-step episodes."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, colours_first: bool = True, mirror: bool = False):
        self.colours_first, self.mirror = colours_first, mirror
        shape = (3, 16, 18) if colours_first else (16, 18, 3)
        self.observation_space = gym.spaces.Box(0, 255, shape, np.uint8)
        self.right = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.right = bool(self.np_random.integers(2))
        return self.picture(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        right = action == (self.right != self.mirror)
        return self.picture(), float(right), True, False, {}

    def picture(self) -> np.ndarray:
        picture = np.zeros((16, 18, 3), np.uint8)
        picture[:, 9 * self.right : 9 * self.right + 9] = (200, 100, 50)
        return np.moveaxis(picture, -1, 0) if self.colours_first else picture


class HalfPorted(gym.Env):
    """Its `step` returns 4 values, as before Gymnasium."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(3, np.float32), 0.0, False, {}


class OldGym(HalfPorted):
    """And its `reset` has no seed."""

    def reset(self) -> np.ndarray:  # type: ignore[override]
        return np.zeros(3, np.float32)


class Lit(gym.Env):
    """Draws itself: all pixels are ten times as bright as its step, the first one as its episode.
    Episodes have 4 steps, or `longer`; the reward is the action."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012
    observation_space = gym.spaces.Box(-9.0, 9.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode: str | None = None, longer: int = 0):
        self.render_mode, self.steps, self.count, self.episode = render_mode, 4 + longer, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.count, self.episode = 0, self.episode + 1
        return self.np_random.normal(size=1).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.count += 1
        seen = np.full(1, self.count, np.float32)
        return seen, float(action[0]), self.count == self.steps, False, {}

    def render(self) -> Any:
        if self.render_mode is None:
            return None
        picture = np.full((20, 30, 3), 10 * self.count, np.uint8)
        picture[0, 0] = self.episode
        return picture


def lit_vector(num_envs: int, mode: str = "NextStep", render_mode: str | None = None) -> Any:
    """Many of them at once, whichever way they reset."""
    modes = {each.value: each for each in gym.vector.AutoresetMode}
    each = [lambda: Lit(render_mode)] * num_envs
    return gym.vector.SyncVectorEnv(each, autoreset_mode=modes[mode])


def lit_always() -> Lit:
    """A maker that knows no render_mode, of environments that draw themselves anyway."""
    return Lit("rgb_array")


class Drift(gym.Env):
    """A walk by chance and by action, from a place drawn at each reset; the world's slope is
    drawn once, with the seed. Episodes have 3 to 11 steps."""

    observation_space = gym.spaces.Box(-99.0, 99.0, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self.slope = self.np_random.normal()
        self.x, self.left = self.np_random.normal(), int(self.np_random.integers(3, 12))
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.x += float(action[0]) + 0.3 * self.slope + 0.1 * self.np_random.normal()
        self.left -= 1
        return self.seen(), -abs(self.x), self.left == 0, False, {}

    def seen(self) -> np.ndarray:
        return np.array([self.x, self.slope], np.float32)


FAULTS: dict[str, Any] = {
    "nan": lambda: (np.full(2, np.nan, np.float32), 1.0, False, False, {}),
    "infinite": lambda: (np.array([0.0, -np.inf], np.float32), 1.0, False, False, {}),
    "shape": lambda: (np.zeros(3, np.float32), 1.0, False, False, {}),
    "ragged": lambda: ([[0.0], 0.0], 1.0, False, False, {}),
    "words": lambda: (np.array(["a", "b"]), 1.0, False, False, {}),
    "complex": lambda: (np.array([1j, 0.0]), 1.0, False, False, {}),
    "nothing": lambda: (None, 1.0, False, False, {}),
    "reward nan": lambda: (np.zeros(2, np.float32), np.nan, False, False, {}),
    "reward infinite": lambda: (np.zeros(2, np.float32), np.inf, False, False, {}),
    "reward huge": lambda: (np.zeros(2, np.float32), 1e39, False, False, {}),
    "reward nothing": lambda: (np.zeros(2, np.float32), None, False, False, {}),
    "reward word": lambda: (np.zeros(2, np.float32), "good", False, False, {}),
    "reward array": lambda: (np.zeros(2, np.float32), np.zeros(2), False, False, {}),
    "done array": lambda: (np.zeros(2, np.float32), 1.0, np.zeros(2, bool), False, {}),
    "info": lambda: (np.zeros(2, np.float32), 1.0, False, False, 3),
    "too few": lambda: (np.zeros(2, np.float32), 1.0, False),
    "no tuple": lambda: None,
}
"""What `step` returns, by what is wrong with it."""


class Unruly(gym.Env):
    """Does what it must not at one `place`: "made", "reset", "step" or "close"."""

    action_space: Any = gym.spaces.Discrete(2)
    made = 0

    def __init__(self, place: str = "", fault: str = "", at: int = 3):
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        Unruly.made += 1
        self.place, self.fault, self.at, self.count = place, fault, at, 0
        self.misbehave("made")

    def misbehave(self, place: str) -> None:
        if place != self.place:
            return
        match self.fault:
            case "hangs":
                time.sleep(30.0)
            case "raises":
                raise RuntimeError("the robot\nfell over")
            case "exits":
                sys.exit(3)
            case "interrupts":
                raise KeyboardInterrupt
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "crashes":
                ctypes.string_at(0)
            case "leaves":
                os._exit(0)
            case "holds":  # a regular expression never lets go of the interpreter
                re.match(r"(a|a)*b", "a" * 60)
            case "prints":
                print("hello from the robot", flush=True)
                os.write(1, b"hello from its library\n")
            case "threads":
                threading.Thread(target=time.sleep, args=(30.0,)).start()
            case "other actions":
                self.action_space = gym.spaces.Discrete(3)
            case "other observations":
                self.observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.misbehave("reset")
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        if self.count == self.at:
            self.misbehave("step")
            if self.place == "step" and self.fault in FAULTS:
                return FAULTS[self.fault]()
        return np.zeros(2, np.float32), 1.0, self.count % 5 == 0, False, {}

    def close(self) -> None:
        self.misbehave("close")


class Simulated(Unruly):
    """Has a simulator, a process that it ends when it is closed and notes in a file."""

    def __init__(self, place: str = "", fault: str = "", at: int = 3):
        self.simulator = subprocess.Popen(["sleep", "300"])
        with open("simulators", "a") as file:
            file.write(f"{self.simulator.pid}\n")
        super().__init__(place, fault, at)

    def close(self) -> None:
        self.simulator.kill()
        self.simulator.wait()


class Quiet(Unruly):
    """Misbehaves only in a process of its own."""

    def misbehave(self, place: str) -> None:
        if multiprocessing.parent_process() is not None:
            super().misbehave(place)
