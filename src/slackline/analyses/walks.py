"""Where the policies of a subspace walk in mazes: the paper's pictures of Maze2d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackline.analyses.analysis import Analysis, Finding, Picture, Subject, common_suite
from slackline.analyses.strips import seed_of
from slackline.drawing.sheet import file_of, styled
from slackline.errors import SlacklineError
from slackline.io.decode import count
from slackline.report.table import Column, Row, Table
from slackline.report.trajectories import MAX_COLUMNS, Walks, layout_of, sheet_of, title_of, walks
from slackline.subspace import Subspace
from slackline.suites.suite import TRAIN


@dataclass(frozen=True)
class WalksOfPolicies(Analysis):
    """Where K policies walk in the training corridor and in every maze: rows are mazes, columns
    policies, darker tiles more steps."""

    name: ClassVar[str] = "walks"
    summary: ClassVar[str] = "where K policies walk in every maze"

    shots: int = count(10, high=MAX_COLUMNS)
    """How many policies."""
    seed: int | None = None
    """Which seed of the run. Default: the first."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        wanted = [suite.variation(name).name for name in dict.fromkeys(variations)]
        tables, figures, numbers = [], [], {}
        for subject in subjects:
            subspace = seed_of(subject, self.seed)
            found = only(walks(subspace, self.shots, suite), wanted)
            with styled():
                sheet = sheet_of(layout_of(found), title_of(subspace))
                figures.append(Picture(subject.file_name, file_of(sheet.figure)))
            tables.append(table(subspace, found))
            numbers[subject.label] = {
                "seed": subspace.seed,
                "mazes": found.mazes,
                "z": found.zs,
                "return": found.returns,
                "arrived": found.arrived,
            }
        return Finding(self.name, tuple(tables), tuple(figures), numbers)


def only(found: Walks, mazes: Sequence[str]) -> Walks:
    """The training corridor and the mazes that were named; all if none was."""
    if not mazes:
        return found
    rows = [i for i, name in enumerate(found.mazes) if name in (TRAIN.name, *mazes)]
    if len(rows) < 2:
        raise SlacklineError(f"variation is {mazes[0]!r}; it must be one of the suite's mazes")
    return found._replace(
        mazes=tuple(found.mazes[i] for i in rows),
        **{name: getattr(found, name)[rows] for name in ("walls", "visits", "returns", "arrived")},
    )


def table(subspace: Subspace, found: Walks) -> Table:
    rows = [
        Row(
            (maze, *(found.caption(v, k) for k in range(len(found.zs)))),
            best=frozenset(k + 1 for k in range(len(found.zs)) if found.is_best(v, k)),
        )
        for v, maze in enumerate(found.mazes)
    ]
    arrived = np.asarray(found.arrived).sum(axis=1)
    return Table(
        f"{title_of(subspace)}: the return of every policy",
        (Column("maze", words=True), *(Column(label) for label in found.labels)),
        (tuple(rows),),
        "Stuck: the goal was not reached. Of "
        f"{len(found.zs)} policies arrive, by maze: {', '.join(map(str, arrived))}.",
    )
