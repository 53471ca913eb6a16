"""Return against z for every change, and what adaptation makes of it: regret, and worst episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackline.adapt.adapter import MAX_CANDIDATES
from slackline.adapt.kshot import Adapted, Adapting
from slackline.analyses.analysis import (
    Analysis,
    Finding,
    Subject,
    chosen_variations,
    colours,
    common_suite,
)
from slackline.analyses.playing import Oracle, adapted, oracle, protocol, stage_of
from slackline.bench.stats import decimals
from slackline.io.decode import count
from slackline.report.chart import Axis, Chart, Diamonds, Line, Mark, Plate
from slackline.report.charts import MAX_THIN_LINES
from slackline.report.table import Column, Row, Table
from slackline.shown import counted
from slackline.suites.suite import TRAIN, Suite, Variation

FIRST = 2 * MAX_CANDIDATES
"""The number of the dense grid's first z, larger than any of an adaptation's, so that its episodes
differ from those."""


class Along(NamedTuple):
    """One run on V variations: a dense grid of z's, and adaptation beside it."""

    subject: Subject
    colour: int
    best: Oracle
    adapted: Adapted
    """Its returns as they are stored."""

    @property
    def returns(self) -> np.ndarray:
        """Mean return of every z, (S, V, P)."""
        return self.best.returns.mean(axis=-1)

    @property
    def episodes(self) -> str:
        """That every z of the grid was chosen by."""
        return counted(self.best.returns.shape[-1], "episode")

    @property
    def positions(self) -> np.ndarray:
        """Where z's stand on an axis."""
        on_a_line = self.subject.method.latent.is_line
        return self.best.zs[:, 0] if on_a_line else np.arange(len(self.best.zs))

    @property
    def scale(self) -> float:
        return self.subject.suite.display_scale

    @property
    def scores(self) -> np.ndarray:
        """Of the chosen z's, (S, V)."""
        return self.scale * self.adapted.scores.mean(axis=-1)

    @property
    def default(self) -> np.ndarray:
        """Of the default z, (S, V)."""
        assert self.adapted.default_scores is not None
        return self.scale * self.adapted.default_scores.mean(axis=-1)

    @property
    def regret(self) -> np.ndarray:
        """By how much the best z of the grid beats the chosen one, (S, V)."""
        return self.best.scores - self.scores

    @property
    def worst(self) -> np.ndarray:
        """The lowest return met while choosing, (S, V)."""
        return self.scale * self.adapted.returns.min(axis=-1)


