"""How far apart the anchors are, and the return between them, while the run was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackline.analyses.analysis import Analysis, Finding, Subject, colours, common_suite
from slackline.analyses.playing import stage_of
from slackline.errors import SlacklineError
from slackline.io.decode import count
from slackline.methods.auxiliary import CosinePenalty
from slackline.networks.geometry import Geometry, geometry
from slackline.report.chart import Axis, Chart, Line, Mark, Plate
from slackline.report.charts import MAX_THIN_LINES
from slackline.report.table import Column, Row, Table
from slackline.shown import counted
from slackline.suites.suite import TRAIN, Suite

LOGGED = ("cosine", "distance")
"""What the training logs of the anchors: means over pairs."""


class Snapshot(NamedTuple):
    """The return along the subspace at one moment of the training."""

    steps: int
    returns: np.ndarray
    """Mean return of every z, (S, P)."""


class Apart(NamedTuple):
    """One run."""

    subject: Subject
    colour: int
    final: list[Geometry]
    """Of the pairs of every seed, at the end."""
    steps: np.ndarray
    """Of the log, (P,)."""
    logged: dict[str, np.ndarray]
    """Cosine and distance over training, (P, S), as far as they are known."""
    from_penalty: bool
    """Whether the cosine is the size of it, worked out from the penalty of the loss."""
    zs: np.ndarray
    snapshots: list[Snapshot]

    def end(self, name: str) -> np.ndarray:
        """By seed, the mean over pairs, (S,)."""
        return np.array([getattr(each, name).mean() for each in self.final])


@dataclass(frozen=True)
class AnchorsApart(Analysis):
    """Cosine and distance between the anchors, and the return along the subspace on the training
    environment, over the training: as far as the run kept them (`train --snapshots 10` keeps the
    policies at ten moments)."""

    name: ClassVar[str] = "anchors"
    summary: ClassVar[str] = "how far apart the anchors are, and the return between them"

    points: int = count(21, low=2, high=10_000)
    """z's that the return is measured at."""
    episodes: int = count(10, high=10_000)
    """Episodes of each."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        if variations:
            raise SlacklineError(
                "this analysis plays on the training environment alone; leave --variation out"
            )
        suite = common_suite(subjects)
        runs = [
            self.apart(subject, colour)
            for subject, colour in zip(subjects, colours(subjects), strict=True)
        ]
        figures = [*filter(None, (over_training(suite, runs, name) for name in LOGGED))]
        figures += [self.along(suite, run) for run in runs]
        numbers = {run.subject.label: numbers_of(run) for run in runs}
        return Finding(self.name, (table(suite, runs),), tuple(figures), numbers)

    def apart(self, subject: Subject, colour: int) -> Apart:
        final = [geometry(each.policy).pairs for each in subject.subspaces]
        if not final[0].cosine.size:
            raise SlacklineError(
                f"{subject.run.path}: is a {subject.method.name} run with one anchor; there is "
                "nothing between"
            )
        steps, logged, from_penalty = log_of(subject)
        zs = subject.method.latent.grid(self.points)
        snapshots = [self.snapshot(subject, zs, *each) for each in kept(subject)]
        return Apart(subject, colour, final, steps, logged, from_penalty, zs, snapshots)

    def snapshot(
        self, subject: Subject, zs: np.ndarray, steps: int, subspaces: list[Any]
    ) -> Snapshot:
        """Play every z on the training environment."""
        stage = stage_of(subject.suite, subspaces, [TRAIN], len(zs) * self.episodes)
        every = np.broadcast_to(zs, (stage.num_seeds, *zs.shape))
        return Snapshot(steps, stage.tried(every, self.episodes)[:, 0].mean(axis=-1))

    def along(self, suite: Suite, run: Apart) -> Plate:
        """Return against z, a line a snapshot, later ones stronger."""
        latent = run.subject.method.latent
        where = run.zs[:, 0] if latent.is_line else np.arange(len(run.zs))
        num = len(run.snapshots)
        lines = [
            Line(
                where,
                each.returns.mean(axis=0),
                run.colour,
                f"after {each.steps:,} steps",
                opacity=0.25 + 0.75 * (i + 1) / num,
                width=1.4 + (i == num - 1),
                dashed=i % 2 == 1,
            )
            for i, each in enumerate(run.snapshots)
        ]
        chart = Chart(
            marks=tuple(lines),
            x=Axis("z" if latent.is_line else "candidate"),
            y=Axis("return", "return on the training environment"),
            label="Return along the subspace at moments of the training.",
            height=320,
            legend=True,
        )
        only = "" if num > 1 else " Only the end was kept (train --snapshots 10 keeps more)."
        return Plate(
            f"return-{run.subject.file_name}",
            f"{suite.title}: the return between the anchors, over training",
            f"{run.subject.label}; mean over seeds, {counted(self.episodes, 'episode')} a z. Later "
            f"moments are stronger.{only}",
            (chart,),
        )


def log_of(subject: Subject) -> tuple[np.ndarray, dict[str, np.ndarray], bool]:
    """(steps (P,), what the log says of the anchors (P, S), whether it was worked out)"""
    lines = subject.run.read_progress()
    steps = np.array([line["steps"] for line in lines], float)
    found = {
        name: np.array([line[name] for line in lines], float)
        for name in LOGGED
        if lines and all(name in line for line in lines)
    }
    auxiliary, logged = subject.method.auxiliary, all("penalty" in line for line in lines)
    unknown = lines and logged and "cosine" not in found
    if unknown and isinstance(auxiliary, CosinePenalty) and auxiliary.beta > 0.0:
        squared = np.array([line["penalty"] for line in lines], float) / auxiliary.beta
        pairs = len(geometry(subject.subspaces[0].policy).pairs.cosine)
        return steps, {"cosine": np.sqrt(np.maximum(squared / pairs, 0.0))}, True
    return steps, found, False


def kept(subject: Subject) -> list[tuple[int, list[Any]]]:
    """(steps, subspaces) of the moments that the run kept, its end last."""
    done, each = subject.config.iterations, subject.config.hyper.steps_per_iteration
    moments = {**subject.run.snapshots(), done: subject.subspaces}
    return [(i * each, moments[i]) for i in sorted(moments)]


def over_training(suite: Suite, runs: Sequence[Apart], name: str) -> Plate | None:
    """A line a run; None where no run knows."""
    marks: list[Mark] = []
    for run in runs:
        if name not in run.logged:
            continue
        values, label = run.logged[name], run.subject.label
        label += " (size, from the penalty)" if run.from_penalty and name == "cosine" else ""
        if 1 < values.shape[1] <= MAX_THIN_LINES:
            marks += [
                Line(run.steps, column, run.colour, width=0.8, opacity=0.3) for column in values.T
            ]
        marks.append(Line(run.steps, values.mean(axis=1), run.colour, label))
    if not marks:
        return None
    title = {"cosine": "cosine between anchors", "distance": "distance between anchors"}[name]
    chart = Chart(
        marks=tuple(marks),
        x=Axis("environment steps per seed", from_zero=True, large=True),
        y=Axis(title, from_zero=name == "distance"),
        label=f"The {title} over training.",
        height=320,
        legend=True,
    )
    of_what = {
        "cosine": "Tensor by tensor, averaged over tensors and pairs.",
        "distance": "Of all weights as one vector, averaged over pairs.",
    }
    subtitle = f"{of_what[name]} Bold: mean over seeds."
    return Plate(name, f"{suite.title}: the {title}", subtitle, (chart,))


def table(suite: Suite, runs: Sequence[Apart]) -> Table:
    names = ["run", "seeds", "anchors", "cosine by tensor", "cosine", "angle", "distance"]
    rows = []
    for run in runs:
        cosine = run.end("cosine")
        angles = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
        cells = [(run.end("by_tensor"), 2), (cosine, 2), (angles, 0), (run.end("distance"), 2)]
        anchors = run.subject.method.latent.num_anchors
        words = [run.subject.label, str(len(cosine)), str(anchors)]
        rows.append(Row((*words, *(spread(values, digits) for values, digits in cells))))
    return Table(
        f"{suite.title}: the anchors after training",
        tuple(Column(name, words=i == 0) for i, name in enumerate(names)),
        (tuple(rows),),
        "Means over pairs; ± standard deviation over seeds. By tensor: each tensor by itself, then "
        "averaged, as the paper's penalty; the others are of all weights as one vector. Angles in "
        "degrees.",
    )


def spread(values: np.ndarray, digits: int) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def numbers_of(run: Apart) -> dict[str, Any]:
    return {
        "seeds": list(run.subject.config.seeds),
        "final": {name: run.end(name) for name in Geometry._fields},
        "steps": run.steps,
        **run.logged,
        "z": run.zs,
        "returns": {str(each.steps): each.returns for each in run.snapshots},
    }
