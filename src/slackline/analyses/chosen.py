"""Which of the K candidates was chosen: by every seed, and for every change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackline.adapt.catalogue import adapt_command
from slackline.analyses.analysis import (
    Analysis,
    Finding,
    Subject,
    colours,
    common_suite,
)
from slackline.bench.cells import scores_by_suite
from slackline.errors import SlacklineError
from slackline.report.chart import Axis, Cells, Chart, Plate
from slackline.report.results import Played, SuiteResult, suite_result
from slackline.report.table import Column, Row, Table
from slackline.suites.suite import Suite


class Choices(NamedTuple):
    """What one run chose with one K, as its scores say."""

    subject: Subject
    colour: int
    seeds: list[int]
    variations: list[str]
    zs: np.ndarray
    """The candidates, (K, size); where every seed drew its own, landmarks of the space."""
    chosen: np.ndarray
    """Which one, (S, V); of landmarks, the one nearest to the chosen z."""
    own: bool
    """Whether every seed drew candidates of its own."""

    def place(self, i: int) -> str:
        """A candidate or landmark in words."""
        latent, z = self.subject.method.latent, self.zs[i]
        words = f"z = {latent.show(z)}" if latent.is_line else latent.show(z)
        return f"near {words}" if self.own else words

    def counts(self, axis: int) -> np.ndarray:
        """How often each candidate was chosen: (V, K) over the seeds (axis 0), or (S, K) over the
        variations (axis 1)."""
        rows = np.moveaxis(self.chosen, axis, -1)
        return np.stack([np.bincount(row, minlength=len(self.zs)) for row in rows])


@dataclass(frozen=True)
class Chosen(Analysis):
    """Which of K candidates was chosen, as heat maps: for every change (over seeds) and by every
    seed (over changes), as the paper shows it. Reads the scores that `slackline adapt` and `bench`
    keep, and plays nothing."""

    name: ClassVar[str] = "chosen"
    summary: ClassVar[str] = "which of K candidates was chosen"
    plays: ClassVar[bool] = False

    shots: tuple[int, ...] = ()
    """Only these K. Default: all that were measured."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        by_shots = self.measured(suite, subjects, variations)
        figures = tuple(
            plate
            for shots, found in by_shots.items()
            for plate in (
                plate_by_variation(suite, shots, found),
                plate_by_seed(suite, shots, found),
            )
        )
        tables = tuple(table(suite, shots, found) for shots, found in by_shots.items())
        numbers = {
            f"K = {shots}": {
                each.subject.label: {
                    "variations": each.variations,
                    "seeds": each.seeds,
                    "z": each.zs,
                    "chosen": each.chosen,
                    "z_of_every_seed": not each.own,
                }
                for each in found
            }
            for shots, found in by_shots.items()
        }
        return Finding(self.name, tables, figures, numbers)

    def measured(
        self, suite: Suite, subjects: Sequence[Subject], variations: Sequence[str]
    ) -> dict[int, list[Choices]]:
        """By K, those runs that were adapted with it and had a choice."""
        results = [result_of(subject, suite) for subject in subjects]
        names = [results[0].suite.variation(name).name for name in variations]
        known = sorted({shots for result in results for shots in result.shots})
        missing = [shots for shots in self.shots if shots not in known]
        if missing:
            raise SlacklineError(
                f"shots is {missing[0]}; the runs were adapted with "
                f"{', '.join(map(str, known))}: {adapt_command('RUN', missing[0])}"
            )
        found = {}
        for shots in self.shots or known:
            triples = zip(subjects, colours(subjects), results, strict=True)
            each = [choices(*triple, names, shots) for triple in triples]
            some = [one for one in each if one is not None]
            if some:
                found[shots] = some
        if not found:
            raise SlacklineError("none of the runs had several candidates to choose from")
        return found


def result_of(subject: Subject, suite: Suite) -> SuiteResult:
    """The run's scores on the suite."""
    run = subject.run
    scores = scores_by_suite(run) if run.scores_file.exists() else {}
    if suite.name not in scores:
        has = f" (it has some on {', '.join(scores)}: --suite)" if scores else ""
        raise SlacklineError(
            f"{run.path}: has no scores on {suite.name}{has}; adapt it first: "
            f"{adapt_command(run.path)}"
        )
    played = Played(run, run.config().spelt_out, scores[suite.name])
    return suite_result(suite.name, run.path, [played])


