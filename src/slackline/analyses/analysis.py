"""What every analysis is given, and what it gives back."""

from __future__ import annotations

import abc
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackline.drawing.sheet import NUM_COLOURS, styled
from slackline.errors import SlacklineError
from slackline.io.files import write_atomic, write_output
from slackline.methods.method import Method
from slackline.report.chart import Plate
from slackline.report.charts import colour_index
from slackline.report.figures import draw_plate
from slackline.report.findings import SUFFIX, Kept, write_finding
from slackline.report.table import Table, markdown
from slackline.store.run import RunConfig, RunFolder, provenance
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation


@dataclass(frozen=True)
class Subject:
    """A finished run, and the suite whose variations it is looked at on."""

    run: RunFolder
    suite: Suite
    label: str = ""
    """What tells it from the other runs of the analysis."""
    own_name: str = ""
    """The same as part of a file's name; none: its folder's."""

    @property
    def file_name(self) -> str:
        return self.own_name or self.run.path.name

    @cached_property
    def config(self) -> RunConfig:
        return self.run.config()

    @property
    def method(self) -> Method:
        return self.config.resolved_method

    @cached_property
    def subspaces(self) -> list[Subspace]:
        """One for each seed, with the suite as its home."""
        if not self.run.subspace_file.exists():
            raise SlacklineError(
                f"{self.run.path}: its policies were not kept (there is no "
                f"{self.run.subspace_file.name}), and this analysis plays them"
            )
        return self.run.subspaces()


def labelled(subjects: Sequence[Subject]) -> list[Subject]:
    """The runs with what tells them apart: the method, and the options and settings that differ."""
    titles = [subject.method.title for subject in subjects]
    twins = [[s for s, t in zip(subjects, titles, strict=True) if t == title] for title in titles]
    labels = [
        ", ".join([title, *_differing(subject, alike)])
        for subject, title, alike in zip(subjects, titles, twins, strict=True)
    ]
    for i, label in enumerate(labels):
        if labels.count(label) > 1:
            labels[i] = f"{label} ({subjects[i].run.path})"
    names = distinct_names([subject.run.path for subject in subjects])
    return [
        replace(s, label=label, own_name=name)
        for s, label, name in zip(subjects, labels, names, strict=True)
    ]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """The folders' names; of those with the same name, with as many folders above as it takes to
    tell them apart, and a number where that is not enough."""
    every = [path.absolute().parts[1:] for path in paths]
    names = [parts[-1] for parts in every]
    for depth in range(2, max(map(len, every)) + 1):
        alike = [names.count(name) > 1 for name in names]
        names = [
            "-".join(parts[-depth:]) if again else name
            for parts, name, again in zip(every, names, alike, strict=True)
        ]
    return [
        name if names.count(name) == 1 else f"{name}-{names[:i].count(name) + 1}"
        for i, name in enumerate(names)
    ]


def _differing(subject: Subject, alike: Sequence[Subject]) -> list[str]:
    """The method's options in which runs of one method differ, as in "beta = 0.1"."""
    others = [other.config.spelt_out.options for other in alike]
    return [
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in subject.config.spelt_out.options.items()
        if any(other.get(name) != value for other in others)
    ]


def common_suite(subjects: Sequence[Subject]) -> Suite:
    """The suite that all runs are looked at on."""
    names = dict.fromkeys(subject.suite.name for subject in subjects)
    if len(names) > 1:
        raise SlacklineError(
            f"the runs are of different suites ({', '.join(names)}); they must be of one"
        )
    return subjects[0].suite


def chosen_variations(suite: Suite, names: Sequence[str], usual: str = "") -> list[Variation]:
    """The variations that were named; otherwise all of the suite."""
    chosen = [suite.variation(name) for name in dict.fromkeys(names)] or list(suite.variations)
    if not chosen:
        raise SlacklineError(
            f"{suite.name} has no variations of its own; {usual or 'name some: --variation'}"
        )
    return chosen


def colours(subjects: Sequence[Subject]) -> list[int]:
    """Each method's own colour of the palette; of several runs of one method, only the first's."""
    taken: list[int] = []
    for subject in subjects:
        own = colour_index(subject.method)
        free = [own, *(i for i in range(NUM_COLOURS) if i not in taken)]
        taken.append(free[1] if own in taken and len(free) > 1 else own)
    return taken


class Picture(NamedTuple):
    """A drawing that is no chart."""

    name: str
    png: bytes


@dataclass(frozen=True)
class Finding:
    """What an analysis found: tables, figures, and the numbers behind both."""

    name: str
    """What its files are called."""
    tables: tuple[Table, ...]
    figures: tuple[Plate | Picture, ...]
    numbers: Mapping[str, Any]
    """Plain data, for programs."""
    suite: str = ""
    """On whose variations."""

    def save(self, folder: str | Path) -> list[Path]:
        """Write the figures (PNG), the tables (Markdown), the numbers (JSON) and what the page of
        a folder above shows of it; the files."""
        folder = Path(folder)
        insist_on_writable(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = [
            write_atomic_png(folder / f"{self.name}-{figure.name}.png", figure)
            for figure in self.figures
        ]
        tables, numbers = (folder / f"{self.name}.{end}" for end in ("md", "json"))
        write_output(tables, "\n".join(map(markdown, self.tables)))
        write_output(numbers, json.dumps(plain(self.numbers), indent=1) + "\n")
        write_finding(folder / f"{self.name}{SUFFIX}", self.kept())
        return [*written, tables, numbers]

    def kept(self) -> Kept:
        """What a page shows of it."""
        plates = tuple(each for each in self.figures if isinstance(each, Plate))
        pictures = [each.name for each in self.figures if isinstance(each, Picture)]
        names = tuple(f"{self.name}-{name}.png" for name in pictures)
        titles = [plate.title for plate in plates] + [table.title for table in self.tables]
        command = provenance()["command"]
        title = titles[0] if titles else self.name
        return Kept(title, self.suite, command, self.tables, plates, names)


def write_atomic_png(path: Path, figure: Plate | Picture) -> Path:
    write_atomic(path, figure.png if isinstance(figure, Picture) else plate_png(figure))
    return path


def plate_png(plate: Plate) -> bytes:
    """The chart, or charts, as a PNG file."""
    with styled():
        return png_of(draw_plate(plate))


def png_of(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def insist_on_writable(folder: Path) -> None:
    """Refuse a folder that could not be written to, before any time is spent."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise SlacklineError(
            f"{folder}: cannot be written to, because {there} is not a folder of yours"
        )


def plain(value: Any) -> Any:
    """Arrays as lists and numbers of six digits, NaN as null, so that JSON can have it."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


class Analysis(abc.ABC):
    """One kind of analysis. A dataclass, whose fields are its options: flags of the command, and
    arguments in Python."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """In a few words, for the list of kinds."""
    plays: ClassVar[bool] = True
    """Whether it plays episodes, and so needs policies and environments."""

    @abc.abstractmethod
    def of(self, subjects: Sequence[Subject], variations: Sequence[str] = ()) -> Finding:
        """Look at the runs, on these variations or on all."""
