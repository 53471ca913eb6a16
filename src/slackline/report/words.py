"""What was found, in plain sentences computed from the scores."""

from __future__ import annotations

import numpy as np
import polars as pl

from slackline.bench.stats import Summary, summarise
from slackline.report.results import Entry, SuiteResult
from slackline.shown import counted

BEYOND_NOISE = 2.0
"""A difference of fewer standard errors than this is called noise."""

DEFAULT_Z = (
    "no episode spent on the changed environment; each seed plays the z that was best on the "
    "unchanged one"
)
ORACLE = "z chosen by one half of the selection episodes and scored on the other half, both ways"
PAPER_SCORING = (
    "the mean of the chosen z's own selection episodes, which the paper printed; the best of "
    "several noisy numbers is too high, so that it is shown beside the score, never instead of it"
)
IMPROVEMENT = (
    "how likely one run of the method scores more than one of Single on the same changed "
    "environment, averaged over those (a half: as likely as not), with a bootstrapped interval"
)
HEADROOM = (
    "how many times as well the single policy does on the unchanged environment as on the changed "
    "ones; at 1.00 the changes cost it nothing, and there is nothing to win back"
)
COST_RATIO = (
    "returns are negative here, so that it is Single's cost divided by the method's; more than 1 "
    "is better all the same"
)
"""What the rows of a table are, in plain words."""


def averages(result: SuiteResult, shots: int) -> dict[str, Summary]:
    """Each method's average over variations, summarised over seeds."""
    return {
        method.name: summarise(result.matrix(method.name, shots).mean(axis=1))
        for method in result.methods(shots)
    }


def headline(result: SuiteResult, shots: int) -> str:
    """Who scores what, on average."""
    digits, found = result.digits(shots), averages(result, shots)

    def scored(method: Entry) -> str:
        return f"{found[method.name].mean:.{digits}f}"

    where = changed_environments(result, shots)
    line, single = result.headliner(shots), result.baseline(shots)
    if line and single:
        return (
            f"{where}, the {in_a_sentence(line)} scores {scored(line)}, "
            f"the {in_a_sentence(single)} {scored(single)}."
        )
    listed = ", ".join(f"{method.title} {scored(method)}" for method in result.methods(shots))
    return f"{where}: {listed}."


def in_a_sentence(method: Entry) -> str:
    """A method's title as it stands within a sentence."""
    return method.title[0].lower() + method.title[1:]


def changed_environments(result: SuiteResult, shots: int) -> str:
    names = result.variations(shots)
    if len(names) == 1:
        return f"On one changed {result.suite.title} ({names[0]})"
    return f"Averaged over {len(names)} changed {result.suite.title}s"


def verdict(result: SuiteResult, shots: int) -> str:
    """Whether it, the line of the headline, beats the single policy, and whether by chance."""
    headliner, baseline = result.headliner(shots), result.baseline(shots)
    if headliner is None or baseline is None:
        return "Mean of the seeds on fresh episodes, with its standard error."
    found = averages(result, shots)
    line, single = found[headliner.name], found[baseline.name]
    digits, gap = result.digits(shots), line.mean - single.mean
    if f"{abs(gap):.{digits}f}" == f"{0:.{digits}f}":
        return "There is no difference between them at this precision."
    standing = f"It is {'ahead' if gap > 0 else 'behind'} by {abs(gap):.{digits}f}"
    if min(line.num_seeds, single.num_seeds) < 2:
        return f"{standing}. One seed says nothing about chance: train more to know."
    error = float(np.hypot(line.standard_error, single.standard_error))
    if abs(gap) < BEYOND_NOISE * error:
        judged = "within the noise: these seeds cannot tell the two apart"
    else:
        judged = f"more than {BEYOND_NOISE:g} standard errors, so hardly chance"
    return f"{standing}, with a standard error of {error:.{digits}f}: {judged}."


def conditions(result: SuiteResult, shots: int) -> str:
    """Under what conditions the table's numbers were measured."""
    rows = result.scores.filter(shots=shots)
    entries = result.methods(shots)
    trained = [entry.budget for entry in entries]
    if len(set(trained)) == 1:
        budget = f"Trained with {trained[0]} for each method"
    else:
        budget = "Trained with " + ", ".join(
            f"{words} ({entry.title})" for words, entry in zip(trained, entries, strict=True)
        )
    tried = _episodes(rows.filter(phase="select"), "episode")
    fresh = _episodes(rows.filter(phase="score"), "fresh episode")
    remarks = "".join(f" {remark}" for remark in result.remarks(shots))
    return (
        f"{budget}. Adapted with K = {shots}: at most {shots} values of z, {tried} each; the "
        f"chosen one was then scored on {fresh}. Mean ± standard deviation over "
        "seeds; best measured method in bold. IQM is the mean of the middle half of all "
        f"seeds × variations, with a 95 % interval.{remarks}"
    )


def many_comparisons(result: SuiteResult, shots: int) -> list[str]:
    """What is left of the differences on single variations although so many were looked at."""
    num = len(result.variations(shots))
    if num < 2:
        return []
    found = [
        (entry.title, result.significant(entry.name, shots)) for entry in result.methods(shots)
    ]
    words = [
        f"{title} is better than Single on {s.better} of {num} variations and worse on {s.worse} "
        f"at the 5 % level; corrected for {num} comparisons (Holm) better on "
        f"{s.better_after_holm}, worse on {s.worse_after_holm}."
        for title, s in found
        if s is not None
    ]
    paired = any(
        rival.paired
        for entry in result.methods(shots)
        if (rival := result.rival(entry.name, shots)) is not None
    )
    return words + ["Runs of the same seeds are compared pair by pair."] * paired


def _episodes(rows: pl.DataFrame, noun: str) -> str:
    """How many episodes each candidate was run for; a range where runs differ."""
    counts = rows.group_by("method", "seed", "variation", "candidate").len()["len"].sort()
    low, high = (int(end) for end in np.asarray(counts)[[0, -1]]) if len(counts) else (0, 0)
    return counted(low, noun) if low == high else f"{low} to {counted(high, noun)}"
