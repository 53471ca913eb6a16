"""The tables of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from slackline.adapt.helped import helped
from slackline.bench.stats import Estimate, decimals, summarise
from slackline.methods.method import Method
from slackline.paper import paper_average, paper_ratio, paper_score
from slackline.report.results import Entry, SuiteResult
from slackline.report.table import Column, Row, Table
from slackline.report.words import (
    COST_RATIO,
    DEFAULT_Z,
    HEADROOM,
    IMPROVEMENT,
    ORACLE,
    PAPER_SCORING,
    many_comparisons,
)
from slackline.shown import counted
from slackline.store.choice import Combination
from slackline.suites.suite import Suite, Variation

MAX_SHOWN_Z = 4
EMPTY = ("", "–")


class Kind(NamedTuple):
    """A row below those of the variations."""

    title: str = ""
    """Its name on the page; none: the page has it elsewhere."""
    note: str = ""
    """What stands below its name there."""
    explained: str = ""
    """What the caption says of it."""


RATIO = "ratio to Single [95 % CI]"
BETTER = "P(better than Single) [95 % CI]"
BIASED = "paper's scoring (biased)"
KINDS = {
    "average": Kind("Average"),
    "standard error": Kind(),
    "IQM [95 % CI]": Kind("IQM", "with 95 % interval"),
    RATIO: Kind("Ratio to Single", "of the averages, with 95 % interval"),
    BETTER: Kind(
        "Better than Single",
        "probability that one run beats another, with 95 % interval",
        f"P(better than Single): {IMPROVEMENT}.",
    ),
    BIASED: Kind(
        "The paper’s scoring (biased)",
        "the chosen z’s own selection episodes",
        f"{BIASED}: {PAPER_SCORING}.",
    ),
    "default z": Kind(
        "Default z",
        "best on the unchanged environment, no episode spent",
        f"default z: {DEFAULT_Z}.",
    ),
    "oracle (split halves)": Kind(
        "Oracle (split halves)",
        "z chosen by half of the selection episodes, scored on the other half",
        f"oracle (split halves): {ORACLE}.",
    ),
    "headroom": Kind(
        "Headroom",
        "Single’s score on the unchanged environment ÷ on the changed ones (costs: reversed)",
        f"headroom: {HEADROOM}.",
    ),
    "Train": Kind(
        "Train",
        "the unchanged environment, not averaged",
        "Train is the unchanged environment and not averaged.",
    ),
}
"""In this order, where there is anything in them."""


class Cell(NamedTuple):
    text: str
    value: float | None = None
    """By which the best of a row is found; None: it does not compete."""


def benchmark_table(result: SuiteResult, shots: int, *, paper_scoring: bool = False) -> Table:
    """Variations × methods at one K, measured beside the paper's where it has any.

    With `paper_scoring` also the number that the paper printed, which is biased: see `BIASED`.
    """
    columns, held = [Column("variation", "Variation", words=True)], []
    for method in result.methods(shots):
        paper = paper_column(result, method, shots)
        columns += [Column(method.name, method.title)]
        columns += [Column("paper", "paper’s", quoted=True)] * bool(paper)
        held += [method_column(result, method, shots), *[paper] * bool(paper)]
    sections = [
        [
            _row(name, kind, [column.get(name, Cell("")) for column in held], result.digits(shots))
            for name, kind in kinds.items()
        ]
        for kinds in _kinds(result, shots)
    ]
    hidden = set() if paper_scoring else {BIASED}
    filled = [
        [r for r in rows if r.cells[0] not in hidden and not set(r.cells[1:]) <= set(EMPTY)]
        for rows in sections
    ]
    return Table(
        benchmark_title(result, shots),
        tuple(columns),
        tuple(map(tuple, filled)),
        benchmark_caption(result, shots, {row.cells[0] for row in filled[1]}),
    )


def _kinds(result: SuiteResult, shots: int) -> tuple[dict[str, Kind], dict[str, Kind]]:
    """The rows of the variations, and those below."""
    names = result.variations(shots)
    variations = {name: Kind(name, result.suite.variation(name).description) for name in names}
    below = dict(KINDS, average=Kind("Average", f"of {counted(len(names), 'variation')}"))
    if result.ratios_of_costs(shots):
        costs = "of costs: Single’s ÷ the method’s, with 95 % interval"
        below[RATIO] = KINDS[RATIO]._replace(note=costs)
    return variations, below


def _row(name: str, kind: Kind, cells: list[Cell], digits: int) -> Row:
    competing = {i: cell.value for i, cell in enumerate(cells, 1) if cell.value is not None}
    places, best = list(competing), best_of(list(competing.values()), digits)
    return Row(
        (name, *(cell.text for cell in cells)),
        kind.title,
        kind.note,
        frozenset(places[i] for i in best),
        {"average": "strong", "Train": "quiet"}.get(name, ""),  # type: ignore[arg-type]
        on_page=bool(kind.title),
    )


def best_of(values: list[float], digits: int) -> set[int]:
    """The largest values, ties at the shown precision included; none if there is only one value."""
    shown = [round(value, digits) for value in values]
    finite = [value for value in shown if np.isfinite(value)]
    if len(values) < 2 or not finite:
        return set()
    return {i for i, value in enumerate(shown) if value == max(finite)}


def benchmark_title(result: SuiteResult, shots: int) -> str:
    budgets: dict[str, list[str]] = {}
    for entry in result.methods(shots):
        budgets.setdefault(entry.budget, []).append(entry.name)
    words = [
        budget if len(budgets) == 1 else f"{budget} ({', '.join(methods)})"
        for budget, methods in budgets.items()
    ]
    return f"{result.suite.title}: return after adapting with K = {shots}, {'; '.join(words)}"


def benchmark_caption(result: SuiteResult, shots: int, shown: set[str]) -> str:
    words = ["mean ± std over seeds, fresh episodes; 'paper' is the paper's own number."]
    words += [k.explained for name, k in KINDS.items() if k.explained and name in shown]
    words += [f"ratio to Single: {COST_RATIO}."] * result.ratios_of_costs(shots)
    return " ".join([*words, *many_comparisons(result, shots), *result.remarks(shots)])


def method_column(result: SuiteResult, method: Entry, shots: int) -> dict[str, Cell]:
    """What was measured of one method, by row."""
    digits, name = result.digits(shots), method.name
    matrix, measured = result.matrix(name, shots), result.measured(name, shots)
    average, times = summarise(matrix.mean(axis=1)), result.ratio_to_single(name, shots)
    iqm, room = result.iqm(name, shots), result.headroom(name, shots)
    better = result.improvement(name, shots)
    columns = [summarise(column) for column in matrix.T]
    scores = {
        variation: Cell(found.shown(digits), found.mean)
        for variation, found in zip(result.variations(shots), columns, strict=True)
    }
    return scores | {
        "average": Cell(average.shown(digits), average.mean),
        "standard error": Cell(f"{average.standard_error:.{digits}f}"),
        "IQM [95 % CI]": Cell(iqm.shown(digits), iqm.value),
        RATIO: Cell(times.shown(2) if times else "–"),
        BETTER: Cell(better.shown(2) if better else "–"),
        BIASED: _average_cell(measured.by_selection, digits),
        "default z": _average_cell(measured.default, digits),
        "oracle (split halves)": _average_cell(measured.oracle, digits),
        "headroom": Cell("–" if room is None else f"{room:.2f}"),
        "Train": _average_cell(result.train_scores(name, shots), digits),
    }


def _average_cell(scores: np.ndarray | None, digits: int) -> Cell:
    """Of scores [seeds] or [seeds × variations], if there are any."""
    if scores is None:
        return Cell("–")
    return Cell(summarise(scores.reshape(len(scores), -1).mean(axis=1)).shown(digits))


def paper_column(result: SuiteResult, entry: Entry, shots: int) -> dict[str, Cell]:
    """The paper's numbers for one method, by row; empty where it has none."""
    suite, method = result.suite.name, entry.method
    scores = {name: paper_score(suite, method, name, shots) for name in result.variations(shots)}
    average, ratio = (
        of(suite, method, shots) if result.whole(shots) else None
        for of in (paper_average, paper_ratio)
    )
    if not any(scores.values()) and average is None:
        return {}
    return {name: Cell(str(score or "–")) for name, score in scores.items()} | {
        "average": Cell("–" if average is None else f"{average:g}"),
        RATIO: Cell("" if ratio is None else f"{ratio:.2f}"),
    }


