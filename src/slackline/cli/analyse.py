"""slackline analyse"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import tyro

from slackline.analyses.analysis import Analysis, Finding, Subject, insist_on_writable, plain
from slackline.analyses.catalogue import ANALYSES, examine, kind_named
from slackline.cli.options import Devices, Switch, first_word
from slackline.cli.own import suite_to_play
from slackline.cli.parsing import parse_as
from slackline.drawing.sheet import styled
from slackline.errors import SlacklineError
from slackline.progress import waiting
from slackline.report.table import show
from slackline.runtime import set_up_jax
from slackline.store.pretrained import folder_beside, located
from slackline.store.run import RunFolder

USAGE = """\
usage: slackline analyse KIND RUN... [options]     slackline analyse KIND --help explains options

{kinds}

Each prints a table and writes figures (.png), the table (.md) and all numbers (.json).
"""


@dataclass
class Runs:
    """What all verbs are told that look at runs."""

    paths: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN...")]
    """Run folders that `slackline train` or `bench` made, or pretrained:NAME."""
    suite: str | None = None
    """Look at the variations of another suite, with the same observations and actions. Default:
    the one trained on."""
    env: tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]] = ()
    """The environment of yours that the runs were trained on, named again: gym:ID, envpool:ID or
    module:function. All of them, if variations have environments of their own."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where to write. Default: `analyses` in the folder of the first run."""
    devices: Devices = None
    """CPU devices to use. Default: all cores."""
    json: Switch = False
    """Print the numbers as JSON instead of the tables, and write nothing."""

    def run(self) -> None:
        if not self.paths:
            raise SlacklineError("name at least one RUN")
        out = self.out or folder_beside(self.paths[0]) / "analyses"
        if not self.json:
            styled()  # no matplotlib, no episodes
            insist_on_writable(out)
        set_up_jax(self.devices)
        subjects = [self.subject(path) for path in self.paths]
        with waiting("playing"):
            found = self.examine(subjects)
        if self.json:
            print(json.dumps(plain(found.numbers), indent=1))
            return
        publish(found, out)

    @property
    def plays(self) -> bool:
        """Whether environments are needed."""
        return True

    def examine(self, subjects: list[Subject]) -> Finding:
        raise NotImplementedError

    def subject(self, path: Path) -> Subject:
        run = RunFolder(located(path))
        run.insist_on_finished()
        if self.plays:
            return Subject(run, suite_to_play(run, self.suite, self.env, None))
        return Subject(run, run.suite(self.suite))  # as far as the run itself tells


@dataclass
class Analyse(Runs):
    """What all kinds are told."""

    variation: tuple[str, ...] = ()
    """Only these variations (`slackline list` names them). Default: all of the suite."""


def publish(found: Finding, out: Path) -> None:
    """Print the tables, write everything, and say where."""
    for table in found.tables:
        show(table)
    for file in found.save(out):
        print(f"written: {file}")


@cache
def command_of(kind: type[Analysis]) -> type[Analyse]:
    """The options of all kinds, and those of this one."""
    words = tyro.conf.arg(help="Options of this kind of analysis.")
    own: Any = Annotated[tyro.conf.OmitArgPrefixes[kind], words]

    def examine_it(self: Any, subjects: list[Subject]) -> Finding:
        return examine(self.kind, subjects, self.variation)

    made = make_dataclass(
        "Analyse",
        [("kind", own, field(default_factory=kind))],
        bases=(Analyse,),
        namespace={"examine": examine_it, "plays": kind.plays},
    )
    made.__doc__ = kind.__doc__
    return made


def kinds_told() -> str:
    """The help of the verb itself: its kinds."""
    width = max(map(len, ANALYSES)) + 2
    kinds = "\n".join(f"  {name:{width}}{kind.summary}" for name, kind in ANALYSES.items())
    return USAGE.format(kinds=kinds)


def parse(argv: list[str]) -> Analyse:
    word = first_word(argv)
    if word is not None:
        return parse_as(f"analyse {word}", command_of(kind_named(word)), argv[1:])
    if argv and argv[0] not in ("-h", "--help"):
        raise SlacklineError(f"KIND comes first: {', '.join(ANALYSES)} (slackline analyse --help)")
    print(kinds_told())
    raise SystemExit(0)
