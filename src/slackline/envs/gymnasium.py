"""Any Gymnasium environment: by id, by a factory of one, or by a factory of many.

Gymnasium itself is imported on first use.
"""

from __future__ import annotations

import functools
import inspect
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from slackline.envs.advice import OLD_API, advice
from slackline.envs.api import Continuous, Discrete
from slackline.envs.camera import Camera
from slackline.envs.host import (
    EnvironmentFailed,
    HostEnv,
    HostParams,
    Kept,
    Misbehaved,
    Pool,
    Stepped,
    Told,
    Watch,
)
from slackline.errors import SlacklineError, in_one_line, needed, require_count
from slackline.settings import query

T = TypeVar("T")
Workers = Literal["sync", "async"] | int
MOST_WORKERS = 256


def library() -> Any:
    return needed("gymnasium", "Gymnasium environments need Gymnasium", "gymnasium")


@dataclass(frozen=True)
class GymnasiumEnv(HostEnv):
    """An environment and the keyword arguments it is always made with."""

    make: Callable[..., Any] = field(compare=False)
    """Makes one environment, or a vector of them if it takes `num_envs`."""
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    workers: Workers = field(default="sync", compare=False)
    """Step single environments in this process ("sync"), each in one of its own ("async"), or in so
    many, this one included, several in each."""
    camera: Camera | None = field(default=None, compare=False, kw_only=True)
    """What films them, if anything does."""
    fixed_size: bool = field(default=True, compare=False, kw_only=True)
    """Whether an observation is one array, which processes can share."""

    def default_params(self) -> HostParams:
        return HostParams(self.options)

    def filmed(self, camera: Camera) -> GymnasiumEnv:
        return replace(self, make=drawing(self.make), camera=camera)

    def open(self, params: HostParams, seeds: Sequence[int], horizon: int) -> Pool:
        options = dict(params.options)
        if makes_vectors(self.make):
            vector = self.make(num_envs=len(seeds), **options)
            return self._pool(vector, seeds, recalls=False)
        gym = library()
        # Not the library's default: a reset of its own would take a step of everybody else.
        mode = gym.vector.AutoresetMode.DISABLED
        alone = self.workers == "async"
        each = [
            functools.partial(single, self.make, options, horizon, i, alone=alone)
            for i in range(len(seeds))
        ]
        if not alone:
            return self._pool(self._in_processes(each), seeds)
        try:
            vector = gym.vector.AsyncVectorEnv(each, autoreset_mode=mode, context=start_method())
        except (EOFError, ConnectionError) as error:
            raise Misbehaved("ended its process") from error
        return self._pool(vector, seeds)

    def _in_processes(self, makers: list[Callable[[], Any]]) -> Any:
        """In as many as are wanted, where there is something for each to do and shared memory can
        hold what they see."""
        from slackline.envs.shared import SharedVector
        from slackline.envs.vector import LoopVector

        num = 1 if isinstance(self.workers, str) else min(self.workers, len(makers))
        if num == 1 or not self.fixed_size:
            return LoopVector(makers)
        return SharedVector(makers, num, start_method())

    def _pool(self, vector: Any, seeds: Sequence[int], *, recalls: bool = True) -> VectorPool:
        """A pool of environments that are what they were when they were described."""
        seen, done = vector.single_observation_space, vector.single_action_space
        now = (observation_size(self.name, seen), picture_of(seen), action_of(self.name, done))
        if now != (self.observation_size, self.picture, self.action):
            raise Misbehaved(
                f"changed its spaces: now they are {_brief(seen)} and {_brief(done)}; every "
                "environment that is made must have the same ones"
            )
        return VectorPool(vector, seeds, self.camera, recalls=recalls)


def single(
    make: Callable[..., Any], options: Mapping[str, Any], horizon: int, index: int, *, alone: bool
) -> Any:
    """One environment with a time limit, which can rebuild its episode; `alone` in its process,
    which it leaves when its parent does."""
    from slackline.envs.recall import Recalling, end_with_parent

    if alone:
        end_with_parent()
    env = make(**options)
    if time_limit(env) is None:
        env = library().wrappers.TimeLimit(env, horizon)
    return Recalling(env, index)