def adaptation_table(
    scores: pl.DataFrame, suite: Suite, method: Method, others: Sequence[Variation] = ()
) -> Table:
    """What one `slackline adapt` found: a row a variation, `others` than the suite's among them."""
    known = {v.name: v for v in others}
    shots, num_seeds, adapter = scores["shots"][0], scores["seed"].n_unique(), scores["adapter"][0]
    found = adaptation_json(scores)
    scale = suite.display_scale
    digits = decimals([scale * row["mean"] for row in found], suite.digits)
    rows = []
    for row in found:
        name = row["variation"]
        per_seed = np.array([s["score"] for s in row["seeds"]]) * scale
        zs = sorted({method.latent.show(s["z"]) for s in row["seeds"]})
        cells = (
            name,
            (known.get(name) or suite.variation(name)).description,
            summarise(per_seed).shown(digits),
            *_beside_default(row.get("default"), scale, digits),
            ", ".join(zs) if len(zs) <= MAX_SHOWN_Z else f"{len(zs)} different ones",
            str(paper_score(suite.name, method, name, shots) or "–") if adapter == "grid" else "–",
        )
        rows.append(Row(cells))
    words = [Column(name, words=True) for name in ("variation", "change")]
    how = f"K = {shots}" if adapter == "grid" else f"{adapter}, {counted(shots, 'episode')}"
    names = ("score", "default z", "gain [95 % CI]", "adapting", "chosen z", "paper")
    return Table(
        f"{method.name} on {suite.name}, adapted with {how}: {counted(num_seeds, 'seed')}",
        (*words, *map(Column, names)),
        (tuple(rows),),
        "score: mean ± std over seeds of the chosen policy on fresh episodes; default z: the same "
        f"episodes with the z that was best in training. {_advice(found)}{suite.note}",
    )


