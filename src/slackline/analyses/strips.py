"""Strips of stills: K policies on one change, time to the right. `slackline watch` makes films."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from slackline.analyses.analysis import Analysis, Finding, Picture, Subject, common_suite
from slackline.errors import unknown
from slackline.io.decode import count
from slackline.methods.latent import Latent
from slackline.report.table import Column, Row, Table
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation
from slackline.watch.strip import strip_png
from slackline.watch.watched import Watched, watch

PAPER = {"halfcheetah": ("BigShins", "HugeTorso"), "ant": ("DefectiveSensor 20%",)}
"""The changes that the paper shows stills of, by suite."""
FEW = 3
"""Of other suites, so many variations are shown."""


@dataclass(frozen=True)
class Strips(Analysis):
    """Stills of K policies on a changed environment, a row a policy and time to the right, with
    what each returned; the best is framed. Without --variation: the changes that the paper shows,
    or the suite's first three."""

    name: ClassVar[str] = "strips"
    summary: ClassVar[str] = "stills of K policies on a change, time to the right"

    shots: int = count(5, high=16)
    """How many policies."""
    seed: int | None = None
    """Which seed of the run. Default: the first."""
    steps: int | None = None
    """How many steps to show; returns are of the whole episode all the same."""

    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        suite = common_suite(subjects)
        chosen = [suite.variation(name) for name in dict.fromkeys(variations)] or usual(suite)
        tables, figures, numbers = [], [], {}
        for subject in subjects:
            subspace = seed_of(subject, self.seed)
            zs = subspace.method.latent.drawn_by(subspace.seed).candidates(self.shots)
            for variation in chosen:
                watched = watch(subspace, variation, zs, self.steps)
                name = f"{subject.file_name}-{file_name(variation.name)}"
                figures.append(Picture(name, strip_png(watched)))
                tables.append(table_of(watched, subspace.method.latent, zs))
                numbers[f"{subject.label}, {variation.name}"] = {
                    "seed": subspace.seed,
                    "z": zs,
                    "return": suite.display_scale * watched.episodes.returns,
                    "steps": watched.episodes.lengths,
                }
        return Finding(self.name, tuple(tables), tuple(figures), numbers)


def usual(suite: Suite) -> list[Variation]:
    names = PAPER.get(suite.name) or [v.name for v in suite.variations[:FEW]] or ["Train"]
    return [suite.variation(name) for name in names]


def seed_of(subject: Subject, seed: int | None) -> Subspace:
    """One seed of the run, with the suite whose variations are played as its home."""
    by_seed = {each.seed: each for each in subject.subspaces}
    seed = next(iter(by_seed)) if seed is None else seed
    if seed not in by_seed:
        raise unknown(f"seed of {subject.run.path}", str(seed), map(str, by_seed))
    return replace(by_seed[seed], home=subject.suite)


def file_name(variation: str) -> str:
    """DefectiveSensor 5% -> DefectiveSensor-5"""
    return re.sub(r"[^A-Za-z0-9.]+", "-", variation).strip("-")


def table_of(watched: Watched, latent: Latent, zs: np.ndarray) -> Table:
    """z and return, a row a policy."""
    names = ["policy", "z", "return", *["shown"] * watched.partial, "steps", ""]
    whole, shown = watched.returns(), watched.returns(watched.shown)
    rows = []
    for k, z in enumerate(zs):
        row = [str(k + 1), latent.show(z), whole[k], *[shown[k]] * watched.partial]
        steps, best = str(watched.episodes.lengths[k]), "best" if watched.best[k] else ""
        rows.append(Row((*row, steps, best)))
    return Table(
        f"{watched.who} on {watched.title} ({watched.change})",
        tuple(Column(name, words=name in ("policy", "z", "")) for name in names),
        (tuple(rows),),
        watched.explanation,
    )
