"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from slackline.bench.stats import decimals, seed_scores, summarise
from slackline.methods.method import Method
from slackline.paper import paper_average, paper_ratio, paper_score
from slackline.report.results import SuiteResult
from slackline.report.words import COST_RATIO, DEFAULT_Z, HEADROOM, ORACLE
from slackline.store.choice import Choice
from slackline.suites.suite import Suite, Variation

MAX_SHOWN_Z = 4
SUMMARY = {
    "average": "",
    "standard error": "",
    "IQM [95 % CI]": "",
    "ratio to Single [95 % CI]": "",
    "default z": f"default z: {DEFAULT_Z}.",
    "oracle (split halves)": f"oracle (split halves): {ORACLE}.",
    "headroom": f"headroom: {HEADROOM}.",
    "Train": "Train is the unchanged environment and not averaged.",
}
"""Rows below those of the variations, where there is anything in them; what the caption says."""
EMPTY = ("", "–")


def show(table: Table) -> None:
    """Print to standard output, never cut to a narrow pipe's width."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, 220))
    title, caption = table.title, table.caption
    table.title = table.caption = None  # rich would fold them to the width of a narrow table
    console.print(title, style="bold")
    console.print(table)
    console.print(caption, style="dim")


def benchmark_title(result: SuiteResult, shots: int) -> str:
    budgets: dict[str, list[str]] = {}
    for run in result.runs_at(shots):
        budgets.setdefault(run.budget, []).append(run.method.name)
    words = [
        budget if len(budgets) == 1 else f"{budget} ({', '.join(methods)})"
        for budget, methods in budgets.items()
    ]
    return f"{result.suite.title}: return after adapting with K = {shots}, {'; '.join(words)}"


def benchmark_caption(result: SuiteResult, shots: int) -> str:
    shown = {row[0] for row in benchmark_rows(result, shots)}
    words = ["mean ± std over seeds, fresh episodes; 'paper' is the paper's own number."]
    words += [explained for name, explained in SUMMARY.items() if explained and name in shown]
    words += [f"ratio to Single: {COST_RATIO}."] * result.ratios_of_costs(shots)
    return " ".join([*words, *result.remarks(shots)])


def benchmark_rows(result: SuiteResult, shots: int) -> list[list[str]]:
    """Variations × methods at one K, measured beside the paper's where it has any.

    The first row is the header.
    """
    head, columns = ["variation"], []
    for method in result.methods(shots):
        paper = paper_column(result, method, shots)
        head += [method.name, *["paper"] * bool(paper)]
        columns += [method_column(result, method, shots), *[paper] * bool(paper)]
    names = [*result.variations(shots), *SUMMARY]
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    return [head, *(row for row in rows if not set(row[1:]) <= set(EMPTY))]


def method_column(result: SuiteResult, method: Method, shots: int) -> dict[str, str]:
    """What was measured of one method, by row."""
    digits, name = result.digits(shots), method.name
    matrix, measured = result.matrix(name, shots), result.measured(name, shots)
    average, times = summarise(matrix.mean(axis=1)), result.ratio_to_single(name, shots)
    trained, room = result.train_scores(name, shots), result.headroom(name, shots)
    scores = {
        variation: summarise(matrix[:, i]).shown(digits)
        for i, variation in enumerate(result.variations(shots))
    }
    return scores | {
        "average": average.shown(digits),
        "standard error": f"{average.standard_error:.{digits}f}",
        "IQM [95 % CI]": result.iqm(name, shots).shown(digits),
        "ratio to Single [95 % CI]": times.shown(2) if times else "–",
        "default z": shown_average(measured.default, digits),
        "oracle (split halves)": shown_average(measured.oracle, digits),
        "headroom": "–" if room is None else f"{room:.2f}",
        "Train": "–" if trained is None else summarise(trained).shown(digits),
    }


def shown_average(matrix: np.ndarray | None, digits: int) -> str:
    """Of scores [seeds × variations], if there are any."""
    return "–" if matrix is None else summarise(matrix.mean(axis=1)).shown(digits)


def paper_column(result: SuiteResult, method: Method, shots: int) -> dict[str, str]:
    """The paper's numbers for one method, by row; empty where it has none."""
    suite = result.suite.name
    scores = {name: paper_score(suite, method, name, shots) for name in result.variations(shots)}
    average, ratio = paper_average(suite, method, shots), paper_ratio(suite, method, shots)
    if not any(scores.values()) and average is None:
        return {}
    return {name: str(score or "–") for name, score in scores.items()} | {
        "average": "–" if average is None else f"{average:g}",
        "ratio to Single [95 % CI]": "" if ratio is None else f"{ratio:.2f}",
    }


