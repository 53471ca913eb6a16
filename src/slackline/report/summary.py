"""One row a suite and method, from the run folders alone: for programs, and for other documents.

What a name does not say by itself: `label` is what a run sets otherwise than its suite does, and
`single` the label of the single policy that it is compared with ("": nothing is set otherwise;
null: there is none). Returns are in the unit that the suite is shown in. `low` and `high` are 95 %
intervals, `_error` standard errors over seeds, `episodes` the selection episodes of each candidate.
null is what was not measured or would mean nothing.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slackline.bench.measured import beside_single
from slackline.bench.merged import Merged, begun_from, best_single
from slackline.bench.stats import Estimate, Summary, decimals, summarise
from slackline.io.files import write_output
from slackline.methods.catalogue import BASELINE, CATALOGUE
from slackline.report.table import Column, Row, Table
from slackline.report.words import DEFAULT_Z, HEADROOM, ORACLE

TITLE = "Beside the single policy"
CAPTION = (
    "score: mean ± standard error over seeds of the chosen z's, averaged over the suite's changed "
    "environments, on fresh episodes. ratio: to the best single policy of the same suite and "
    "steps, best by its score on the unchanged environment, with a 95 % interval; more than 1 is "
    "better, since of negative returns (costs) it is Single's ÷ the method's; of runs begun from "
    "single, and of noisy copies, it is to the single policies that they were, seed by seed; "
    "where returns lie on both sides of 0, or the interval has no end, the difference instead "
    "(with a sign). train: the same ratio on the unchanged environment. default z: "
    f"{DEFAULT_Z}. adapted − default: what the episodes spent on choosing z added. oracle: "
    f"{ORACLE}. headroom: {HEADROOM}."
)
WORDS = ("suite", "method", "settings")
NUMBERS = (
    *("K", "seeds", "steps", "score", "ratio [95 % CI]", "train", "headroom"),
    *("default z", "adapted − default", "oracle"),
)
"""The table's columns."""


def summary_rows(merged: Sequence[Merged], beside: Path) -> list[dict[str, Any]]:
    """Sorted by suite, method, steps, settings and K. Run folders are named relative to `beside`:
    the folder that the summary is written to."""
    order = list(CATALOGUE)

    def place(each: Merged) -> tuple[Any, ...]:
        method = order.index(each.config.method)
        return (each.suite.name, method, each.config.steps, each.label, each.shots, each.episodes)

    return [summary_row(each, merged, beside) for each in sorted(merged, key=place)]


def summary_row(merged: Merged, among: Sequence[Merged], beside: Path) -> dict[str, Any]:
    """Plain numbers and words; None where something was not measured or would mean nothing."""
    measured = merged.measured
    score = summarise(measured.changed.mean(axis=1))
    train = None if measured.train is None else summarise(measured.train)
    row = {
        "suite": merged.suite.name,
        "method": merged.config.method,
        "label": merged.label,
        "ours": merged.config.method == merged.suite.recommended,
        "seeds": len(merged.config.seeds),
        "steps": merged.config.steps,
        "K": merged.shots,
        "episodes": merged.episodes,
        "score": score.mean,
        "score_error": _error(score),
        "train": train and train.mean,
        "train_error": train and _error(train),
        **_adapting(merged),
        **_beside_single(merged, among),
        "folders": sorted(Path(os.path.relpath(f, beside)).as_posix() for f in merged.folders),
    }
    return {name: _rounded(value) for name, value in row.items()}


def _error(summary: Summary) -> float:
    return summary.standard_error if summary.num_seeds > 1 else math.nan


def _adapting(merged: Merged) -> dict[str, float | None]:
    """What adapting added, and what choosing could add."""
    score, default, oracle = (
        None if matrix is None else matrix.mean(axis=1)
        for matrix in (merged.measured.changed, merged.measured.default, merged.measured.oracle)
    )
    added = None if score is None or default is None else summarise(score - default)
    return {
        "default_score": None if default is None else float(default.mean()),
        "adapted_minus_default": added and added.mean,
        "adapted_minus_default_error": added and _error(added),
        "oracle": None if oracle is None else float(oracle.mean()),
    }