def start_method() -> str:
    """How to start a process beside JAX: it has threads, and a forked copy of them may lock up."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


class VectorPool(Pool):
    """A Gymnasium vector environment, whichever way it resets."""

    def __init__(
        self,
        vector: Any,
        seeds: Sequence[int],
        camera: Camera | None = None,
        *,
        recalls: bool = False,
    ):
        """`recalls`: its environments are `Recalling`."""
        modes = library().vector.AutoresetMode
        self.vector, self.num_envs = vector, vector.num_envs
        self.mode = vector.metadata.get("autoreset_mode", modes.NEXT_STEP)
        self._by_hand = self.mode == modes.DISABLED
        self._at_once = self.mode == modes.SAME_STEP
        self._ended = np.zeros(self.num_envs, bool)
        self._observe = observer(vector.single_observation_space)
        self._act = actor(vector.single_action_space)
        self._seeds: list[int] | None = list(seeds)
        self._camera, self._recalls = camera, recalls

    def reset(self) -> np.ndarray:
        self._ended[:] = False
        # Only the first time: the same seed again would mean the same episodes again.
        seeds, self._seeds = self._seeds, None
        seen, _ = self.vector.reset(seed=seeds)
        if self._camera is not None:
            self._camera.start(self.vector.render, self.vector.metadata)
        return self._observe(seen)

    def step(self, actions: np.ndarray) -> Stepped:
        seen, reward, terminated, truncated, info = self.vector.step(self._act(actions))
        reached = observation = self._observe(seen)
        terminated = np.array(terminated, bool)
        truncated = np.array(truncated, bool) & ~terminated
        ended = terminated | truncated
        if self._camera is not None:
            self._camera.step(self.vector.render, reward, ended if self._at_once else None)
        real = np.ones(self.num_envs, bool)
        if self._by_hand and ended.any():
            fresh, _ = self.vector.reset(options={"reset_mask": ended})
            observation = self._observe(fresh)
        elif self._at_once and ended.any():
            reached = observation.copy()
            for i in np.flatnonzero(ended):
                reached[i] = self._observe(_alone(info["final_obs"][i]))[0]
        elif not self._by_hand and not self._at_once:
            real, self._ended = ~self._ended, ended
            reward = np.where(real, reward, 0.0)
        return Stepped(reached, np.asarray(reward), terminated, truncated, observation, real)

    def close(self) -> None:
        self.vector.close()

    def give_up(self) -> None:
        self.vector.closed = True  # or the garbage collector would close it

    def diagnosis(self) -> str:
        if trouble := getattr(self.vector, "trouble", ""):
            return trouble
        space = self.vector.single_observation_space
        shown = getattr(self.vector, "_env_obs", ())
        if all(seen is None for seen in shown):  # not reset yet
            return ""
        for i, seen in enumerate(shown):
            if problem := misfit(space, seen):
                return f"environment {i} returned {problem}"
        return ""

    def keep(self) -> Kept | None:
        if not self._recalls:
            return None
        seeds, later, before, now, states = zip(*self.vector.call("kept"), strict=True)
        words = np.stack(before), np.stack(now)
        return Kept(np.array(seeds, np.int64), np.array(later, bool), *words, states)

    def recall(self, kept: Kept, actions: np.ndarray, told: Told) -> tuple[np.ndarray, np.ndarray]:
        from slackline.envs.recall import RECALL, memories

        assert self._recalls
        self._seeds, self._ended[:] = None, False
        flat = self._act(actions.reshape(-1, *actions.shape[2:])) if actions.size else actions
        done = flat.reshape(*actions.shape[:2], *flat.shape[1 if actions.size else 2 :])
        each = memories(kept, done, told)
        seen, _ = self.vector.reset(options={RECALL: each})
        how = np.array(self.vector.call("recalled"))
        observation = self._observe(seen)
        # Those who set their state themselves show no observation by it.
        observation[how == "state"] = told.observation[how == "state"]
        differs = (observation != told.observation).reshape(self.num_envs, -1).any(axis=1)
        if (wrong := differs & (how != "")).any():
            fresh = told.fresh_seeds.tolist()
            seen, _ = self.vector.reset(seed=fresh, options={"reset_mask": wrong})
            observation[wrong] = self._observe(seen)[wrong]
        return observation, (how != "") & ~wrong


def gymnasium(
    env: str | Callable[..., Any], *, workers: Workers = "sync", **options: Any
) -> GymnasiumEnv:
    """An environment by its id, or by a function that makes it; `options` go to its maker.

    A function that takes `num_envs` must return a vector environment. Single ones are stepped one
    after the other, or in `workers` processes, this one included; `workers="async"` gives each a
    process of its own.
    """
    if isinstance(workers, str) and workers not in ("sync", "async"):
        raise SlacklineError(f"workers is {workers!r}; it must be sync, async or a number")
    if not isinstance(workers, str):
        require_count("workers", workers, high=MOST_WORKERS)
    if not isinstance(env, str) and not callable(env):
        raise SlacklineError(
            f"environment is {env!r}; it must be an id of Gymnasium's or a function that makes one"
        )
    if isinstance(env, str):
        title, make = f"gym:{env}", maker(env)
    else:
        title, make = word_for(env), env
    return describe(title + query(options), make, options, workers)


def made(name: str, make: Callable[[], Any], look: Callable[[Any], T]) -> T:
    """What `look` returns for what `make` makes; if either fails, an error that names the
    environment.

    All of it on another thread, so that an environment that hangs can be given up.
    """
    watch = Watch(name)

    def work() -> tuple[Any, T]:
        thing = make()
        return thing, look(thing)

    try:
        thing, seen = watch.call("being made", work)
    except EnvironmentFailed as failed:
        error = failed.__cause__
        if error is None:
            raise
        told = f"cannot be made ({type(error).__name__}: {in_one_line(error)})"
        said = f"{name}: {advice(error) or told}"
        raise EnvironmentFailed(said, has_traceback=not advice(error)) from error
    if hasattr(thing, "close"):
        watch.close(thing.close)
    return seen


def describe(
    name: str, make: Callable[..., Any], options: Mapping[str, Any], workers: Workers = "sync"
) -> GymnasiumEnv:
    """Make one to see what it is like."""
    many = {"num_envs": 1} if makes_vectors(make) else {}
    library()
    (size, action, picture), fixed = made(
        name,
        lambda: make(**many, **options),
        lambda trial: (spaces_of(name, trial), sees_a_box(trial)),
    )
    made_by: Any = (make, dict(options), workers)
    return GymnasiumEnv(name, size, action, *made_by, picture=picture, fixed_size=fixed)


def sees_a_box(trial: Any) -> bool:
    """Whether one array holds what it sees."""
    space = getattr(trial, "observation_space", None)
    return isinstance(space, library().spaces.Box)


def spaces_of(name: str, trial: Any) -> tuple[int, Discrete | Continuous, Any]:
    """The size of an observation, what an action is, and the shape of pictures."""
    spaces = library().spaces
    seen = getattr(trial, "single_observation_space", getattr(trial, "observation_space", None))
    done = getattr(trial, "single_action_space", getattr(trial, "action_space", None))
    for what, space in (("observation", seen), ("action", done)):
        if type(space).__module__.partition(".")[0] == "gym":
            old = f"its {what}_space is of the package gym"
            raise SlacklineError(f"{name}: {OLD_API.format(sign=old)}")
        if not isinstance(space, spaces.Space):
            raise SlacklineError(
                f"{name}: has no {what}_space; it must be a gymnasium.Env or a VectorEnv, "
                f"and is a {type(trial).__name__}"
            )
    return observation_size(name, seen), action_of(name, done), picture_of(seen)


def gymnasium_ids() -> list[str]:
    """Of all environments that are registered."""
    return list(library().envs.registry)


def word_for(make: Callable[..., Any]) -> str:
    """`module:function` where another process finds it by that, else only what it is called."""
    name = getattr(make, "__qualname__", type(make).__name__)
    module = getattr(make, "__module__", None)
    if module in (None, "__main__") or not name.isidentifier():
        return getattr(make, "__name__", name).strip("<>")
    return f"{module}:{name}"


def maker(env_id: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        return library().make(env_id, **options)

    return make


def drawing(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, but of environments that draw themselves; one that takes no render_mode is expected
    to make such by itself."""

    @functools.wraps(make)
    def made(**options: Any) -> Any:
        mode = {"render_mode": "rgb_array"} if takes(make, "render_mode") else {}
        return make(**mode | options)

    return made


