"""The methods, one line each. A new one is a new line (and a small class if it has a new part)."""

from __future__ import annotations

from typing import Any

from slackline.envs.api import Continuous, Discrete
from slackline.errors import SlacklineError, require_name
from slackline.methods.auxiliary import (
    Auxiliary,
    CosinePenalty,
    DiscriminatorLoss,
    DiscriminatorReward,
    LateAngle,
)
from slackline.methods.conditioning import Anchors, Concat
from slackline.methods.latent import Bezier, Copies, Interval, Members, Point, Simplex, Skills
from slackline.methods.method import Method
from slackline.methods.movement import Together
from slackline.methods.senses import Senses
from slackline.methods.vigour import Vigour

CATALOGUE = {
    m.name: m
    for m in (
        Method("single", "Single policy", Point(), Anchors(), Auxiliary()),
        Method("ensemble", "Ensemble", Members(5), Anchors(), Auxiliary()),
        Method("lop", "Line of policies", Simplex(2), Anchors(), CosinePenalty(beta=1.0)),
        Method("cop", "Convex set of policies", Simplex(3), Anchors(), CosinePenalty(beta=1.0)),
        Method("bop", "Bézier curve of policies", Bezier(3), Anchors(), CosinePenalty(beta=1.0)),
        Method("diayn_r", "DIAYN+R", Skills(10), Concat(), DiscriminatorReward(beta=1.0)),
        Method("diayn_r_l2", "DIAYN+R L2", Interval(), Concat(), DiscriminatorReward(beta=1.0)),
        Method("lc", "Latent-conditioned (Lc)", Interval(), Concat(), DiscriminatorLoss(beta=1.0)),
        Method("fan", "Fan of policies", Simplex(2), Anchors(), LateAngle(), Together()),
        Method("senses", "Reweighted sensors", Simplex(9, "corners"), Senses(), Auxiliary()),
        Method("vigour", "Line of vigour", Simplex(2), Vigour(), Auxiliary()),
        Method("perturbed", "Perturbed single policy", Copies(10), Anchors(), Auxiliary()),
    )
}

BASELINE = "single"
"""What every other method is compared with."""

FAN, SENSES, VIGOUR = "fan", "senses", "vigour"


def recommended(action: Discrete | Continuous, picture: tuple[int, ...] | None = None) -> str:
    """The method that is used where none is named."""
    return VIGOUR if isinstance(action, Continuous) and picture is None else SENSES


HEADLINERS = (VIGOUR, SENSES, FAN, "lop")
"""A report's headline is about the first of these that was measured."""


def method(name: str, **options: Any) -> Method:
    """The method called `name`, with any of its options changed: `method("lop", beta=0.1)`."""
    require_name("method", name, CATALOGUE)
    chosen = CATALOGUE[name]
    try:
        return chosen.with_options(**options)
    except SlacklineError as error:
        wrong = {option for option in options if option not in chosen.options}
        others = [each.name for each in CATALOGUE.values() if wrong & {*each.options}]
        hint = f"; methods with it: {', '.join(others)}" if others else ""
        raise SlacklineError(f"{error}{hint}") from None
