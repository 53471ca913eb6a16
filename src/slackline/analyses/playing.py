"""Episodes of many z's on many variations, by adaptation's own players.

Axes, in this order: seed S, variation V, z (candidate) K, episode M.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slackline.adapt.grid import Grid
from slackline.adapt.kshot import (
    MAX_EPISODES,
    Adapted,
    Adapting,
    Player,
    adapt_by,
    player,
    suite_for,
)
from slackline.adapt.trained import with_training_returns
from slackline.analyses.analysis import Subject
from slackline.errors import SlacklineError
from slackline.runtime import set_up_jax
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation


@dataclass(frozen=True)
class Stage:
    """All seeds of a run on some variations. Returns are in the unit the suite is shown in."""

    play: Player
    num_seeds: int
    num_variations: int
    scale: float

    def tried(self, zs: np.ndarray, episodes: int, first: int = 0) -> np.ndarray:
        """Selection returns (S, V, K, M) at z's (S, K, size) or (S, V, K, size), which are the
        `first`-th and following to be tried."""
        if zs.ndim == 3:
            zs = zs[:, None]
        num = zs.shape[2]
        shape = (self.num_seeds, self.num_variations, num * episodes)
        insist_on_few(math.prod(shape))
        number = np.repeat(np.arange(num), episodes)
        each = np.broadcast_to(zs[:, :, number], (*shape, zs.shape[-1]))
        repeat = np.tile(np.arange(episodes), num)
        places = [np.broadcast_to(x, shape) for x in (first + number, repeat)]
        returns = self.play.tried(np.asarray(each, np.float32), *places)
        return self.scale * returns.reshape(*shape[:2], num, episodes)

    def fresh(self, zs: np.ndarray, episodes: int) -> np.ndarray:
        """Returns (S, V, K, M) of z's (S, V, K, size) on fresh episodes, the same for every z."""
        insist_on_few(self.num_seeds * self.num_variations * episodes * zs.shape[2])
        columns = [
            self.play.fresh(np.asarray(zs[:, :, k], np.float32), episodes)
            for k in range(zs.shape[2])
        ]
        return self.scale * np.stack(columns, axis=2)

    def everywhere(self, zs: np.ndarray) -> np.ndarray:
        """z's (K, size) for every seed and variation, (S, V, K, size)."""
        return np.broadcast_to(zs, (self.num_seeds, self.num_variations, *zs.shape))


def stage_of(
    suite: Suite, subspaces: Sequence[Subspace], variations: Sequence[Variation], most: int
) -> Stage:
    """`most` is how many episodes a seed and variation are played at once."""
    set_up_jax()
    play = player(subspaces, variations, suite, most)
    return Stage(play, len(subspaces), len(variations), suite.display_scale)


MOST_FRESH = 10
"""Fresh episodes, where nothing else is said: analyses score far more z's than adaptation does."""


def protocol(
    suite: Suite, shots: int | None, episodes: int | None, score_episodes: int | None
) -> Adapting:
    """What was asked for; what was not is the suite's, with fewer fresh episodes."""
    fresh = min(suite.protocol.score_episodes, MOST_FRESH)
    return Adapting.of(suite.protocol, shots, episodes, score_episodes or fresh)


def adapted(subject: Subject, variations: Sequence[Variation], adapting: Adapting) -> Adapted:
    """Every seed adapted to every variation by the paper's rule, beside its default z. Returns are
    as the store has them."""
    num = len(subject.method.latent.candidates(adapting.shots))
    at_home = subject.suite.name == subject.config.suite
    home = subject.suite if at_home else suite_for(subject.subspaces[0], None)
    return adapt_by(
        Grid(num),
        num * adapting.episodes,
        with_training_returns(subject.subspaces, home),
        variations,
        adapting.score_episodes,
        suite=subject.suite,
        beside_default=True,
    )


def insist_on_few(total: int) -> None:
    if total > MAX_EPISODES:
        raise SlacklineError(
            f"{total:,} episodes would be played at once; at most {MAX_EPISODES:,} fit into "
            "memory: name fewer variations, or try fewer z's"
        )


@dataclass(frozen=True)
class Oracle:
    """The best z of a dense grid, chosen by many episodes and scored on fresh ones."""

    zs: np.ndarray
    """The grid, (K, size)."""
    returns: np.ndarray
    """What it was chosen by, (S, V, K, M)."""
    chosen: np.ndarray
    """(S, V)"""
    scores: np.ndarray
    """Mean return of the chosen z on fresh episodes, (S, V)."""


def oracle(stage: Stage, zs: np.ndarray, episodes: int, first: int) -> Oracle:
    """Try every z of the grid by so many episodes each, which no adaptation could afford."""
    returns = stage.tried(np.broadcast_to(zs, (stage.num_seeds, *zs.shape)), episodes, first)
    chosen = returns.mean(axis=-1).argmax(axis=-1)
    scores = stage.fresh(zs[chosen][:, :, None], episodes)
    return Oracle(zs, returns, chosen, scores.mean(axis=(2, 3)))
