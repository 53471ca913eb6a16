"""CartPole: balance a pole on a cart by pushing left or right.

The physics of Gymnasium's CartPole-v1, written here rather than taken from gymnax because gymnax
stores the derived masses as fields (a changed pole would keep the old ones) and pulls in flax and
orbax. The tests replay it against Gymnasium step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from slackline.envs.api import Discrete, Env
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
