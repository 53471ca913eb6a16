"""Tables for a terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from slackline.bench.stats import Summary, iqm, iqm_interval, seed_scores, summarise
from slackline.paper import paper_average, paper_score
from slackline.report.results import SuiteResult
from slackline.suites.suite import Suite
from slackline.tuning import Choice


def show(table: Table) -> None:
    """Print to standard output, never cut to a narrow pipe's width."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, 140))
    console.print(table)


def plus_minus(summary: Summary) -> str:
    return f"{summary.mean:.1f} ± {summary.std:.1f}"


def format_z(z: np.ndarray) -> str:
    """A line's z as its first coordinate; other z's whole; nothing for a single policy."""
    if len(z) == 0:
        return "–"
    return f"{z[0]:.2f}" if len(z) <= 2 else " ".join(f"{x:.2f}" for x in z)


def benchmark_table(result: SuiteResult, shots: int) -> Table:
    """Variations × methods, measured beside the paper's, at one K."""
    methods, variations = result.methods(shots), result.variations(shots)
    config = result.runs[0].config
    table = Table(
        title=f"{result.suite.title}: return after adapting with K = {shots}, "
        f"{len(config.seeds)} seeds × {config.steps:,} steps",
        caption=" ".join(
            [
                "mean ± std over seeds, fresh episodes; 'paper' is the paper's own number.",
                *result.remarks(shots),
            ]
        ),
    )
    table.add_column("variation")
    for method in methods:
        table.add_column(method.name, justify="right")
        table.add_column("paper", justify="right", style="dim")
    matrices = {m.name: result.matrix(m.name, shots) for m in methods}
    for i, variation in enumerate(variations):
        cells = []
        for method in methods:
            paper = paper_score(result.suite.name, method.name, variation, shots)
            cells.append(plus_minus(summarise(matrices[method.name][:, i])))
            cells.append(f"{paper.mean:g} ± {paper.std:g}" if paper else "–")
        table.add_row(variation, *cells)
    table.add_section()
    averages, middles = [], []
    for method in methods:
        matrix = matrices[method.name]
        paper = paper_average(result.suite.name, method.name, shots)
        averages += [plus_minus(summarise(matrix.mean(axis=1))), f"{paper:g}" if paper else "–"]
        low, high = iqm_interval(matrix)
        middles += [f"{iqm(matrix):.1f} [{low:.1f}, {high:.1f}]", ""]
    table.add_row("average", *averages, style="bold")
    table.add_row("IQM [95 % CI]", *middles)
    trained = [result.train_scores(m.name, shots) for m in methods]
    if all(scores is not None for scores in trained):
        cells = [cell for s in trained for cell in (plus_minus(summarise(s)), "")]  # type: ignore[arg-type]
        table.add_row("Train (not averaged)", *cells, style="dim")
    return table


def adaptation_table(scores: pl.DataFrame, suite: Suite) -> Table:
    """What one `slackline adapt` found: a row a variation."""
    method, shots = scores["method"][0], scores["shots"][0]
    num_seeds = scores["seed"].n_unique()
    table = Table(
        title=f"{method} on {suite.name}, adapted with K = {shots}: {num_seeds} seed(s)",
        caption="score: mean ± std over seeds of the chosen policy on fresh episodes. "
        + suite.note,
    )
    for name in ("variation", "change", "score", "chosen z", "paper"):
        table.add_column(name, justify="left" if name in ("variation", "change") else "right")
    for row in adaptation_json(scores):
        name = row["variation"]
        per_seed = np.array([s["score"] for s in row["seeds"]]) * suite.display_scale
        paper = paper_score(suite.name, method, name, shots)
        zs = [format_z(np.array(s["z"])) for s in row["seeds"]]
        table.add_row(
            name,
            suite.variation(name).description,
            plus_minus(summarise(per_seed)),
            zs[0] if num_seeds == 1 else f"{min(zs)} … {max(zs)}",
            f"{paper.mean:g} ± {paper.std:g}" if paper else "–",
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
            plus_minus(summarise(np.array(choice.scores))),
            f"{choice.training_return:.1f}",
            style="bold" if rank == 1 else None,
        )
    return table
