"""β against the return, in training and after adapting: what the auxiliary term costs and gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackline.analyses.analysis import Analysis, Finding, Subject, common_suite
from slackline.analyses.chosen import result_of
from slackline.bench.stats import decimals
from slackline.drawing.sheet import NUM_COLOURS
from slackline.errors import SlacklineError
from slackline.io.decode import number
from slackline.methods.catalogue import CATALOGUE
from slackline.report.chart import Axis, Bars, Chart, Line, Plate
from slackline.report.charts import (
    colour_index,
    mean_over_seeds,
    thinned_curve,
    where_episodes_ended,
)
from slackline.report.results import SuiteResult
from slackline.report.table import Column, Row, Table
from slackline.suites.suite import Suite


class AtBeta(NamedTuple):
    """One run: a method at one β."""

    subject: Subject
    result: SuiteResult
    beta: float | None
    """None: the method has none."""
    names: tuple[str, ...]
    """The variations that count."""
    last: float
    """The share of the training whose returns count as the final ones."""

    @property
    def title(self) -> str:
        """Of the method, whatever β is."""
        return CATALOGUE[self.subject.method.name].title

    @property
    def shown_beta(self) -> str:
        return "–" if self.beta is None else f"{self.beta:g}"

    @property
    def training(self) -> np.ndarray:
        """Mean return at the end of the training, by seed (S,)."""
        steps, returns = self.result.runs[0].curve()
        if not len(steps):  # made of another run's policies
            return np.full(len(self.result.runs[0].config.seeds), np.nan)
        end = returns[steps > (1.0 - self.last) * steps[-1]]
        return mean_over_seeds(end)

    def adapted(self, shots: int) -> np.ndarray | None:
        """Average score over the changes, by seed (S,); None if it was not measured with this K
        on every one of them: averages of fewer would be of other changes than those beside."""
        measured = self.result.variations(shots) if shots in self.result.shots else []
        if not self.names or not set(self.names) <= set(measured):
            return None
        columns = [measured.index(name) for name in self.names]
        return self.result.matrix(self.subject.method.name, shots)[:, columns].mean(axis=1)

    def unchanged(self, shots: int) -> np.ndarray | None:
        """The score on the training environment itself, by seed (S,)."""
        return self.result.train_scores(self.subject.method.name, shots)


@dataclass(frozen=True)
class Beta(Analysis):
    """β against the return while training and after adapting, and the training curves by β. Give it
    runs of one suite that differ in β (`slackline bench --betas 0.1 1 10`, or `train --beta`).
    Reads what runs keep, and plays nothing."""

    name: ClassVar[str] = "beta"
    summary: ClassVar[str] = "β against training and adapted return, training curves by β"
    plays: ClassVar[bool] = False

    last: float = number(0.1, above=0.0, high=1.0)
    """The share of the training, from its end, whose returns are averaged."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        results = [result_of(subject, suite) for subject in subjects]
        for name in variations:
            results[0].suite.variation(name)  # refuses what is none
        every = [name for result in results for k in result.shots for name in result.variations(k)]
        names = tuple(dict.fromkeys(variations or every))
        pairs = zip(subjects, results, strict=True)
        runs = [self.at_beta(subject, result, names) for subject, result in pairs]
        runs.sort(key=lambda run: (list(CATALOGUE).index(run.subject.method.name), run.beta or 0.0))
        if not any(run.beta is not None for run in runs):
            raise SlacklineError("none of the runs is of a method with a β (option beta)")
        shots = sorted({k for run in runs for k in run.result.shots})
        figures = (plate(suite, runs, shots), curves_plate(suite, runs))
        return Finding(self.name, (self.table(suite, runs, shots),), figures, numbers(runs, shots))

    def at_beta(self, subject: Subject, result: SuiteResult, names: tuple[str, ...]) -> AtBeta:
        beta = subject.config.spelt_out.options.get("beta")
        return AtBeta(subject, result, beta, names, self.last)

    def table(self, suite: Suite, runs: Sequence[AtBeta], shots: Sequence[int]) -> Table:
        names = ["method", "β", "seeds", "return at the end of training", "unchanged"]
        every = [run.training for run in runs]
        digits = decimals(np.concatenate(every), suite.digits)
        rows = [
            Row(
                (
                    run.title,
                    run.shown_beta,
                    str(len(run.training)),
                    shown(run.training, digits),
                    shown(next(filter(lambda x: x is not None, map(run.unchanged, shots)), None),
                          digits),
                    *(shown(run.adapted(k), digits) for k in shots),
                )
            )
            for run in runs
        ]  # fmt: skip
        return Table(
            f"{suite.title}: β and the return",
            tuple(
                Column(name, words=name == "method")
                for name in (*names, *(f"K = {k}" for k in shots))
            ),
            (tuple(rows),),
            f"Mean ± standard error over seeds. End of training: its last {self.last:.0%}. "
            "Unchanged and K: fresh episodes of the chosen z, on the training environment and on "
            f"average over {', '.join(runs[0].names)}; –: not measured on all of them "
            "(--variation takes some).",
        )


