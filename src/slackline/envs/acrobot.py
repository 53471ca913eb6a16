"""Acrobot: swing the tip of a two-link arm above a line by turning the joint between the links.

The physics of Gymnasium's Acrobot-v1 ("book" dynamics, Runge–Kutta of order four). The tests replay
it against Gymnasium step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Discrete, Env
from slackline.envs.view import Box, Mechanism, Part, Rod, View
from slackline.types import Array


class AcrobotParams(NamedTuple):
    """Physical constants. Both links are alike, as in every variation of Packer & Gao."""

    mass: float | Array = 1.0
    """Of each link."""
    length: float | Array = 1.0
    """Of each link (the dynamics only see the first's); the centre of mass stays where it is."""
    inertia: float | Array = 1.0
    """Moment of inertia of each link."""
    centre: float | Array = 0.5
    """Distance from a link's joint to its centre of mass."""
    gravity: float | Array = 9.8
    torque: float | Array = 1.0
    """Of one action; the three actions are −torque, 0 and +torque."""
    time_step: float | Array = 0.2
    max_velocity_1: float | Array = 4 * 3.141592653589793
    max_velocity_2: float | Array = 9 * 3.141592653589793


class AcrobotState(NamedTuple):
    """Angles from hanging down, the second relative to the first link; and their velocities."""

    angle_1: Array
    angle_2: Array
    velocity_1: Array
    velocity_2: Array


class Acrobot(Env):
    """Observation: cosine and sine of both angles, both velocities.

    Reward: −1 for every step but the one that reaches the line, which gives 0.
    """

    observation_size = 6
    action = Discrete(3)

    def default_params(self) -> AcrobotParams:
        return AcrobotParams()

    def reset(self, key: Array, params: AcrobotParams) -> tuple[Array, AcrobotState]:
        state = AcrobotState(*jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1))
        return observe(state), state

    def step(
        self, key: Array, state: AcrobotState, action: Array, params: AcrobotParams
    ) -> tuple[Array, AcrobotState, Array, Array]:
        torque = (action - 1).astype(jnp.float32) * params.torque
        moved = integrate(state, torque, params)
        state = AcrobotState(
            angle_1=wrap(moved.angle_1),
            angle_2=wrap(moved.angle_2),
            velocity_1=jnp.clip(moved.velocity_1, -params.max_velocity_1, params.max_velocity_1),
            velocity_2=jnp.clip(moved.velocity_2, -params.max_velocity_2, params.max_velocity_2),
        )
        height = -jnp.cos(state.angle_1) - jnp.cos(state.angle_1 + state.angle_2)
        reached = height > 1.0
        return observe(state), state, jnp.where(reached, 0.0, -1.0), reached

    def view(self) -> View:
        window = Box(-2.4, -2.25, 2.4, 2.25)
        return View(Mechanism(window, parts), lambda params: float(params.time_step))


def parts(_: AcrobotParams, state: AcrobotState) -> list[Part]:
    """Two links below a pivot and the line to be reached."""
    first = float(state.angle_1)
    second = first + float(state.angle_2)
    # The end is judged with links of one metre, whatever their length is in the dynamics.
    pivot, elbow = (0.0, 0.0), (np.sin(first), -np.cos(first))
    tip = (elbow[0] + np.sin(second), elbow[1] - np.cos(second))
    fields = ("mass", "length", "inertia", "centre")
    return [
        Part("goal", Box(-2.4, 0.985, 2.4, 1.015)),
        Part("far", Rod(pivot, elbow, 0.11), fields),
        Part("near", Rod(elbow, tip, 0.09), fields),
        *(Part("joint", Rod(joint, joint, 0.05)) for joint in (pivot, elbow)),
    ]


def observe(state: AcrobotState) -> Array:
    angles = (state.angle_1, state.angle_2)
    waves = [wave(angle) for angle in angles for wave in (jnp.cos, jnp.sin)]
    return jnp.stack([*waves, state.velocity_1, state.velocity_2])


def wrap(angle: Array) -> Array:
    """The same angle in [−π, π]; exact where it already is."""
    return angle - 2.0 * jnp.pi * jnp.round(angle / (2.0 * jnp.pi))


def integrate(state: AcrobotState, torque: Array, params: AcrobotParams) -> AcrobotState:
    """One Runge–Kutta step under a constant torque."""
    dt = params.time_step

    def after(slope: AcrobotState, time: float | Array) -> AcrobotState:
        return AcrobotState(*(x + time * dx for x, dx in zip(state, slope, strict=True)))

    k1 = derivative(state, torque, params)
    k2 = derivative(after(k1, 0.5 * dt), torque, params)
    k3 = derivative(after(k2, 0.5 * dt), torque, params)
    k4 = derivative(after(k3, dt), torque, params)
    slopes = zip(k1, k2, k3, k4, strict=True)
    return after(AcrobotState(*(a + 2.0 * b + 2.0 * c + d for a, b, c, d in slopes)), dt / 6.0)


def derivative(state: AcrobotState, torque: Array, params: AcrobotParams) -> AcrobotState:
    """Equations of motion of Sutton & Barto's book, with both links' m, l_c and I equal.

    θ̈₂ = (τ + (d₂/d₁) φ₁ − m l l_c θ̇₁² sin θ₂ − φ₂) / (m l_c² + I − d₂²/d₁)
    θ̈₁ = −(d₂ θ̈₂ + φ₁) / d₁
    """
    angle_1, angle_2, velocity_1, velocity_2 = state
    mass, length, centre, inertia = params.mass, params.length, params.centre, params.inertia
    coupling = mass * length * centre
    own = mass * centre**2 + inertia
    d2 = own + coupling * jnp.cos(angle_2)
    d1 = own + d2 + mass * length**2 + coupling * jnp.cos(angle_2)
    whirl = coupling * jnp.sin(angle_2)
    phi_2 = mass * centre * params.gravity * jnp.sin(angle_1 + angle_2)
    phi_1 = (
        -whirl * (velocity_2**2 + 2.0 * velocity_2 * velocity_1)
        + mass * (centre + length) * params.gravity * jnp.sin(angle_1)
        + phi_2
    )
    pull = torque + d2 / d1 * phi_1 - whirl * velocity_1**2 - phi_2
    acceleration_2 = pull / (own - d2**2 / d1)
    acceleration_1 = -(d2 * acceleration_2 + phi_1) / d1
    return AcrobotState(velocity_1, velocity_2, acceleration_1, acceleration_2)
