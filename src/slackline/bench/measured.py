"""The episodes of one method at one K as arrays, axes seed S, variation V, candidate K, episode M.

The score table has a row for every episode; comparing methods is done on these arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from slackline.bench.stats import (
    Comparison,
    RatioOf,
    compare,
    headroom,
    ratio_of,
    score_matrix,
    seed_scores,
    split_halves,
)
from slackline.errors import SlacklineError
from slackline.suites.suite import TRAIN


@dataclass(frozen=True)
class Measured:
    """What one method returned on the changed environments, and on the unchanged one if that was
    played too."""

    changed: np.ndarray
    """Fresh episodes of the chosen z, (S, V)."""
    tried: np.ndarray
    """Selection episodes of every candidate, (S, V, K, M)."""
    train: np.ndarray | None
    """Fresh episodes on the unchanged environment, (S,)."""
    tried_on_train: np.ndarray | None
    """(S, K, M)"""

    @property
    def default(self) -> np.ndarray | None:
        """Scores (S, V) of the default z, for which no episode is spent on the changed environment.

        Each seed's default is the candidate with the best selection return on Train. Its selection
        episodes elsewhere did not choose it, so that they are fair to score it by. Where there is
        only one candidate, its score.
        """
        if self.tried.shape[2] == 1:
            return self.changed
        if self.tried_on_train is None:
            return None
        best = self.tried_on_train.mean(axis=-1).argmax(axis=-1)
        return self.tried.mean(axis=-1)[np.arange(len(best)), :, best]

    @property
    def oracle(self) -> np.ndarray | None:
        """See `split_halves`: (S, V), or None with one selection episode a candidate."""
        halves = split_halves(self.tried)
        return self.changed if halves is not None and self.tried.shape[2] == 1 else halves

    @property
    def by_selection(self) -> np.ndarray:
        """(S, V): the mean of the chosen candidate's own selection episodes, as the paper scores.

        Biased upwards, since the best of several noisy means was chosen by that very number.
        """
        return self.tried.mean(axis=-1).max(axis=-1)

    def of_rows(self, rows: Sequence[int]) -> Measured:
        """The same of some seeds only."""
        picked = (
            None if x is None else x[list(rows)]
            for x in (self.changed, self.tried, self.train, self.tried_on_train)
        )
        return Measured(*picked)  # type: ignore[arg-type]

    @property
    def headroom(self) -> float | None:
        """See `stats.headroom`."""
        return None if self.train is None else headroom(self.train, self.changed)


def measure(scores: pl.DataFrame, variations: Sequence[str]) -> Measured:
    """The arrays of one method's scores at one K, rows by seed."""
    per_seed = seed_scores(scores)
    on_train = per_seed.filter(variation=TRAIN.name).sort("seed")
    if len(on_train) not in (0, per_seed["seed"].n_unique()):
        on_train = on_train.clear()  # some seeds only
    return Measured(
        changed=score_matrix(per_seed, list(variations)),
        tried=selection_returns(scores, variations),
        train=on_train["score"].to_numpy() if len(on_train) else None,
        tried_on_train=selection_returns(scores, [TRAIN.name])[:, 0] if len(on_train) else None,
    )


def selection_returns(scores: pl.DataFrame, variations: Sequence[str]) -> np.ndarray:
    """The selection episodes of one method at one K, (S, V, K, M); where candidates have had
    different numbers of episodes, the first M that all have."""
    tried = scores.filter(pl.col("variation").is_in(variations), phase="select")
    episodes = tried.group_by("seed", "variation", "candidate").len()["len"].min() or 0
    tried = tried.filter(pl.col("episode") < episodes)
    sizes = [tried[name].n_unique() for name in ("seed", "candidate")]
    shape = (sizes[0], len(variations), sizes[1], int(episodes))  # type: ignore[arg-type]
    if len(tried) != np.prod(shape):
        raise SlacklineError(
            f"{scores['method'][0]} on {scores['suite'][0]} at K = {scores['shots'][0]}: "
            "selection episodes are missing from its scores; adapt it again: slackline adapt RUN"
        )
    place = pl.col("variation").replace_strict(list(variations), range(len(variations)))
    ordered = tried.sort("seed", place, "candidate", "episode")
    return ordered["return"].cast(pl.Float64).to_numpy().reshape(shape)


class BesideSingle(NamedTuple):
    """A method beside the single policy."""

    of: RatioOf | None
    """What the ratios are of."""
    changed: Comparison
    """On the changed environments, after adapting."""
    default: Comparison | None
    """On the changed environments, with the default z."""
    train: Comparison | None
    """On the unchanged environment."""


def beside_single(method: Measured, single: Measured, *, paired: bool = False) -> BesideSingle:
    """Compare a method with the single policy; `paired` row by row, where each seed's began as the
    single policy of the same row.

    Whether returns are rewards or costs is seen from the signs of both, on the changed and the
    unchanged environments together, so that all ratios of a row are of the same.
    """
    trains = [each.train for each in (method, single) if each.train is not None]
    of = ratio_of(method.changed, single.changed, *trains)
    default, train = method.default, None
    if method.train is not None and single.train is not None:
        train = compare(method.train[:, None], single.train[:, None], of, paired=paired)
    return BesideSingle(
        of=of,
        changed=compare(method.changed, single.changed, of, paired=paired),
        default=(None if default is None else compare(default, single.changed, of, paired=paired)),
        train=train,
    )