def takes(make: Callable[..., Any], option: str) -> bool:
    """Whether a function has a parameter of that name, or takes any."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == option or p.kind is p.VAR_KEYWORD for p in parameters)


def makes_vectors(make: Callable[..., Any]) -> bool:
    try:
        return "num_envs" in inspect.signature(make).parameters
    except (TypeError, ValueError):
        return False


def time_limit(env: Any) -> int | None:
    """That of its registration, or of a wrapper around an environment that is not registered."""
    spec, wrapper = getattr(env, "spec", None), library().wrappers.TimeLimit
    if spec is not None and spec.max_episode_steps is not None:
        return spec.max_episode_steps
    while env is not None and not isinstance(env, wrapper):
        env = getattr(env, "env", None)
    return None if env is None else env._max_episode_steps


SUPPORTED = (
    "supported are Box observations, vectors or pictures (and Dict, Tuple, Discrete, "
    "MultiDiscrete or MultiBinary ones, flattened)"
)

SMALLEST_SIDE = 16
"""Bytes in fewer rows or columns than this are not taken for a picture."""


def picture_of(space: Any) -> tuple[int, int, int] | None:
    """(H, W, C) of a space of pictures: all bytes, in a plane, or in planes first or last."""
    if not isinstance(space, library().spaces.Box) or space.dtype != np.uint8:
        return None
    if np.min(space.low) != 0 or np.max(space.high) != 255:
        return None
    shape = space.shape
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) != 3:
        return None
    if colours_first(shape):
        shape = (*shape[1:], shape[0])
    height, width, colours = map(int, shape)
    return (height, width, colours) if min(height, width) >= SMALLEST_SIDE else None


def colours_first(shape: tuple[int, ...]) -> bool:
    """There are fewer colours than rows or columns."""
    return shape[0] < shape[2]


def observation_size(name: str, space: Any) -> int:
    spaces = library().spaces
    plain = spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary

    def supported(part: Any) -> bool:
        if isinstance(part, spaces.Dict | spaces.Tuple):
            parts = part.spaces.values() if isinstance(part, spaces.Dict) else part.spaces
            return all(map(supported, parts))
        return isinstance(part, plain)

    if not supported(space) or not spaces.flatdim(space):
        raise SlacklineError(f"{name}: its observation space is {_brief(space)}; {SUPPORTED}")
    return int(spaces.flatdim(space))


def action_of(name: str, space: Any) -> Discrete | Continuous:
    spaces = library().spaces
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        if not space.is_bounded():
            raise SlacklineError(
                f"{name}: its action space {_brief(space)} has no bounds; wrap the environment in "
                "gymnasium.wrappers.RescaleAction or give the Box finite bounds"
            )
        return Continuous(int(np.prod(space.shape)), _bound(space.low), _bound(space.high))
    raise SlacklineError(
        f"{name}: its action space is {_brief(space)}; supported are Discrete, and Box of floats "
        "with finite bounds"
    )


def observer(space: Any) -> Callable[[Any], np.ndarray]:
    """What turns a batch of the space's observations into float32 rows (N, size), or into pictures
    (N, H, W, C) of bytes."""
    gym, picture = library(), picture_of(space)
    if picture is not None:
        if len(space.shape) == 3 and colours_first(space.shape):
            return lambda seen: np.array(np.moveaxis(_bytes(seen), 1, -1), order="C")
        return lambda seen: np.array(_bytes(seen)).reshape(len(seen), *picture)
    if isinstance(space, gym.spaces.Box):
        # A copy: a vector made with copy=False writes its next observations over these.
        return lambda seen: np.array(seen, np.float32).reshape(len(seen), -1)

    def rows(seen: Any) -> np.ndarray:
        each = gym.vector.utils.iterate(gym.vector.utils.batch_space(space, _length(seen)), seen)
        return np.stack([np.asarray(gym.spaces.flatten(space, x), np.float32) for x in each])

    return rows


def actor(space: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What turns our actions into the space's: numbers from its start, or of its shape."""
    if isinstance(space, library().spaces.Discrete):
        return lambda actions: np.asarray(actions, space.dtype) + space.start

    low, high = space.low, space.high

    def within(actions: np.ndarray) -> np.ndarray:
        shaped = np.reshape(actions, (-1, *space.shape))
        within = np.minimum(np.maximum(shaped, low), high)  # rounding, no more
        return within.astype(space.dtype, copy=False)

    return within