def choices(
    subject: Subject, colour: int, result: SuiteResult, names: Sequence[str], shots: int
) -> Choices | None:
    """None where the run was not adapted with this K, or has one candidate."""
    if shots not in result.shots:
        return None
    measured = [v for v in result.variations(shots) if not names or v in names]
    each = [result.selection(subject.method.name, name, shots) for name in measured]
    if not each or len(each[0].zs) < 2:
        return None
    counted = np.stack([selection.counted for selection in each], axis=1)
    zs, own = np.array(each[0].counted_zs), each[0].regions is not None
    return Choices(subject, colour, each[0].seeds, measured, zs, counted, own)


def plate_by_variation(suite: Suite, shots: int, found: Sequence[Choices]) -> Plate:
    names = list(dict.fromkeys(name for each in found for name in each.variations))
    charts = [
        heat_map(
            each,
            rows_of(names, each.variations, each.counts(axis=0)),
            tuple(names),
            len(each.seeds),
            "{row}: {place} chosen by {count:.0f} of {most} seeds",
        )
        for each in found
    ]
    return Plate(
        f"k{shots}-variations",
        f"{suite.title}: which of {shots} policies each change wants",
        "How many seeds chose each candidate; every seed is a training run of its own."
        + note(found),
        tuple(charts),
    )


def plate_by_seed(suite: Suite, shots: int, found: Sequence[Choices]) -> Plate:
    seeds = sorted({seed for each in found for seed in each.seeds})
    charts = [
        heat_map(
            each,
            rows_of(seeds, each.seeds, each.counts(axis=1)),
            tuple(f"seed {seed}" for seed in seeds),
            len(each.variations),
            "{row}: {place} chosen for {count:.0f} of {most} changes",
        )
        for each in found
    ]
    return Plate(
        f"k{shots}-seeds",
        f"{suite.title}: which of {shots} policies each seed chose",
        "For how many of the changes each candidate was chosen." + note(found),
        tuple(charts),
    )


def rows_of(wanted: Sequence, present: Sequence, counts: np.ndarray) -> np.ndarray:
    """The counts in the order of all runs' rows; NaN where this run has none."""
    found = np.full((len(wanted), counts.shape[1]), np.nan)
    for name, row in zip(present, counts, strict=True):
        found[wanted.index(name)] = row
    return found


def heat_map(
    each: Choices, counts: np.ndarray, rows: tuple[str, ...], most: int, words: str
) -> Chart:
    label, places = each.subject.label, [each.place(i) for i in range(len(each.zs))]
    hover = tuple(
        f"{row}: not measured"
        if np.isnan(count)
        else words.format(row=row, place=name, count=count, most=most)
        for row, line in zip(rows, counts, strict=True)
        for name, count in zip(places, line, strict=True)
    )
    what, every = "candidate", f"{places[0]} to {places[-1]}"
    if each.own:
        midpoints = ", midpoints" if len(places) > 1 + each.zs.shape[1] else ""
        what, every = "landmark", f"the centre, anchors{midpoints}"
    return Chart(
        marks=(Cells(counts, each.colour, hover, most=float(most)),),
        x=Axis(what, f"{what} ({every})", decimals=0),
        y=Axis(names=rows),
        label=f"Heat map of the choices of {label} among {len(each.zs)} {what}s.",
        height=90 + 22 * len(rows),
        name=label,
    )


def note(found: Sequence[Choices]) -> str:
    """A remark for tables where every seed drew candidates of its own; else nothing."""
    names = ", ".join(each.subject.label for each in found if each.own)
    if not names:
        return ""
    return (
        f" Every seed of {names} drew candidates of its own: counted is the nearest landmark (the "
        "centre, the anchors, the midpoints between two) to what it chose."
    )


def table(suite: Suite, shots: int, found: Sequence[Choices]) -> Table:
    """The favourite of every change, a pair of columns a run."""
    names = list(dict.fromkeys(name for each in found for name in each.variations))
    columns = [Column("variation", words=True)]
    for each in found:
        columns += [
            Column(f"{each.subject.label}: favourite", words=True),
            Column("chosen by"),
            Column("different"),
        ]
    rows = [Row((name, *(cell for each in found for cell in _cells(each, name)))) for name in names]
    return Table(
        f"{suite.title}: the candidates chosen at K = {shots}",
        tuple(columns),
        (tuple(rows),),
        "Favourite: the candidate that most seeds chose (of ties, the first). Different: how many "
        f"different candidates the seeds chose.{note(found)}",
    )


def _cells(each: Choices, name: str) -> list[str]:
    if name not in each.variations:
        return ["–"] * 3
    counts = each.counts(axis=0)[each.variations.index(name)]
    best = int(counts.argmax())
    return [each.place(best), f"{counts[best]} of {len(each.seeds)}", str(int((counts > 0).sum()))]