def _beside_single(merged: Merged, among: Sequence[Merged]) -> dict[str, Any]:
    """The ratios, and which single policy they are to: seed by seed the one that a run began as, or
    else the best one; which itself has none."""
    began_as = begun_from(merged, among)
    single = began_as or best_single(merged, among)
    found = None
    if single is not None and (merged.config.method, merged.label) != (BASELINE, single.label):
        paired = began_as is not None
        found = beside_single(merged.measured, single.measured, paired=paired)
    changed, default, train = (
        (found.changed, found.default, found.train) if found else (None, None, None)
    )
    return {
        "single": single and single.label,
        "single_score": single and float(single.measured.changed.mean()),
        "single_seeds": single and len(single.config.seeds),
        "paired": began_as is not None,
        "headroom": single and single.measured.headroom,
        "ratio_of": found and found.of,
        **_named(changed and changed.ratio, "ratio", "low", "high"),
        **_named(changed and changed.difference, "difference", "difference_low", "difference_high"),
        "better": changed and changed.better,
        **_named(train and train.ratio, "train_ratio", "train_low", "train_high"),
        **_named(default and default.ratio, "default_ratio", "default_low", "default_high"),
    }


def _named(estimate: Estimate | None, *names: str) -> dict[str, float | None]:
    return dict(zip(names, estimate or (None, None, None), strict=True))


def _rounded(value: Any) -> Any:
    """Six digits, so that the last ones do not change from machine to machine; no NaN."""
    if not isinstance(value, float):  # NumPy's float64 is one
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def write_summary(rows: list[dict[str, Any]], out: Path) -> Path:
    """A JSON list of rows."""
    return write_output(out, json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def summary_table(rows: list[dict[str, Any]], digits: dict[str, int | None]) -> Table:
    """The rows for people, suites apart; `digits` are the decimals that a suite fixes."""
    by_suite: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_suite[row["suite"]].append(row)
    sections = []
    for suite, own in by_suite.items():
        shown = decimals([row["score"] for row in own], digits[suite])
        sections.append(tuple(Row(tuple(_cells(row, shown))) for row in own))
    words = [Column(name, words=True) for name in WORDS]
    return Table(TITLE, (*words, *map(Column, NUMBERS)), tuple(sections), CAPTION)


def _cells(row: dict[str, Any], digits: int) -> list[str]:
    return [
        row["suite"],
        row["method"] + " (ours)" * row["ours"],
        row["label"],
        f"{row['K']} × {row['episodes']}",
        str(row["seeds"]),
        f"{row['steps']:,}",
        _with_error(row["score"], row["score_error"], digits),
        _times(row, digits),
        _number(row["train_ratio"], 2),
        _number(row["headroom"], 2),
        _number(row["default_score"], digits),
        _with_error(row["adapted_minus_default"], row["adapted_minus_default_error"], digits),
        _number(row["oracle"], digits),
    ]


def _times(row: dict[str, Any], digits: int) -> str:
    """The ratio to Single, or the difference where there can be none."""
    if row["ratio"] is not None:
        return Estimate(*(_float(row[name]) for name in ("ratio", "low", "high"))).shown(2)
    names = ("difference", "difference_low", "difference_high")
    gap = Estimate(*(_float(row[name]) for name in names))
    return "–" if np.isnan(gap.value) else f"{'+' * (gap.value >= 0)}{gap.shown(digits)}"


def _float(value: float | None) -> float:
    return math.nan if value is None else value


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _with_error(value: float | None, error: float | None, digits: int) -> str:
    return _number(value, digits) + ("" if error is None else f" ± {error:.{digits}f}")
