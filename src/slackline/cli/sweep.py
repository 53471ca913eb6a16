"""slackline sweep"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import tyro

from slackline.analyses.analysis import Finding, Subject
from slackline.analyses.catalogue import examine
from slackline.analyses.sweep import Sweep as Severity
from slackline.cli.analyse import Runs
from slackline.cli.options import Count, Switch, count, number, optional
from slackline.cli.parsing import parse_as


@dataclass(kw_only=True)
class Sweep(Runs):
    """The return against severity: one number of the environment is changed from --from to --to,
    and at each of --points values every run is adapted anew and scored on fresh episodes.

    Name a line and a single policy (two RUNs) to see where each breaks.
    """

    change: str
    """What to change: a number of the suite's (gravity, friction, length, …; a wrong name lists
    them), or an option that your environment is made with."""
    start: Annotated[float, tyro.conf.arg(name="from")]
    """The first value: a factor of what it is in training, where that is not 0."""
    stop: Annotated[float, tyro.conf.arg(name="to")]
    """The last value."""
    points: Annotated[int, optional(count, "INT", "15")] = 15
    """How many values, evenly from --from to --to."""
    absolute: Switch = False
    """The values are those of the number itself, not factors; options of your environments always
    are."""
    shots: Count = None
    """K: how many values of z are tried at each value."""
    episodes: Count = None
    """Episodes for each of them."""
    score_episodes: Count = None
    """Fresh episodes for the score of the chosen z, and of the default one."""
    broken: Annotated[float, optional(number, "FLOAT", "0.5")] = 0.5
    """A run is broken where it returns less than this share of what the single policy (or else the
    first run) returns unchanged."""

    def examine(self, subjects: list[Subject]) -> Finding:
        kind = Severity(**{each.name: getattr(self, each.name) for each in fields(Severity)})
        return examine(kind, subjects, ())


def parse(argv: list[str]) -> Sweep:
    return parse_as("sweep", Sweep, argv)
