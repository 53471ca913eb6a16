"""The score table: one row per episode, seed × variation × candidate × episode."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from slackline.adapt.kshot import KShot
from slackline.errors import SlacklineError
from slackline.io.files import refuse_irregular, write_atomic
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation

SCHEMA = pl.Schema(
    {
        "suite": pl.String,
        "method": pl.String,
        "seed": pl.Int64,
        "variation": pl.String,
        "shots": pl.Int64,
        "phase": pl.Enum(["select", "score"]),
        "candidate": pl.Int64,
        "z": pl.List(pl.Float32),
        "episode": pl.Int64,
        "return": pl.Float32,
    }
)
"""`suite`: whose variations they are, which need not be the one trained on.
`phase`: the episode helped to choose ("select") or measured the chosen one ("score")."""


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


def read_scores(path: Path) -> pl.DataFrame:
    """The score table of a run."""
    refuse_irregular(path)
    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise SlacklineError(f"{path}: is corrupt or not a parquet file ({reason})") from None
    if table.schema != SCHEMA:
        raise SlacklineError(f"{path}: is not a slackline score table (its columns differ)")
    return table


def merge_scores(path: Path, new: pl.DataFrame) -> pl.DataFrame:
    """Add rows to a run's table, replacing what it had for the same suite, variation and shots."""
    if path.exists():
        old = read_scores(path)
        new = pl.concat([old.join(new, on=["suite", "variation", "shots"], how="anti"), new])
    buffer = io.BytesIO()
    new.write_parquet(buffer)
    write_atomic(path, buffer.getvalue())
    return new