def shown(values: np.ndarray | None, digits: int) -> str:
    """Mean ± standard error over seeds."""
    if values is None or not np.isfinite(values).any():
        return "–"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = np.nanstd(values, ddof=1) / len(values) ** 0.5
    return f"{np.nanmean(values):.{digits}f} ± {error:.{digits}f}"


def plate(suite: Suite, runs: Sequence[AtBeta], shots: Sequence[int]) -> Plate:
    """Bars by β: a chart for the training return, one for every K."""
    measures = [("while training", [run.training for run in runs])]
    measures += [(f"changed, K = {k}", [run.adapted(k) for run in runs]) for k in shots]
    betas = sorted({run.beta for run in runs if run.beta is not None})
    charts = tuple(bars_chart(name, runs, values, betas) for name, values in measures)
    return Plate(
        "returns",
        f"{suite.title}: the return by β",
        "At the end of the training, and after adapting, on average over the changes. Whiskers: ± "
        "standard error over seeds.",
        charts,
    )


def bars_chart(
    name: str, runs: Sequence[AtBeta], values: Sequence[np.ndarray | None], betas: list[float]
) -> Chart:
    marks: list[Any] = []
    for method in dict.fromkeys(run.subject.method.name for run in runs):
        own = {
            run.beta: value
            for run, value in zip(runs, values, strict=True)
            if run.subject.method.name == method and value is not None
        }
        title, colour = CATALOGUE[method].title, colour_index(CATALOGUE[method])
        if None in own:  # without β: the same for all
            level = float(np.nanmean(own[None]))
            marks.append(
                Line([-0.5, len(betas) - 0.5], [level] * 2, colour, title, dashed=True, width=1.8)
            )
            continue
        means = [float(np.nanmean(own[b])) if b in own else np.nan for b in betas]
        errors = [_error(own[b]) if b in own else 0.0 for b in betas]
        hover = tuple(f"{title}, β = {b:g}: {m:g}" for b, m in zip(betas, means, strict=True))
        marks.append(
            Bars(range(len(betas)), means, colour, title, hover, errors=errors, group=method)
        )
    return Chart(
        marks=tuple(marks),
        x=Axis(long_title="β", names=tuple(f"{b:g}" for b in betas)),
        y=Axis("return", from_zero=True),
        label=f"Return by β, {name}.",
        height=90 + 60 * len(betas),
        name=name,
        whiskers="± standard error over seeds",
    )


def _error(values: np.ndarray) -> float:
    return float(np.nanstd(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def curves_plate(suite: Suite, runs: Sequence[AtBeta]) -> Plate:
    """Training curves: a chart a method, a line a β."""
    betas = sorted({run.beta for run in runs if run.beta is not None})
    charts = []
    for method in dict.fromkeys(run.subject.method.name for run in runs if run.beta is not None):
        own = [run for run in runs if run.subject.method.name == method]
        charts.append(curves_chart(method, own, betas))
    return Plate(
        "training",
        f"Learning the unchanged {suite.title}, by β",
        "Mean over seeds of the return while training.",
        tuple(charts),
    )


def curves_chart(method: str, runs: Sequence[AtBeta], betas: list[float]) -> Chart:
    lines = []
    for run in runs:
        assert run.beta is not None
        steps, returns = where_episodes_ended(*thinned_curve(run.result.runs[0]))
        colour = (betas.index(run.beta) + 2) % NUM_COLOURS
        lines.append(Line(steps, mean_over_seeds(returns.T), colour, f"β = {run.beta:g}"))
    title = CATALOGUE[method].title
    return Chart(
        marks=tuple(lines),
        x=Axis("environment steps per seed", from_zero=True, large=True),
        y=Axis("return", "return while training"),
        label=f"Training curves of {title} by β.",
        height=260,
        name=title,
        legend=True,
    )


def numbers(runs: Sequence[AtBeta], shots: Sequence[int]) -> dict[str, Any]:
    return {
        f"{run.title}, β = {run.shown_beta}": {
            "seeds": list(run.subject.config.seeds),
            "training": run.training,
            **{f"K = {k}": values for k in shots if (values := run.adapted(k)) is not None},
        }
        for run in runs
    }
