"""What an adaptation found, as rows of the store's score table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from slackline.adapt.kshot import KShot
from slackline.store.scores import SCHEMA
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation


def score_table(
    found: KShot,
    subspaces: Sequence[Subspace],
    suite: Suite,
    variations: Sequence[Variation],
    shots: int,
) -> pl.DataFrame:
    """The rows of one adaptation of many seeds to many variations of a suite."""
    rows = partial(_rows, found, subspaces, suite, variations, shots)
    num_seeds, num_variations, num_candidates, episodes = found.returns.shape
    s, v, k, m = np.indices((num_seeds, num_variations, num_candidates, episodes)).reshape(4, -1)
    select = rows("select", s, v, k, m, found.returns.ravel())
    s, v, m = np.indices(found.scores.shape).reshape(3, -1)
    k = found.chosen[s, v]
    return pl.concat([select, rows("score", s, v, k, m, found.scores.ravel())])


def _rows(
    found: KShot,
    subspaces: Sequence[Subspace],
    suite: Suite,
    variations: Sequence[Variation],
    shots: int,
    phase: str,
    s: np.ndarray,
    v: np.ndarray,
    k: np.ndarray,
    m: np.ndarray,
    returns: np.ndarray,
) -> pl.DataFrame:
    names = np.array([variation.name for variation in variations])
    seeds = np.array([subspace.seed for subspace in subspaces])
    columns = {
        "suite": pl.repeat(suite.name, len(s), eager=True),
        "method": pl.repeat(subspaces[0].method.name, len(s), eager=True),
        "seed": seeds[s],
        "variation": names[v],
        "shots": np.full(len(s), shots),
        "phase": pl.repeat(phase, len(s), eager=True),
        "candidate": k,
        "z": pl.Series(found.candidates.tolist(), dtype=SCHEMA["z"]).gather(k),
        "episode": m,
        "return": returns,
    }
    return pl.DataFrame(columns, schema=SCHEMA)
