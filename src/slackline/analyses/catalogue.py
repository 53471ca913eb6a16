"""The kinds of analyses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slackline.analyses.along_z import AlongZ
from slackline.analyses.analysis import Analysis, Finding, Subject, labelled
from slackline.analyses.anchors import AnchorsApart
from slackline.analyses.beta import Beta
from slackline.analyses.chosen import Chosen
from slackline.analyses.classifier import Classifier
from slackline.analyses.shots import Shots
from slackline.analyses.strips import Strips
from slackline.analyses.walks import WalksOfPolicies
from slackline.errors import SlacklineError, require_name
from slackline.io.decode import check

ANALYSES: dict[str, type[Analysis]] = {
    kind.name: kind
    for kind in (
        Shots,
        Chosen,
        Classifier,
        Beta,
        Strips,
        WalksOfPolicies,
        AlongZ,
        AnchorsApart,
    )
}
"""A new kind is a new file and a new line here."""


def kind_named(name: str) -> type[Analysis]:
    require_name("analysis", name, ANALYSES)
    return ANALYSES[name]


def with_options(kind: type[Analysis], options: dict[str, Any]) -> Analysis:
    try:
        return kind(**options)
    except TypeError as error:
        raise SlacklineError(f"analysis {kind.name!r}: {error}") from None


def examine(kind: Analysis, subjects: Sequence[Subject], variations: Sequence[str]) -> Finding:
    """Check what was asked for, then look."""
    check(kind)
    if not subjects:
        raise SlacklineError("name at least one run")
    found = kind.of(labelled(subjects), variations)
    return replace(found, suite=subjects[0].suite.name)
