"""Which charts become files, and what stands above them."""

from __future__ import annotations

import numpy as np

from slackline.report.chart import Plate
from slackline.report.charts import chosen_chart, scores_chart, selection_charts, training_chart
from slackline.report.results import Entry, Selection, SuiteResult
from slackline.shown import counted

SURE = 3.0
"""Standard errors by which a policy must be worse before a picture's title calls it worse."""


def plates(result: SuiteResult) -> list[Plate]:
    """The pictures there is data for, at the main K."""
    shots, found = result.main_shots, []
    if result.variations(shots):
        if result.adapting(shots):
            method = result.main_method(shots)
            found += [return_against_z(result, method, shots), chosen_z(result, method, shots)]
        found.append(scores(result, shots))
    training = training_chart(result)
    if training is not None:
        title = f"Learning the unchanged {result.suite.title}"
        words = (
            "Bold: mean over seeds. Thin: each seed. Shade: from the lowest seed to the highest."
        )
        found.append(Plate("training", title, words, (training,)))
    return found


def return_against_z(result: SuiteResult, method: Entry, shots: int) -> Plate:
    """A chart a variation: one typical seed in bold, its choice marked, the other seeds thin."""
    seed = typical_seed(result, method, shots)
    found = [result.selection(method.name, name, shots) for name in result.variations(shots)]
    rows = result.scores.filter(method=method.name, shots=shots, phase="select")
    words = (
        f"{method.title}, trained once on {result.suite.title}. Each panel changes one thing and "
        f"tries the same {len(found[0].zs)} policies, "
        f"{counted(rows['episode'].n_unique(), 'episode')} each; nothing is retrained."
    )
    num_seeds = len(found[0].seeds)
    if num_seeds > 1:
        words += (
            f" Bold: seed {seed}, the median of {num_seeds} by average score; "
            "each seed is a training run of its own."
        )
    charts = selection_charts(result, method, shots, seed)
    return Plate("return-against-z", selection_title(found, seed), words, tuple(charts))


def typical_seed(result: SuiteResult, method: Entry, shots: int) -> int:
    """The seed whose average score is the median (of an even number, the lower middle one)."""
    seeds = result.selection(method.name, result.variations(shots)[0], shots).seeds
    average = result.matrix(method.name, shots).mean(axis=1)
    return seeds[int(np.argsort(average)[(len(average) - 1) // 2])]


def selection_title(found: list[Selection], seed: int) -> str:
    """Say that the changes want different z's only where this run's episodes show it."""
    if differing_preferences(found, seed):
        return "One training run, many policies: different changes want a different z"
    return "One training run, many policies: the return at every z tried"


def differing_preferences(found: list[Selection], seed: int) -> bool:
    """Whether two variations each do surely worse with the other's z than with their own."""
    return any(
        surely_worse(a, b, seed) and surely_worse(b, a, seed)
        for i, a in enumerate(found)
        for b in found[:i]
    )


def surely_worse(own: Selection, other: Selection, seed: int) -> bool:
    """Whether on `own` the z chosen for `other` returns less, beyond the episodes' noise."""
    i = own.seeds.index(seed)
    mine, theirs = own.chosen[i], other.chosen[other.seeds.index(seed)]
    gap = own.returns[i, mine] - own.returns[i, theirs]
    return bool(gap > SURE * np.hypot(own.errors[i, mine], own.errors[i, theirs]) and gap > 0)


def chosen_z(result: SuiteResult, method: Entry, shots: int) -> Plate:
    found = result.selection(method.name, result.variations(shots)[0], shots)
    return Plate(
        "chosen-z",
        f"Which of {len(found.zs)} policies was kept",
        f"{method.title} on {result.suite.title}, K = {shots}: "
        "each seed chooses once for every changed environment; of ties, the first.",
        (chosen_chart(result, method, shots),),
        legend_title="changed environment",
    )


def scores(result: SuiteResult, shots: int) -> Plate:
    several = any(len(entry.seeds) > 1 for entry in result.methods(shots))
    bars = " Bars: mean over seeds; whiskers: ± standard deviation." if several else " One seed."
    budget = " / ".join(dict.fromkeys(f"{run.config.steps:,}" for run in result.runs))
    return Plate(
        "kshot",
        f"{result.suite.title}, changed: the score after adapting",
        f"K = {shots}, {budget} training steps per seed.{bars} Diamonds: the paper’s own.",
        (scores_chart(result, shots),),
    )