@dataclass(frozen=True)
class AlongZ(Analysis):
    """Return against z for every change, on a dense grid of z's; and what the paper's K-shot rule
    makes of it: its score, its regret (how much better the best z of the grid is) and the worst
    episode it met while choosing."""

    name: ClassVar[str] = "z"
    summary: ClassVar[str] = "return against z, regret of K shots, the worst episode met"

    points: int = count(51, low=2, high=10_000)
    """z's of the dense grid."""
    shots: int | None = None
    """K of the adaptation. Default: the suite's protocol."""
    episodes: int | None = None
    """Its selection episodes of each z. Default: the suite's protocol."""
    score_episodes: int | None = None
    """Episodes of every z of the grid, and fresh ones of the chosen. Default: the suite's protocol,
    but no more than ten."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        chosen = chosen_variations(suite, variations)
        runs = [
            self.along(subject, colour, chosen)
            for subject, colour in zip(subjects, colours(subjects), strict=True)
        ]
        lines = [run for run in runs if len(run.best.zs) > 1]
        single = next((run for run in runs if not run.subject.method.latent.has_choice), None)
        return Finding(
            self.name,
            tuple(self.table(suite, run, chosen) for run in runs),
            tuple(self.plate(suite, run, single, chosen) for run in lines),
            {run.subject.label: numbers(run, chosen) for run in runs},
        )

    def adapting(self, suite: Suite) -> Adapting:
        return protocol(suite, self.shots, self.episodes, self.score_episodes)

    def along(self, subject: Subject, colour: int, variations: Sequence[Variation]) -> Along:
        """Play what one run needs."""
        adapting, latent = self.adapting(subject.suite), subject.method.latent
        grid = latent.grid(self.points)
        num = len(grid) * adapting.score_episodes
        stage = stage_of(subject.suite, subject.subspaces, variations, num)
        best = oracle(stage, grid, adapting.score_episodes, FIRST)
        return Along(subject, colour, best, adapted(subject, variations, adapting))

    def plate(
        self, suite: Suite, run: Along, single: Along | None, variations: Sequence[Variation]
    ) -> Plate:
        charts = [chart(run, single, v, variation) for v, variation in enumerate(variations)]
        return Plate(
            run.subject.file_name,
            f"{suite.title}: the return at every z",
            f"{run.subject.label}: {len(run.best.zs)} z's, {run.episodes} each. Bold: mean "
            "over seeds; thin: each seed. Diamonds: what K-shot adaptation chose, and "
            "its score on fresh episodes.",
            tuple(charts),
        )

    def table(self, suite: Suite, run: Along, variations: Sequence[Variation]) -> Table:
        num = self.adapting(suite).shots
        names = ["variation", "default z", f"K = {num}", "best z", "regret", "worst episode met"]
        digits = decimals(run.best.scores, suite.digits)
        measures = (run.default, run.scores, run.best.scores, run.regret)
        rows = [
            Row((v.name, *(f"{m[:, i].mean():.{digits}f}" for m in measures), _low(run, i, digits)))
            for i, v in enumerate(variations)
        ]
        average = Row(
            ("average", *(f"{m.mean():.{digits}f}" for m in measures), _low(run, None, digits)),
            kind="strong",
        )
        return Table(
            f"{suite.title}: {run.subject.label}, {counted(len(run.scores), 'seed')}",
            tuple(Column(name, words=i == 0) for i, name in enumerate(names)),
            (tuple(rows), (average,)),
            f"Means over seeds, on fresh episodes. Best z: of {len(run.best.zs)}, chosen by "
            f"{run.episodes} each. Regret: by how much it beats the z that "
            "K shots chose. Worst episode met: the lowest return of a seed while it chose.",
        )


def _low(run: Along, variation: int | None, digits: int) -> str:
    worst = run.worst if variation is None else run.worst[:, variation]
    return f"{worst.min():.{digits}f}"


def chart(run: Along, single: Along | None, v: int, variation: Variation) -> Chart:
    mean, seeds = run.returns[:, v].mean(axis=0), run.subject.config.seeds
    marks: list[Mark] = [*_thin(run, v)]
    marks.append(
        Line(run.positions, mean, run.colour, "mean over seeds" if len(seeds) > 1 else "return")
    )
    if single is not None:
        level, ends = float(single.scores[:, v].mean()), [run.positions[0], run.positions[-1]]
        marks.append(Line(ends, [level] * 2, single.colour, single.subject.label, dashed=True))
    marks.append(_choices(run, v))
    on_a_line = run.subject.method.latent.is_line
    return Chart(
        marks=tuple(marks),
        x=Axis(
            "z" if on_a_line else "candidate", ticks=(0, 0.25, 0.5, 0.75, 1) if on_a_line else ()
        ),
        y=Axis("", "return"),
        label=f"Return against z on {variation.name}: highest, {mean.max():g}, at "
        f"{run.positions[mean.argmax()]:g}.",
        height=220,
        name=variation.name,
        note=variation.description if variation.name != TRAIN.name else "",
    )


def _thin(run: Along, v: int) -> list[Line]:
    rows = run.returns[:, v]
    if not 1 < len(rows) <= MAX_THIN_LINES:
        return []
    return [
        Line(run.positions, row, run.colour, "one seed", width=1.0, opacity=0.35) for row in rows
    ]


def _choices(run: Along, v: int) -> Diamonds:
    z, scores = run.adapted.z[:, v], run.scores[:, v]
    latent, zs = run.subject.method.latent, run.best.zs
    nearest = np.square(z[:, None] - zs).sum(axis=-1).argmin(axis=1)
    where = z[:, 0] if latent.is_line else run.positions[nearest]
    hover = tuple(
        f"seed {seed} chose {latent.show(each)}, which scores {score:g}"
        for seed, each, score in zip(run.subject.config.seeds, z, scores, strict=True)
    )
    return Diamonds(where, scores, run.colour, "what a seed chose", hover, size=7.0, filled=True)


def numbers(run: Along, variations: Sequence[Variation]) -> dict:
    return {
        "variations": [v.name for v in variations],
        "seeds": list(run.subject.config.seeds),
        "z": run.best.zs,
        "returns": run.returns,
        "chosen_z": run.adapted.z,
        "default": run.default,
        "k_shot": run.scores,
        "best": run.best.scores,
        "regret": run.regret,
        "worst_episode": run.worst,
    }
