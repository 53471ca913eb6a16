"""The training return along z, measured once: what adapters start from, and the default z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from slackline.adapt.adapter import MAX_CANDIDATES
from slackline.adapt.kshot import Player, player
from slackline.errors import SlacklineError
from slackline.methods.training_returns import TrainingReturns
from slackline.subspace import Subspace
from slackline.suites.suite import TRAIN, Suite

NUM_POINTS, EPISODES, HOST_EPISODES = 9, 10, 3
"""z's of a line that are measured (elsewhere more: `Latent.cover`), by so many episodes each;
environments outside JAX step slowly."""


def with_training_returns(subspaces: Sequence[Subspace], suite: Suite) -> list[Subspace]:
    """The subspaces with what each z returns on the environment of `suite` that they were trained
    on, unless they have it already, are one policy, or it cannot be played."""
    latent = subspaces[0].method.latent
    if not latent.has_choice or all(subspace.training is not None for subspace in subspaces):
        return list(subspaces)
    z = latent.cover(NUM_POINTS)
    episodes = EPISODES if suite.env.in_jax else HOST_EPISODES
    try:
        play = player(subspaces, [TRAIN], suite, len(z) * episodes)
        returns = _measured(play, z, len(subspaces), episodes)
    except SlacklineError:
        # It needs an environment that only a file names, or broke down. Adapting works without, and
        # whoever plays there next is told.
        return list(subspaces)
    return [
        replace(subspace, training=TrainingReturns.of(z, own))
        for subspace, own in zip(subspaces, returns, strict=True)
    ]


def _measured(play: Player, z: np.ndarray, num_seeds: int, episodes: int) -> np.ndarray:
    """Returns (S, P, M) of episodes that no adaptation has."""
    number = np.repeat(np.arange(len(z)), episodes)
    each = np.broadcast_to(z[number], (num_seeds, 1, len(number), z.shape[1]))
    repeat = np.tile(np.arange(episodes), len(z))
    places = [np.broadcast_to(x, each.shape[:3]) for x in (MAX_CANDIDATES + number, repeat)]
    return play.tried(each, *places).reshape(num_seeds, len(z), episodes)