def benchmark_table(result: SuiteResult, shots: int) -> Table:
    """The rows for a terminal."""
    head, *rows = benchmark_rows(result, shots)
    table = Table(title=benchmark_title(result, shots), caption=benchmark_caption(result, shots))
    for i, name in enumerate(head):
        style = "dim" if name == "paper" else None
        table.add_column(name, justify="right" if i else "left", style=style)
    for row in rows:
        if row[0] == "average":
            table.add_section()
        table.add_row(*row, style={"average": "bold", "Train": "dim"}.get(row[0]))
    return table


def benchmark_markdown(result: SuiteResult, shots: int) -> str:
    """The rows for a document."""
    title, caption = benchmark_title(result, shots), benchmark_caption(result, shots)
    return markdown(title, benchmark_rows(result, shots), caption)


def markdown(title: str, rows: list[list[str]], caption: str, *, words: int = 1) -> str:
    """A table, the head first; all but the first columns, which are words, stand to the right."""
    rule = ["---"] * words + ["---:"] * (len(rows[0]) - words)
    lines = ["| " + " | ".join(row) + " |" for row in [rows[0], rule, *rows[1:]]]
    return "\n".join([f"**{title}**", "", *lines, "", caption])


def adaptation_table(
    scores: pl.DataFrame, suite: Suite, method: Method, others: Sequence[Variation] = ()
) -> Table:
    """What one `slackline adapt` found: a row a variation, `others` than the suite's among them."""
    known = {v.name: v for v in others}
    shots, num_seeds = scores["shots"][0], scores["seed"].n_unique()
    table = Table(
        title=f"{method.name} on {suite.name}, adapted with K = {shots}: {num_seeds} seed(s)",
        caption="score: mean ± std over seeds of the chosen policy on fresh episodes. "
        + suite.note,
    )
    for name in ("variation", "change", "score", "chosen z", "paper"):
        table.add_column(name, justify="left" if name in ("variation", "change") else "right")
    found = adaptation_json(scores)
    shown = [suite.display_scale * row["mean"] for row in found]
    digits = decimals(shown, suite.digits)
    for row in found:
        name = row["variation"]
        per_seed = np.array([s["score"] for s in row["seeds"]]) * suite.display_scale
        paper = paper_score(suite.name, method, name, shots)
        zs = sorted({method.latent.show(s["z"]) for s in row["seeds"]})
        table.add_row(
            name,
            (known.get(name) or suite.variation(name)).description,
            summarise(per_seed).shown(digits),
            ", ".join(zs) if len(zs) <= MAX_SHOWN_Z else f"{len(zs)} different ones",
            str(paper or "–"),
        )
    return table


def adaptation_json(scores: pl.DataFrame) -> list[dict[str, Any]]:
    """The chosen z and its fresh score, by variation and seed."""
    chosen = scores.filter(phase="score").unique(["variation", "seed"], maintain_order=True)
    fresh = seed_scores(scores).join(chosen, on=["variation", "seed"], maintain_order="left")
    return [
        {
            "variation": name,
            "mean": float(rows["score"].mean()),  # type: ignore[arg-type]
            "std": summarise(rows["score"].to_numpy()).std,
            "seeds": [
                {"seed": row["seed"], "z": row["z"], "score": row["score"]}
                for row in rows.iter_rows(named=True)
            ],
        }
        for (name,), rows in fresh.group_by("variation", maintain_order=True)
    ]


def tuning_table(suite: Suite, ranking: list[Choice], *, seeds: int, steps: int) -> Table:
    """The grid's cells, best first."""
    name, digits = suite.name, decimals([choice.scores for choice in ranking], suite.digits)
    table = Table(
        title=f"{name}: single policy on the training environment, {seeds} seeds × {steps:,} steps",
        caption="final: deterministic return on fresh training episodes, mean ± std over seeds",
    )
    for column in ("rank", *ranking[0].changed, "final", "while training"):
        table.add_column(column, justify="right")
    for rank, choice in enumerate(ranking, 1):
        table.add_row(
            str(rank),
            *(f"{value:g}" for value in choice.changed.values()),
            summarise(np.array(choice.scores)).shown(digits),
            f"{choice.training_return:.{digits}f}",
            style="bold" if rank == 1 else None,
        )
    return table
