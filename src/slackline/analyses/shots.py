"""Return against K: how much trying more policies gains, and how much there is to gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from slackline.analyses.analysis import (
    Analysis,
    Finding,
    Subject,
    chosen_variations,
    colours,
    common_suite,
)
from slackline.analyses.playing import Stage, oracle, protocol, stage_of
from slackline.bench.stats import decimals
from slackline.io.decode import count
from slackline.methods.latent import Latent, OneHot
from slackline.report.chart import Axis, Band, Chart, Line, Mark, Plate
from slackline.report.table import Column, Row, Table
from slackline.shown import counted
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation

COLUMNS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""The K's of the table, as far as they were tried."""


class Curve(NamedTuple):
    """One run. Axes: seed S, variation V, K."""

    scores: np.ndarray
    """Mean return of the best of K random z's on fresh episodes, over all draws, (S, V, K)."""
    oracle: np.ndarray
    """That of the best z of a dense grid, (S, V)."""


@dataclass(frozen=True)
class Shots(Analysis):
    """Return against K, from 1 to 100: K random z's are tried, the best is kept and scored on fresh
    episodes; averaged over draws of the z's, variations and seeds. Dashed: the best z of a dense
    grid, which no adaptation could afford to find."""

    name: ClassVar[str] = "shots"
    summary: ClassVar[str] = "return against K, and the best z there is"

    most: int = count(100, high=10_000)
    """The largest K."""
    draws: int = count(10, high=10_000)
    """How many times K random z's are drawn."""
    points: int = count(51, high=10_000)
    """z's of the dense grid."""
    episodes: int | None = None
    """Selection episodes of every z. Default: the suite's protocol."""
    score_episodes: int | None = None
    """Fresh episodes of those that are kept, and episodes of every z of the dense grid. Default:
    the suite's protocol, but no more than ten."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        chosen = chosen_variations(suite, variations)
        curves = [self.curve(subject, chosen) for subject in subjects]
        numbers = {
            subject.label: {
                "variations": [v.name for v in chosen],
                "seeds": list(subject.config.seeds),
                "by_shots": curve.scores,
                "oracle": curve.oracle,
            }
            for subject, curve in zip(subjects, curves, strict=True)
        }
        figures = (
            self.plate(suite, subjects, curves, chosen),
            self.plate_by_variation(suite, subjects, curves, chosen),
        )
        return Finding(self.name, (self.table(suite, subjects, curves),), figures, numbers)

    def curve(self, subject: Subject, variations: Sequence[Variation]) -> Curve:
        """Play what one run needs."""
        adapting = protocol(subject.suite, self.most, self.episodes, self.score_episodes)
        latent = subject.method.latent
        zs = np.stack([random_zs(each, self.draws, self.most) for each in subject.subspaces])
        num_seeds, num_draws, most, size = zs.shape
        num = num_draws * most * adapting.episodes
        stage = stage_of(subject.suite, subject.subspaces, variations, num)
        flat = zs.reshape(num_seeds, num_draws * most, size)
        tried = stage.tried(flat, adapting.episodes).mean(axis=-1)
        kept = best_so_far(tried.reshape(*tried.shape[:2], num_draws, most))
        scores = self.scored(stage, flat, kept, adapting.score_episodes)
        grid = latent.grid(self.points)
        best = oracle(stage, grid, adapting.score_episodes, first=num_draws * most)
        return Curve(scores.mean(axis=2), best.scores)

    def scored(self, stage: Stage, zs: np.ndarray, kept: np.ndarray, episodes: int) -> np.ndarray:
        """Mean fresh return (S, V, D, K) of the z's (S, D × K, size) that were kept: their numbers
        `kept` (S, V, D, K) within each draw. Each is played once, however often it was kept."""
        num_draws, most = kept.shape[2:]
        places = kept + (np.arange(num_draws) * most)[:, None]
        flat = places.reshape(*places.shape[:2], -1)
        distinct, which = first_of_each(flat)
        seed = np.arange(len(zs))[:, None, None]
        scores = stage.fresh(zs[seed, distinct], episodes).mean(axis=-1)
        return np.take_along_axis(scores, which, axis=2).reshape(kept.shape)

    def plate(
        self,
        suite: Suite,
        subjects: Sequence[Subject],
        curves: Sequence[Curve],
        variations: Sequence[Variation],
    ) -> Plate:
        """The average over all variations."""
        means = [Curve(c.scores.mean(axis=1), c.oracle.mean(axis=1)) for c in curves]
        return Plate(
            "average",
            f"{suite.title}: return against K",
            f"The best of K random z's, averaged over {counted(self.draws, 'draw')} and "
            f"{len(variations)} variations, on fresh episodes. Shade: ± standard error over seeds. "
            f"Dashed: the best z of {self.points}.",
            (chart(subjects, means, "", "", 320),),
        )

    def plate_by_variation(
        self,
        suite: Suite,
        subjects: Sequence[Subject],
        curves: Sequence[Curve],
        variations: Sequence[Variation],
    ) -> Plate:
        charts = [
            chart(
                subjects,
                [Curve(c.scores[:, v], c.oracle[:, v]) for c in curves],
                variation.name,
                variation.description,
                220,
            )
            for v, variation in enumerate(variations)
        ]
        return Plate(
            "variations",
            f"{suite.title}: return against K, change by change",
            f"The best of K random z's over {counted(self.draws, 'draw')}. Dashed: the best of "
            f"{self.points}.",
            tuple(charts),
        )

    def table(self, suite: Suite, subjects: Sequence[Subject], curves: Sequence[Curve]) -> Table:
        shown = [k for k in COLUMNS if k <= max(c.scores.shape[2] for c in curves)]
        names = ["run", "seeds", *(f"K = {k}" for k in shown), "best z", "still to gain at K = 10"]
        digits = decimals(np.concatenate([c.oracle.ravel() for c in curves]), suite.digits)
        rows = [
            Row((s.label, str(len(c.scores)), *_cells(c, shown, digits)))
            for s, c in zip(subjects, curves, strict=True)
        ]
        return Table(
            f"{suite.title}: mean return of the best of K random z's",
            tuple(Column(name, words=i == 0) for i, name in enumerate(names)),
            (tuple(rows),),
            "On fresh episodes, averaged over seeds, variations and "
            f"{counted(self.draws, 'draw')}. Best z: of {self.points} on a grid, chosen by many "
            "episodes and scored on others.",
        )


def _cells(curve: Curve, shown: Sequence[int], digits: int) -> list[str]:
    mean, best = curve.scores.mean(axis=(0, 1)), curve.oracle.mean()
    cells = [f"{mean[k - 1]:.{digits}f}" if k <= len(mean) else "–" for k in shown]
    short = best - mean[min(10, len(mean)) - 1]
    return [*cells, f"{best:.{digits}f}", f"{short:.{digits}f}"]


def random_zs(subspace: Subspace, num_draws: int, most: int) -> np.ndarray:
    """z's as in training, (D, K, size); of finitely many policies each comes once."""
    latent, key = subspace.method.latent, jax.random.key(subspace.seed)
    if not latent.has_choice:
        return np.zeros((1, 1, 0), np.float32)
    draws = (one_draw(latent, jax.random.fold_in(key, i), most) for i in range(num_draws))
    return np.stack([np.asarray(draw, np.float32) for draw in draws])