def misfit(space: Any, seen: Any) -> str:
    """How an observation differs from what its space says, "" if it fits."""
    spaces = library().spaces
    if not isinstance(space, spaces.Box):
        fits = space.contains(seen)
        return "" if fits else "an observation that its observation_space does not contain"
    try:
        found = np.asarray(seen)
    except ValueError:
        return "an observation whose rows have different lengths"
    if found.shape != space.shape:
        return f"an observation of shape {found.shape}; its observation_space says {space.shape}"
    if not np.can_cast(found.dtype, space.dtype, "same_kind"):
        return f"an observation of {found.dtype}; its observation_space says {space.dtype}"
    return ""


def _bytes(seen: Any) -> np.ndarray:
    """Pictures as they are: numbers between 0 and 1 would all be dark."""
    found = np.asarray(seen)
    if found.dtype != np.uint8:
        raise Misbehaved(
            f"returned pictures of {found.dtype}; its observation_space says uint8, 0 to 255"
        )
    return found


def _bound(bounds: np.ndarray) -> float | tuple[float, ...]:
    """One number where all are the same."""
    numbers = tuple(float(x) for x in bounds.reshape(-1))
    return numbers[0] if len(set(numbers)) == 1 else numbers


def _length(seen: Any) -> int:
    while isinstance(seen, Mapping | tuple):
        seen = next(iter(seen.values())) if isinstance(seen, Mapping) else seen[0]
    return len(seen)


def _alone(seen: Any) -> Any:
    """One observation as a batch of one."""
    if isinstance(seen, Mapping):
        return {key: _alone(value) for key, value in seen.items()}
    if isinstance(seen, tuple):
        return tuple(map(_alone, seen))
    return np.asarray(seen)[None]


def _brief(space: Any) -> str:
    return " ".join(str(space).split())[:200]
