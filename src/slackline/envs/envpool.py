"""Any EnvPool environment, by its id. EnvPool itself is imported on first use."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slackline.envs.camera import Camera
from slackline.envs.gymnasium import (
    action_of,
    actor,
    made,
    observation_size,
    observer,
    picture_of,
)
from slackline.envs.host import HostEnv, HostParams, Pool, Stepped
from slackline.envs.procgen import load_procgen
from slackline.errors import SlacklineError, needed, spelt
from slackline.settings import query


def library() -> Any:
    return needed("envpool", "EnvPool environments need EnvPool", "envpool")


@dataclass(frozen=True)
class EnvPoolEnv(HostEnv):
    """An environment of EnvPool's and the options it is always made with."""

    env_id: str = field(compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    camera: Camera | None = field(default=None, compare=False, kw_only=True)
    """What films them, if anything does."""

    def default_params(self) -> HostParams:
        return HostParams(self.options)

    def filmed(self, camera: Camera) -> EnvPoolEnv:
        return replace(self, camera=camera)

    def open(self, params: HostParams, seeds: Sequence[int], horizon: int) -> Pool:
        drawn = {} if self.camera is None else {"render_mode": "rgb_array"}
        return EnvPoolPool(make(self.env_id, seeds, drawn | dict(params.options)), self.camera)


class EnvPoolPool(Pool):
    """EnvPool would spend a step of an ended episode on its reset; asked to reset by hand, it does
    not, and every step is a real one."""

    def __init__(self, pool: Any, camera: Camera | None = None):
        self.pool, self.num_envs = pool, len(pool.all_env_ids)
        self._camera = camera
        seen, done = spaces_of(pool)
        self._observe, self._act = observer(seen), actor(done)

    def reset(self) -> np.ndarray:
        seen, _ = self.pool.reset()
        if self._camera is not None:
            self._camera.start(self._render)
        return self._observe(seen)

    def step(self, actions: np.ndarray) -> Stepped:
        seen, reward, terminated, truncated, _ = self.pool.step(self._act(actions))
        reached = observation = self._observe(seen)
        truncated = truncated & ~terminated
        if self._camera is not None:
            self._camera.step(self._render, reward)
        ended = np.flatnonzero(terminated | truncated)
        if len(ended):
            observation = reached.copy()
            observation[ended] = self._observe(self.pool.reset(ended.astype(np.int32))[0])
        real = np.ones(self.num_envs, bool)
        return Stepped(reached, reward, terminated, truncated, observation, real)

    def _render(self) -> Any:
        return self.pool.render(self.pool.all_env_ids)


def make(env_id: str, seeds: Sequence[int], options: Mapping[str, Any]) -> Any:
    arguments: Any = dict(env_type="gymnasium", num_envs=len(seeds), seed=list(seeds), **options)
    try:
        return library().make(env_id, **arguments)
    except ImportError as error:
        if "Procgen" not in str(error):
            raise
    load_procgen()
    return library().make(env_id, **arguments)


def spaces_of(pool: Any) -> tuple[Any, Any]:
    """Of observations and actions; EnvPool writes bounds of float32 spaces in float64."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*precision lowered by casting")
        return pool.observation_space, pool.action_space


def envpool(env_id: str, **options: Any) -> EnvPoolEnv:
    """An environment of EnvPool's by its id; `options` are those of `envpool.make`."""
    if not isinstance(env_id, str):
        raise SlacklineError(f"environment is {spelt(env_id)}; it must be an id of EnvPool's")
    name = f"envpool:{env_id}{query(options)}"
    seen, done = made(name, lambda: make(env_id, [0], options), spaces_of)
    return EnvPoolEnv(
        name,
        observation_size(name, seen),
        action_of(name, done),
        env_id,
        dict(options),
        picture=picture_of(seen),
    )


def envpool_ids() -> list[str]:
    """Of all environments that there are."""
    return list(library().list_all_envs())
