"""Severity: the return against how much is changed, of a line beside the single policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackline.adapt.kshot import Adapting
from slackline.analyses.analysis import Analysis, Finding, Subject, colours, common_suite
from slackline.analyses.playing import adapted
from slackline.bench.stats import decimals
from slackline.errors import SlacklineError
from slackline.io.decode import count, number
from slackline.methods.catalogue import BASELINE
from slackline.report.chart import Axis, Band, Chart, Line, Mark, Plate
from slackline.report.table import Column, Row, Table
from slackline.suites.knobs import Knob, knob_named, tame
from slackline.suites.suite import TRAIN, Suite


class Swept(NamedTuple):
    """One run at every severity P."""

    subject: Subject
    colour: int
    adapted: np.ndarray
    """Score of the z that was chosen there, (S, P)."""
    default: np.ndarray
    """Score of the z that is best in training, (S, P)."""
    unchanged: float
    """Score of the z chosen on the unchanged environment, mean over seeds."""


@dataclass(frozen=True)
class Sweep(Analysis):
    """The return against severity: one number of the environment is changed from --from to --to,
    and at each of --points values every run is adapted anew and scored on fresh episodes. Give it a
    line and the single policy (two RUNs) to see where each breaks: where its mean falls below half
    of what the single policy (or else the first run) returns unchanged."""

    name: ClassVar[str] = "sweep"
    summary: ClassVar[str] = "return against how much is changed"

    change: str
    """What to change: a number of the suite's (gravity, friction, length, …; a wrong name lists
    them), or an option that your environment is made with."""
    start: float = number()
    """The first value."""
    stop: float = number()
    """The last value."""
    points: int = count(15, low=2, high=1000)
    """How many values, evenly from --from to --to."""
    absolute: bool = False
    """The values are those of the number itself, not factors of what it is in training."""
    shots: int | None = None
    """K of the adaptation at each value. Default: the suite's protocol."""
    episodes: int | None = None
    """Selection episodes of each z. Default: the suite's protocol."""
    score_episodes: int | None = None
    """Fresh episodes of the chosen z. Default: the suite's protocol."""
    broken: float = number(0.5, above=0.0, high=1.0)
    """A run is broken where it returns less than this share of the unchanged return."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        knob = knob_named(suite, self.change, absolute=self.absolute)
        values = self.values
        runs = [
            self.swept(subject, colour, knob, values)
            for subject, colour in zip(subjects, colours(subjects), strict=True)
        ]
        level = self.level(runs)
        numbers = {
            "change": knob.words,
            "values": values,
            "broken_below": level,
            "runs": {run.subject.label: self.numbers_of(run, level) for run in runs},
        }
        return Finding(
            f"sweep-{tame(self.change)}",
            (self.table(suite, knob, runs, level), self.breaks_table(suite, knob, runs, level)),
            (self.plate(suite, knob, runs, level),),
            numbers,
        )

    @property
    def values(self) -> np.ndarray:
        if not self.start < self.stop:
            raise SlacklineError(
                f"from is {self.start:g} and to is {self.stop:g}; from must be less than to"
            )
        # To six digits, which name the variations and so decide their episodes.
        return np.array(
            [float(f"{x:.6g}") for x in np.linspace(self.start, self.stop, self.points)]
        )

    def swept(self, subject: Subject, colour: int, knob: Knob, values: np.ndarray) -> Swept:
        """Adapt at every value, and on the unchanged environment."""
        adapting = Adapting.of(
            subject.suite.protocol, self.shots, self.episodes, self.score_episodes
        )
        severities = [TRAIN, *(knob.variation(float(value)) for value in values)]
        found = adapted(subject, severities, adapting)
        assert found.default_scores is not None
        scale = subject.suite.display_scale
        scores, default = (scale * x.mean(axis=-1) for x in (found.scores, found.default_scores))
        return Swept(subject, colour, scores[:, 1:], default[:, 1:], float(scores[:, 0].mean()))

    def level(self, runs: Sequence[Swept]) -> float:
        """The return below which a run is broken. Of negative returns (costs), where the cost is
        that much higher: u − (1 − share) |u|."""
        singles = [run for run in runs if run.subject.method.name == BASELINE]
        usual = (singles or list(runs))[0].unchanged
        return usual - (1.0 - self.broken) * abs(usual)

    def numbers_of(self, run: Swept, level: float) -> dict[str, Any]:
        return {
            "seeds": list(run.subject.config.seeds),
            "adapted": run.adapted,
            "default": run.default,
            "unchanged": run.unchanged,
            "holds": holds(self.values, run.adapted.mean(axis=0), level),
        }

    def plate(self, suite: Suite, knob: Knob, runs: Sequence[Swept], level: float) -> Plate:
        values = self.values
        marks: list[Mark] = []
        for run in runs:
            marks += _marks(run, values)
        ends = [float(values[0]), float(values[-1])]
        marks.append(Line(ends, [level] * 2, None, "broken below", width=1.0, dashed=True))
        chart = Chart(
            marks=tuple(marks),
            x=Axis(knob.words),
            y=Axis("return", "return on fresh episodes"),
            label=f"Return against {knob.words.rstrip(' ×=:')}; the table holds the numbers.",
            height=340,
            legend=True,
        )
        usual = "" if knob.usual is None else f" In training it is {knob.usual:g}."
        return Plate(
            "return",
            f"{suite.title}: where it breaks, by {knob.words.rstrip(' ×=:')}",
            f"Mean over seeds of the return after adapting at every value; shade: ± standard "
            f"error. Dashed, of the same colour: the z that was best in training.{usual}",
            (chart,),
        )

    def table(self, suite: Suite, knob: Knob, runs: Sequence[Swept], level: float) -> Table:
        every = np.concatenate([run.adapted.ravel() for run in runs])
        digits = decimals(every, suite.digits)
        columns = [Column(knob.words)]
        for run in runs:
            columns.append(Column(run.subject.label))
            if run.subject.method.latent.has_choice:
                columns.append(Column("default z"))
        rows = [
            Row((f"{value:g}", *(cell for run in runs for cell in _cells(run, p, digits))))
            for p, value in enumerate(self.values)
        ]
        return Table(
            f"{suite.title}: return against {knob.words.rstrip(' ×=:')}",
            tuple(columns),
            (tuple(rows),),
            "Mean ± standard error over seeds on fresh episodes, of the z chosen at that value; "
            "default z: the one that was best in training, no episode spent.",
        )

    def breaks_table(self, suite: Suite, knob: Knob, runs: Sequence[Swept], level: float) -> Table:
        digits = decimals([level], suite.digits)
        rows = []
        for run in runs:
            found = holds(self.values, run.adapted.mean(axis=0), level)
            rows.append(
                Row((run.subject.label, f"{run.unchanged:.{digits}f}", spans(found, self.values)))
            )
        return Table(
            f"{suite.title}: where each breaks",
            (Column("run", words=True), Column("unchanged"), Column(f"holds at {knob.words}")),
            (tuple(rows),),
            f"Holds: where the mean over seeds is at least {level:.{digits}f}, "
            f"{self.broken:.0%} of the unchanged return of {self._reference(runs)} (of costs, that "
            "much higher); between the values that were tried, by straight lines.",
        )

    def _reference(self, runs: Sequence[Swept]) -> str:
        singles = [run for run in runs if run.subject.method.name == BASELINE]
        return (singles or list(runs))[0].subject.label


def holds(values: np.ndarray, means: np.ndarray, level: float) -> list[tuple[float, float]]:
    """The stretches of values on which straight lines between the means are at least `level`."""
    found: list[tuple[float, float]] = []
    begun = float(values[0]) if means[0] >= level else None
    for i in range(len(values) - 1):
        left, right = means[i] >= level, means[i + 1] >= level
        if left == right:
            continue
        share = (level - means[i]) / (means[i + 1] - means[i])
        crossing = float(values[i] + share * (values[i + 1] - values[i]))
        if right:
            begun = crossing
        else:
            assert begun is not None
            found.append((begun, crossing))
            begun = None
    return found if begun is None else [*found, (begun, float(values[-1]))]


def spans(found: Sequence[tuple[float, float]], values: np.ndarray) -> str:
    """ "0.41 to 2 (the last value tried)" """
    if not found:
        return "nowhere"
    words = []
    for low, high in found:
        edges = f"{low:.3g} to {high:.3g}"
        ends = [low == values[0], high == values[-1]]
        words.append(f"{edges} (all that was tried)" if all(ends) else edges)
    return ", ".join(words)


def _marks(run: Swept, values: np.ndarray) -> list[Mark]:
    mean, label = run.adapted.mean(axis=0), run.subject.label
    hover = tuple(f"{label} at {x:g}: {y:g}" for x, y in zip(values, mean, strict=True))
    marks: list[Mark] = []
    if len(run.adapted) > 1:
        error = run.adapted.std(axis=0, ddof=1) / len(run.adapted) ** 0.5
        marks.append(Band(values, mean - error, mean + error, run.colour))
    marks.append(Line(values, mean, run.colour, label, hover, dot=5.0))
    if run.subject.method.latent.has_choice:
        default, words = run.default.mean(axis=0), f"{label}, default z"
        marks.append(Line(values, default, run.colour, words, width=1.4, opacity=0.7, dashed=True))
    return marks


def _cells(run: Swept, p: int, digits: int) -> list[str]:
    scores = run.adapted[:, p]
    spread = f" ± {scores.std(ddof=1) / len(scores) ** 0.5:.{digits}f}" if len(scores) > 1 else ""
    cells = [f"{scores.mean():.{digits}f}{spread}"]
    if run.subject.method.latent.has_choice:
        cells.append(f"{run.default[:, p].mean():.{digits}f}")
    return cells
