"""Pendulum: swing a pendulum up and hold it there with a motor too weak to lift it at once.

The physics of Gymnasium's Pendulum-v1. The tests replay it against Gymnasium step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Continuous, Discrete, Env
from slackline.envs.view import Box, Mechanism, Part, Rod, View
from slackline.types import Array

MAX_TORQUE = 2.0
"""The motor's limit in N·m; stronger actions are cut to it."""


class PendulumParams(NamedTuple):
    """Physical constants."""

    mass: float | Array = 1.0
    length: float | Array = 1.0
    gravity: float | Array = 10.0
    time_step: float | Array = 0.05
    max_velocity: float | Array = 8.0


class PendulumState(NamedTuple):
    angle: Array
    """From upright, in [−π, π]."""
    velocity: Array


class Pendulum(Env):
    """Observation: cosine and sine of the angle, the velocity. It never terminates.

    Reward: −(angle² + 0.1 velocity² + 0.001 torque²), of the state before the step.
    The action is the torque itself, or the index of one of `torques`.
    """

    observation_size = 3

    def __init__(self, torques: Sequence[float] | None = None):
        self.torques = None if torques is None else tuple(torques)
        continuous = Continuous(1, -MAX_TORQUE, MAX_TORQUE)
        self.action = continuous if torques is None else Discrete(len(torques))

    def default_params(self) -> PendulumParams:
        return PendulumParams()

    def reset(self, key: Array, params: PendulumParams) -> tuple[Array, PendulumState]:
        angle_key, velocity_key = jax.random.split(key)
        angle = jax.random.uniform(angle_key, minval=-jnp.pi, maxval=jnp.pi)
        state = PendulumState(angle, jax.random.uniform(velocity_key, minval=-1.0, maxval=1.0))
        return observe(state), state

    def step(
        self, key: Array, state: PendulumState, action: Array, params: PendulumParams
    ) -> tuple[Array, PendulumState, Array, Array]:
        torque = action[0] if self.torques is None else jnp.array(self.torques)[action]
        torque = jnp.clip(torque, -MAX_TORQUE, MAX_TORQUE)
        cost = state.angle**2 + 0.1 * state.velocity**2 + 0.001 * torque**2
        acceleration = 1.5 * params.gravity / params.length * jnp.sin(state.angle) + (
            3.0 * torque / (params.mass * params.length**2)
        )
        velocity = state.velocity + params.time_step * acceleration
        velocity = jnp.clip(velocity, -params.max_velocity, params.max_velocity)
        angle = state.angle + params.time_step * velocity
        turns = jnp.round(angle / (2.0 * jnp.pi))
        state = PendulumState(angle - 2.0 * jnp.pi * turns, velocity)
        return observe(state), state, -cost, jnp.zeros((), bool)

    def view(self) -> View:
        window = Box(-1.9, -1.75, 1.9, 1.75)
        return View(Mechanism(window, parts), lambda params: float(params.time_step))


def parts(params: PendulumParams, state: PendulumState) -> list[Part]:
    """A rod on a pivot; the ring is where its tip should be."""
    length, angle = float(params.length), float(state.angle)
    # Gymnasium counts the angle against the clock from upright.
    tip, pivot, above = (-length * np.sin(angle), length * np.cos(angle)), (0.0, 0.0), (0.0, length)
    return [
        Part("target", Rod(above, above, 0.15)),
        Part("near", Rod(pivot, tip, 0.1), ("mass", "length")),
        Part("joint", Rod(pivot, pivot, 0.05)),
    ]


def observe(state: PendulumState) -> Array:
    return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.velocity])
