"""Any environment with continuous actions, on hardware that is not quite in order.

What is changed here is no number of a simulator: motors that are weak or late, and sensors that
are noisy or biased. With the standard parameters nothing is, and the environment behaves exactly
as the one inside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from slackline.envs.api import Continuous, Env, Params, State, whole
from slackline.envs.view import View
from slackline.errors import SlacklineError
from slackline.types import Array

MAX_LATENCY = 3
"""Steps that an action may take to reach the motors."""

NOISE = 0x5E4502
"""Folded into a step's key for the sensors' noise; the environment inside has the key itself."""


class ImpairedParams(NamedTuple):
    """Of the environment inside, then of its motors and sensors."""

    inner: Params
    gains: Any
    """(A,) that multiplies the action: 1 in order, 0 dead."""
    latency: Any
    """Steps from 0 to `MAX_LATENCY` by which actions reach the motors late, an int32."""
    noise: Any
    """(observation_size,) standard deviation of the noise of every sensor."""
    bias: Any
    """(observation_size,) that is added to the observation."""


class ImpairedState(NamedTuple):
    inner: State
    past: Array
    """(MAX_LATENCY, A) actions of the last steps, newest first; none before an episode began."""


@dataclass(frozen=True)
class Impaired(Env):
    """The reward is the inner environment's for what reached the motors."""

    env: Env

    def __post_init__(self) -> None:
        if not isinstance(self.env.action, Continuous):
            raise SlacklineError(
                f"actions of {type(self.env).__name__} are {self.env.action}; motors need "
                "continuous ones"
            )

    @property
    def reads_elements(self) -> bool:  # type: ignore[override]
        return self.env.reads_elements

    @property
    def observation_size(self) -> int:  # type: ignore[override]
        return self.env.observation_size

    @property
    def action(self) -> Continuous:  # type: ignore[override]
        assert isinstance(self.env.action, Continuous)
        return self.env.action

    def time_limit(self, params: ImpairedParams, horizon: int) -> int | Array:
        return self.env.time_limit(params.inner, horizon)

    def view(self) -> View | None:
        inside = self.env.view()
        if inside is None:
            return None
        return replace(inside, unwrap=lambda wrapped: inside.unwrap(wrapped.inner))

    def default_params(self) -> ImpairedParams:
        # NumPy's arrays are known while tracing.
        sensors = np.zeros(self.observation_size, np.float32)
        gains = np.ones(self.action.size, np.float32)
        return ImpairedParams(self.env.default_params(), gains, np.int32(0), sensors, sensors)

    def reset(self, key: Array, params: ImpairedParams) -> tuple[Array, ImpairedState]:
        observation, inner = self.env.reset(key, params.inner)
        idle = jnp.clip(jnp.zeros(self.action.size), *self.bounds)
        past = jnp.repeat(idle[None], MAX_LATENCY, axis=0)
        return sensed(key, observation, params), ImpairedState(inner, past)

    def step(
        self, key: Array, state: ImpairedState, action: Array, params: ImpairedParams
    ) -> tuple[Array, ImpairedState, Array, Array]:
        delivered = arriving(action, state.past, params.latency) * whole(params.gains)
        observation, inner, reward, terminated = self.env.step(
            key, state.inner, delivered, params.inner
        )
        past = jnp.concatenate([action[None], state.past[:-1]])
        return sensed(key, observation, params), ImpairedState(inner, past), reward, terminated

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest action, (A,)."""
        return tuple(
            np.broadcast_to(np.asarray(bound, np.float32), (self.action.size,))
            for bound in (self.action.low, self.action.high)
        )  # type: ignore[return-value]


def arriving(action: Array, past: Array, latency: Any) -> Array:
    """The action (A,) that reaches the motors now: this one, or one of the past."""
    for steps in range(1, MAX_LATENCY + 1):
        action = jnp.where(latency == steps, past[steps - 1], action)
    return action


def sensed(key: Array, observation: Array, params: ImpairedParams) -> Array:
    """What the sensors make of an observation."""
    if not known_zero(params.noise):
        noise = jax.random.normal(jax.random.fold_in(key, NOISE), observation.shape)
        observation = observation + whole(params.noise) * noise
    return observation + whole(params.bias)


def known_zero(numbers: Any) -> bool:
    """Whether an array is all zeros and nothing of it is traced."""
    if isinstance(numbers, Tracer) or np.asarray(numbers).dtype == object:
        return False
    return not np.any(numbers)
