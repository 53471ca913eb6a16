"""The score table: one row per episode, seed × variation × candidate × episode."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from slackline.errors import Damaged, SlacklineError, in_one_line
from slackline.io.checksum import BLANK, sealed
from slackline.io.files import insist_on_whole, read_regular, write_atomic

MAX_SCORES = 2**30
"""Bytes of a file."""
MAX_ROWS = 20_000_000

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
        "adapter": pl.String,
        "default_return": pl.Float32,
    }
)
"""`suite`: whose variations they are, which need not be the one trained on.
`shots`: K of the paper's grid; of other adapters the budget of episodes.
`phase`: the episode helped to choose ("select") or measured the chosen one ("score").
`adapter`: which one chose. `default_return`: what the default z returned on the same fresh episode,
if it was played; null otherwise."""

REST = "the policies are not touched by that: delete it and adapt again"
"""What can be done without a table that is damaged."""

EARLIER = {"adapter": pl.lit("grid"), "default_return": pl.lit(None, pl.Float32)}
"""Columns that tables of earlier versions lack, and what they mean there."""


def read_scores(path: Path) -> pl.DataFrame:
    """The score table of a run."""
    content = read_regular(path, MAX_SCORES)
    insist_on_whole(path, content, REST)
    try:
        _insist_on_few_rows(path, content)
        table = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = in_one_line(error)
        raise Damaged(f"{path}: is corrupt or not a parquet file ({reason}); {REST}") from None
    lacking = {name: value for name, value in EARLIER.items() if name not in table.columns}
    table = table.with_columns(**lacking)
    if table.schema != SCHEMA:
        raise SlacklineError(f"{path}: is not a slackline score table (its columns differ)")
    return table


def merge_scores(path: Path, new: pl.DataFrame) -> pl.DataFrame:
    """Add rows to a run's table, replacing what it had for the same suite, variation, shots and
    adapter."""
    if path.exists():
        old = read_scores(path)
        same = ["suite", "variation", "shots", "adapter"]
        new = pl.concat([old.join(new, on=same, how="anti"), new])
    buffer = io.BytesIO()
    new.write_parquet(buffer, metadata={"slackline": BLANK})
    write_atomic(path, sealed(buffer.getvalue(), last=True))
    return new


def _insist_on_few_rows(path: Path, content: bytes) -> None:
    """Refuse what would not fit into memory; the number is in the file's header."""
    rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
    if rows > MAX_ROWS:
        raise SlacklineError(f"{path}: has {rows:,} rows; it must have at most {MAX_ROWS:,}")
