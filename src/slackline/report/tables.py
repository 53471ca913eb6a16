"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from slackline.bench.stats import seed_scores, summarise
from slackline.methods.method import Method
from slackline.paper import paper_average, paper_ratio, paper_score
from slackline.report.results import SuiteResult
from slackline.suites import suite as find_suite
from slackline.suites.suite import Suite, Variation
from slackline.tuning import Choice

MAX_SHOWN_Z = 4
SUMMARY = ("average", "standard error", "IQM [95 % CI]", "ratio to Single [95 % CI]", "Train")
"""Rows below those of the variations."""


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
    first = (
        "mean ± std over seeds, fresh episodes; 'paper' is the paper's own number; Train is the "
        "unchanged environment and not averaged."
    )
    return " ".join([first, *result.remarks(shots)])


def benchmark_rows(result: SuiteResult, shots: int) -> list[list[str]]:
    """Variations × methods at one K, measured beside the paper's where it has any.

    The first row is the header.
    """
    variations, digits = result.variations(shots), result.suite.digits
    columns = [["variation", *variations, *SUMMARY]]
    for method in result.methods(shots):
        matrix = result.matrix(method.name, shots)
        average = summarise(matrix.mean(axis=1))
        times = result.ratio_to_single(method.name, shots)
        trained = result.train_scores(method.name, shots)
        columns.append(
            [
                method.name,
                *(summarise(matrix[:, i]).shown(digits) for i in range(len(variations))),
                average.shown(digits),
                f"{average.standard_error:.{digits}f}",
                result.iqm(method.name, shots).shown(digits),
                times.shown(2) if times else "–",
                "–" if trained is None else summarise(trained).shown(digits),
            ]
        )
        columns += paper_column(result.suite.name, method, variations, shots)
    return [list(row) for row in zip(*columns, strict=True)]


def paper_column(suite: str, method: Method, variations: list[str], shots: int) -> list[list[str]]:
    """The paper's numbers for one method as a column, or no column where it has none."""
    scores = [paper_score(suite, method, variation, shots) for variation in variations]
    average = paper_average(suite, method, shots)
    if not any(scores) and average is None:
        return []
    cells = [str(score or "–") for score in scores]
    ratio = paper_ratio(suite, method, shots)
    times = "" if ratio is None else f"{ratio:.2f}"
    return [["paper", *cells, "–" if average is None else f"{average:g}", "", "", times, ""]]


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
    head, *rows = benchmark_rows(result, shots)
    rule = ["---", *(["---:"] * (len(head) - 1))]
    lines = ["| " + " | ".join(row) + " |" for row in [head, rule, *rows]]
    title, caption = benchmark_title(result, shots), benchmark_caption(result, shots)
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
    for row in adaptation_json(scores):
        name = row["variation"]
        per_seed = np.array([s["score"] for s in row["seeds"]]) * suite.display_scale
        paper = paper_score(suite.name, method, name, shots)
        zs = sorted({method.latent.show(s["z"]) for s in row["seeds"]})
        table.add_row(
            name,
            (known.get(name) or suite.variation(name)).description,
            summarise(per_seed).shown(suite.digits),
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


def tuning_table(name: str, ranking: list[Choice], *, seeds: int, steps: int) -> Table:
    """The grid's cells, best first."""
    digits = find_suite(name).digits
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
