"""The paper's own results, to be shown beside ours and always labelled as the paper's."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

CITATION = (
    "Gaya, Soulier, Denoyer: Learning a Subspace of Policies for Online Adaptation in RL (2022)"
)


class PaperScore(NamedTuple):
    mean: float
    std: float


@cache
def _tables() -> dict[str, Any]:
    return json.loads(files("slackline").joinpath("data/paper.json").read_text(encoding="utf-8"))


def paper_score(suite: str, method: str, variation: str, shots: int) -> PaperScore | None:
    """The paper's (mean, std) over its seeds, or None where it has no such cell."""
    rows = _tables().get(suite, {}).get(f"K={shots}", {})
    named = {row.split(" ")[0]: cells for row, cells in rows.items()}  # "LongPole CartPole"
    cell = named.get(variation, {}).get(method)
    return PaperScore(cell["mean"], cell["std"]) if cell else None


def paper_average(suite: str, method: str, shots: int) -> float | None:
    """The paper's average over the suite's variations."""
    return _tables().get(f"summary_K={shots}", {}).get(method, {}).get(suite)
