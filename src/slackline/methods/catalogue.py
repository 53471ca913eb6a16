"""The methods, one line each. A new method is a new line (and a small class if it brings a new part)."""

from __future__ import annotations

from typing import Any

from slackline.errors import unknown
from slackline.methods.auxiliary import CosinePenalty, Nothing
from slackline.methods.conditioning import Anchors
from slackline.methods.latent import Point, Simplex
from slackline.methods.method import Method

CATALOGUE = {
    m.name: m
    for m in (
        Method("single", "Single policy", Point(), Anchors(), Nothing()),
        Method("lop", "Line of policies", Simplex(anchors=2), Anchors(), CosinePenalty(beta=1.0)),
    )
}


def method(name: str, **options: Any) -> Method:
    """The method called `name`, with any of its options changed: `method("lop", beta=0.1)`."""
    if name not in CATALOGUE:
        raise unknown("method", name, CATALOGUE)
    return CATALOGUE[name].with_options(**options)