def one_draw(latent: Latent, key: jax.Array, most: int) -> Any:
    """z's of one draw, (K, size)."""
    if isinstance(latent, OneHot):
        return np.eye(latent.size)[np.asarray(jax.random.permutation(key, latent.size))[:most]]
    return latent.sample(key, most)


def best_so_far(returns: np.ndarray) -> np.ndarray:
    """For every K, the index of the best of the first K along the last axis; of ties the first."""
    highest = np.maximum.accumulate(returns, axis=-1)
    index = np.arange(returns.shape[-1])
    is_new = np.concatenate(
        [np.ones_like(highest[..., :1], bool), highest[..., 1:] > highest[..., :-1]], axis=-1
    )
    return np.maximum.accumulate(np.where(is_new, index, 0), axis=-1)


def first_of_each(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the distinct numbers of every row (S, V, W), filled up with the first; where each of the
    numbers (S, V, n) is among them)"""
    rows = [np.unique(row, return_inverse=True) for row in numbers.reshape(-1, numbers.shape[-1])]
    most = max(len(distinct) for distinct, _ in rows)
    filled = [np.append(d, np.repeat(d[:1], most - len(d))) for d, _ in rows]
    shape = numbers.shape[:-1]
    return np.reshape(filled, (*shape, most)), np.reshape([w for _, w in rows], numbers.shape)


def chart(
    subjects: Sequence[Subject], curves: Sequence[Curve], name: str, note: str, height: int
) -> Chart:
    """Of curves without variations: scores (S, K), oracle (S,)."""
    most = max(curve.scores.shape[1] for curve in curves)
    marks: list[Mark] = []
    for subject, curve, colour in zip(subjects, curves, colours(subjects), strict=True):
        marks += _marks(subject, curve, colour, most)
    return Chart(
        marks=tuple(marks),
        x=Axis("K", "K: how many random z's were tried", decimals=0),
        y=Axis("return", "return on fresh episodes"),
        label=f"Return against K{f' on {name}' if name else ''}, and of the best z there is.",
        height=height,
        name=name,
        note=note,
        legend=not name,
    )


def _marks(subject: Subject, curve: Curve, colour: int, most: int) -> list[Mark]:
    mean, label = curve.scores.mean(axis=0), subject.label
    if len(mean) == 1:  # one policy: nothing to choose from
        return [Line([1, most], np.repeat(mean, 2), colour, label, width=1.8)]
    shots = np.arange(1, len(mean) + 1)
    hover = tuple(f"{label}, K = {k}: {value:g}" for k, value in zip(shots, mean, strict=True))
    marks: list[Mark] = [Line(shots, mean, colour, label, hover)]
    if len(curve.scores) > 1:
        error = curve.scores.std(axis=0, ddof=1) / len(curve.scores) ** 0.5
        marks.insert(0, Band(shots, mean - error, mean + error, colour))
    best = float(curve.oracle.mean())
    dashed = Line([1, most], [best, best], colour, "the best z of each", width=1.6, dashed=True)
    return [*marks, dashed]
