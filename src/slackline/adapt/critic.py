"""What the critic predicts of every z before anything is played: V(s0, z), which costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackline.arrays import tree_map
from slackline.errors import SlacklineError
from slackline.networks.mlp import MLP
from slackline.subspace import Subspace

NUM_POINTS = 17
"""z's of a line that are ranked; elsewhere more (`Latent.cover`)."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """z's, the most promising first."""

    z: np.ndarray
    """(P, size)"""
    values: np.ndarray
    """What the critic predicts of each, falling, (P,): discounted, so a ranking, no returns."""


def ranked(line: Subspace, observations: Any) -> Ranking:
    """Rank z's by the mean of V(s0, z) over first observations (num, size), or one (size,)."""
    latent, critic = line.method.latent, critic_of(line)
    seen: Any = np.atleast_2d(np.asarray(observations, np.float32))
    if seen.shape[1:] != line.observation_shape or not np.isfinite(seen).all():
        raise SlacklineError(
            f"observations have shape {np.shape(observations)}; they must be finite numbers, "
            f"{line.observation_shape} or (num, {line.observation_shape[0]})"
        )
    z = latent.cover(NUM_POINTS)
    values = np.array([critic.given(one)(seen).mean(dtype=np.float64) for one in z])
    order = np.argsort(-values, kind="stable")
    return Ranking(z[order], values[order])


def critic_of(line: Subspace) -> MLP:
    """The critic on raw observations, on NumPy."""
    critic: Any = tree_map(np.asarray, line.critic)
    sees_z = line.method.member.latent.size == line.method.latent.size
    if not isinstance(critic, MLP) or not sees_z:
        raise SlacklineError(
            f"method {line.method.name!r} has no critic that sees z, so it cannot rank z's"
        )
    if line.normaliser is None:
        return critic
    return tree_map(np.asarray, line.normaliser).folded_into(critic)
