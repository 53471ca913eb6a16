"""CartPole: balance a pole on a cart by pushing left or right.

The physics of Gymnasium's CartPole-v1, written here rather than taken from gymnax because gymnax
stores the derived masses as fields (a changed pole would keep the old ones) and pulls in flax and
orbax. The tests replay it against Gymnasium step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Discrete, Env
from slackline.envs.view import Box, Mechanism, Part, Rod, View
from slackline.types import Array


class CartPoleParams(NamedTuple):
    """Physical constants; the derived quantities are properties and so can never be stale."""

    gravity: float | Array = 9.8
    cart_mass: float | Array = 1.0
    pole_mass: float | Array = 0.1
    length: float | Array = 0.5
    """Half of the pole's length, as in Gymnasium."""
    force: float | Array = 10.0
    """The push of one action, in newtons."""
    time_step: float | Array = 0.02
    max_angle: float | Array = 12 * 2 * 3.141592653589793 / 360
    max_position: float | Array = 2.4

    @property
    def total_mass(self) -> float | Array:
        return self.cart_mass + self.pole_mass

    @property
    def pole_moment(self) -> float | Array:
        return self.pole_mass * self.length


class CartPoleState(NamedTuple):
    position: Array
    velocity: Array
    angle: Array
    angular_velocity: Array


class CartPole(Env):
    """Observation: the four entries of the state. Reward: 1 for every step."""

    observation_size = 4
    action = Discrete(2)

    def default_params(self) -> CartPoleParams:
        return CartPoleParams()

    def reset(self, key: Array, params: CartPoleParams) -> tuple[Array, CartPoleState]:
        observation = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
        return observation, CartPoleState(*observation)

    def step(
        self, key: Array, state: CartPoleState, action: Array, params: CartPoleParams
    ) -> tuple[Array, CartPoleState, Array, Array]:
        force = jnp.where(action == 1, params.force, -params.force)
        cos, sin = jnp.cos(state.angle), jnp.sin(state.angle)
        push = (force + params.pole_moment * state.angular_velocity**2 * sin) / params.total_mass
        angular_acceleration = (params.gravity * sin - cos * push) / (
            params.length * (4.0 / 3.0 - params.pole_mass * cos**2 / params.total_mass)
        )
        acceleration = push - params.pole_moment * angular_acceleration * cos / params.total_mass
        state = CartPoleState(
            position=state.position + params.time_step * state.velocity,
            velocity=state.velocity + params.time_step * acceleration,
            angle=state.angle + params.time_step * state.angular_velocity,
            angular_velocity=state.angular_velocity + params.time_step * angular_acceleration,
        )
        fallen = (jnp.abs(state.angle) > params.max_angle) | (
            jnp.abs(state.position) > params.max_position
        )
        return jnp.stack(state), state, jnp.ones(()), fallen

    def view(self) -> View:
        window = Box(-2.9, -0.5, 2.9, 2.5)
        return View(Mechanism(window, parts), lambda params: float(params.time_step))


def parts(params: CartPoleParams, state: CartPoleState) -> list[Part]:
    """A cart on its rail between the two stops, and its pole."""
    stop, x, angle = float(params.max_position), float(state.position), float(state.angle)
    long, hinge = 2.0 * float(params.length), (x, 0.42)
    tip = (x + long * np.sin(angle), 0.42 + long * np.cos(angle))
    return [
        Part("ground", Box(-stop, -0.03, stop, 0.03)),
        *(Part("stop", Box(end - 0.04, -0.16, end + 0.04, 0.16)) for end in (-stop, stop)),
        *(Part("wheel", Rod((x + s, 0.08), (x + s, 0.08), 0.09)) for s in (-0.22, 0.22)),
        Part("far", Box(x - 0.4, 0.1, x + 0.4, 0.42), ("cart_mass", "force")),
        Part("near", Rod(hinge, tip, 0.055), ("pole_mass", "length")),
        Part("joint", Rod(hinge, hinge, 0.05)),
    ]
