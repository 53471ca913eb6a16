"""What an adaptation found, as rows of the store's score table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from slackline.adapt.adapter import numbered
from slackline.adapt.catalogue import Spending
from slackline.adapt.kshot import Adapted
from slackline.store.scores import SCHEMA
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation


def score_table(
    found: Adapted,
    subspaces: Sequence[Subspace],
    suite: Suite,
    variations: Sequence[Variation],
    spent: Spending,
) -> pl.DataFrame:
    """The rows of one adaptation of many seeds to many variations of a suite: all selection
    episodes, then all fresh ones."""
    parts: dict[str, list[pl.DataFrame]] = {"select": [], "score": []}
    for s, subspace in enumerate(subspaces):
        for v, variation in enumerate(variations):
            head = {
                "suite": suite.name,
                "method": subspace.method.name,
                "seed": subspace.seed,
                "variation": variation.name,
                "shots": spent.shots,
                "adapter": spent.adapter.name,
            }
            for phase, columns in _episodes(found, s, v).items():
                rows = pl.DataFrame(columns).with_columns(
                    phase=pl.lit(phase), **{name: pl.lit(value) for name, value in head.items()}
                )
                parts[phase].append(rows.select(*SCHEMA).cast(SCHEMA))
    return pl.concat(parts["select"] + parts["score"])


def _episodes(found: Adapted, s: int, v: int) -> dict[str, dict[str, pl.Series]]:
    """The columns that differ from episode to episode, by phase."""
    distinct, number, repeat = numbered(found.asked[s, v])
    same = (distinct == found.z[s, v]).all(axis=-1)
    # The default z may win without having been tried.
    winner = int(same.argmax()) if same.any() else len(distinct)
    scores, default = found.scores[s, v], found.default_scores
    z = np.repeat(found.z[s, v][None], len(scores), axis=0)
    beside = None if default is None else default[s, v]
    return {
        "select": _columns(number, found.asked[s, v], repeat, found.returns[s, v], None),
        "score": _columns(np.full(len(scores), winner), z, np.arange(len(scores)), scores, beside),
    }


def _columns(
    candidate: np.ndarray,
    z: np.ndarray,
    episode: np.ndarray,
    returns: np.ndarray,
    default: np.ndarray | None,
) -> dict[str, pl.Series]:
    nothing = pl.Series([None] * len(returns), dtype=pl.Float32)
    return {
        "candidate": pl.Series(candidate, dtype=pl.Int64),
        "z": pl.Series(z.tolist(), dtype=SCHEMA["z"]),
        "episode": pl.Series(episode, dtype=pl.Int64),
        "return": pl.Series(returns.astype(np.float32)),
        "default_return": nothing if default is None else pl.Series(default.astype(np.float32)),
    }
