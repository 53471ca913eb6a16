"""The README's table of the recommended method, from results/summary.json.

    slackline report results --summary results/summary.json --markdown results/summary.md
    python benchmarks/ours.py

A test insists that README.md and results/README.md have these very lines.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from slackline.bench.stats import decimals
from slackline.suites import builtin

ROOT = Path(__file__).parents[1]
HEAD = (
    "| suite | method | seeds × steps | Single | no episode spent | K = 10 | ratio to Single | "
    "unchanged | headroom |\n|---|---|---:|---:|---:|---:|---:|---:|---:|"
)


def rows() -> list[dict[str, Any]]:
    """Of the summary, those of the recommended method on changes that are reported."""
    found = json.loads((ROOT / "results" / "summary.json").read_text())
    ours = [row for row in found if row["ours"] and not row["suite"].endswith("-dev")]
    return [row for row in ours if row["K"] == 10 and row["single_score"] is not None]


def named(row: dict[str, Any]) -> str:
    """The suite, and how many episodes each z was tried for, if not as often as its protocol
    says."""
    words = [row["suite"]]
    if row["episodes"] != builtin(row["suite"]).protocol.episodes:
        words.append(f"{row['episodes']} episodes a z")
    return ", ".join(words)


def line(row: dict[str, Any]) -> str:
    fixed = 0 if abs(row["score"]) >= 1000 else builtin(row["suite"]).digits
    digits = decimals(row["score"], fixed)

    def shown(value: float) -> str:
        return f"{value:.{digits}f}"

    ratio = f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" if row["ratio"] else "–"
    seeds = str(row["seeds"])
    if row["single_seeds"] != row["seeds"]:
        seeds += f" ({row['single_seeds']} of Single)"
    steps = row["steps"] / 1e6
    return (
        f"| {named(row)} | {row['method']} | {seeds} × {steps:g}M | {shown(row['single_score'])} | "
        f"{shown(row['default_score'])} | {shown(row['score'])} ± {shown(row['score_error'])} | "
        f"{ratio} | {quotient(row['train_ratio'])} | {quotient(row['headroom'])} |"
    )


def quotient(value: float | None) -> str:
    """Returns of either sign have none."""
    return "–" if value is None else f"{value:.2f}"


def table() -> str:
    return "\n".join([HEAD, *map(line, rows())])


if __name__ == "__main__":
    print(table())
