"""Adam for the networks of an agent, the anchors' in the coordinates of their movement."""

from __future__ import annotations

from typing import Any

import optax

from slackline.algorithms.base import AlgorithmConfig
from slackline.methods.movement import Movement


def adams(config: AlgorithmConfig, movement: Movement) -> tuple[optax.GradientTransformation, ...]:
    """Adam on clipped gradients, for the policy, the critic and the auxiliary network."""
    clip: Any = config.max_grad_norm
    rates = (config.policy_lr, config.critic_lr, config.discriminator_lr)
    policy, *others = (
        optax.chain(optax.clip_by_global_norm(clip), optax.adam(rate)) for rate in rates
    )
    return in_coordinates(policy, movement), *others


def in_coordinates(
    adam: optax.GradientTransformation, movement: Movement
) -> optax.GradientTransformation:
    """Adam of the anchors, in the coordinates that their movement has them updated in."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        updates, state = adam.update(movement.gradients(updates), state, params)
        return movement.updates(updates), state

    return optax.GradientTransformation(adam.init, update)


def descend(
    adam: optax.GradientTransformation, gradient: Any, network: Any, memory: Any
) -> tuple[Any, Any]:
    """One step: (the network, the optimiser's memory)."""
    updates, memory = adam.update(gradient, memory)
    return optax.apply_updates(network, updates), memory