def _beside_default(default: dict[str, Any] | None, scale: float, digits: int) -> tuple[str, ...]:
    """The default z's score, the gain with its interval, and the verdict."""
    if default is None:
        return "–", "–", "–"
    gain = Estimate(*(scale * (x if x is not None else np.nan) for x in default["gain"]))
    return f"{scale * default['mean']:.{digits}f}", gain.shown(digits), default["verdict"]


def _advice(found: list[dict[str, Any]]) -> str:
    """Where the default z is the one to use."""
    doubtful = [r["variation"] for r in found if "default" in r and r["default"]["keep_default"]]
    if not doubtful:
        return ""
    if len(doubtful) == len(found):
        return "The episodes show no gain anywhere: use the default z. "
    return f"The episodes show no gain on {', '.join(doubtful)}: use the default z there. "


def adaptation_json(scores: pl.DataFrame) -> list[dict[str, Any]]:
    """The chosen z and its fresh score, by variation and seed."""
    fresh = scores.filter(phase="score")
    by = ["variation", "seed"]
    means = fresh.group_by(by, maintain_order=True).agg(
        pl.col("z").first(),
        score=pl.col("return").cast(pl.Float64).mean(),
        default=pl.col("default_return").cast(pl.Float64).mean(),
    )
    return [
        {
            "variation": name,
            "mean": float(rows["score"].mean()),  # type: ignore[arg-type]
            "std": summarise(rows["score"].to_numpy()).std,
            **_default_json(rows, fresh.filter(variation=name)),
            "seeds": [
                {"seed": row["seed"], "z": row["z"], "score": row["score"]}
                for row in rows.iter_rows(named=True)
            ],
        }
        for (name,), rows in means.group_by("variation", maintain_order=True)
    ]


def _default_json(seeds: pl.DataFrame, episodes: pl.DataFrame) -> dict[str, Any]:
    """The default z beside the chosen one: over seeds if there are several, else over episodes."""
    if seeds["default"].null_count():
        return {}
    pairs = (
        seeds.select("score", "default")
        if len(seeds) > 1
        else episodes.select(pl.col("return"), pl.col("default_return"))
    )
    found = helped(*(pairs.to_numpy().T))
    numbers = [found.gain, found.low, found.high]
    return {
        "default": {
            "mean": found.default,
            "gain": [None if np.isnan(x) else float(x) for x in numbers],
            "verdict": found.verdict,
            "keep_default": found.keep_default,
        }
    }


def tuning_table(suite: Suite, ranking: list[Combination], *, seeds: int, steps: int) -> Table:
    """The grid's cells, best first."""
    name, digits = suite.name, decimals([choice.scores for choice in ranking], suite.digits)
    rows = [
        Row(
            (
                str(rank),
                *(f"{value:g}" for value in choice.changed.values()),
                summarise(np.array(choice.scores)).shown(digits),
                f"{choice.training_return:.{digits}f}",
            ),
            kind="strong" if rank == 1 else "",
        )
        for rank, choice in enumerate(ranking, 1)
    ]
    return Table(
        f"{name}: single policy on the training environment, {counted(seeds, 'seed')} × "
        f"{steps:,} steps",
        tuple(map(Column, ("rank", *ranking[0].changed, "final", "while training"))),
        (tuple(rows),),
        "final: deterministic return on fresh training episodes, mean ± std over seeds",
    )
