"""Opening a single policy: a fan that begins from one, in the middle of the policy's training."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from slackline.learn.learner import TrainState
from slackline.types import Array


def opened(fresh: TrainState, single: TrainState) -> TrainState:
    """The train state of a fan whose centre is the policy of `single`, both (seeds, ...).

    From `fresh`, the fan as it would begin by itself, come the differences between anchors and the
    first z's. The critic, which now sees z as well, ignores it at first. Adam's memory goes on for
    the centre, its first coordinate (see `Together`), and is empty for what is new.
    """
    mine, its = fresh.networks, single.networks
    networks = mine._replace(
        policy=jax.tree.map(centred_on, mine.policy, its.policy),
        critic=jax.tree.map(padded, mine.critic, its.critic),
        optimisers=jax.tree.map(padded, mine.optimisers, its.optimisers),
    )
    running = single.running._replace(z=fresh.running.z) if single.running else ()
    return single._replace(networks=networks, running=running)


def centred_on(anchors: Array, centre: Array) -> Array:
    """Anchors (seeds, N, ...) moved so that their mean is the one anchor of `centre`; what all
    anchors of a network on pictures share is the same in both."""
    if anchors.shape == centre.shape:
        return centre
    return centre + anchors - jnp.mean(anchors, axis=1, keepdims=True)


def padded(like: Array, x: Array) -> Array:
    """x with zeros behind it, in the shape of `like`."""
    return jnp.pad(x, [(0, new - old) for new, old in zip(like.shape, x.shape, strict=True)])
