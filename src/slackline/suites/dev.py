"""Changes to develop on: other factors and other dead sensors than those that are reported.

Whoever tunes a method by how well it adapts should look at these, and never at the variations of
`halfcheetah` and `ant`. Robots and training are the same.
"""

from dataclasses import replace

from slackline.suites import ant, halfcheetah
from slackline.suites.bodies import dead_sensors, times
from slackline.suites.halfcheetah import CHANGES
from slackline.suites.suite import Variation

GRAVITIES = (0.6, 0.85, 1.15, 1.4)
FACTORS = (0.6, 1.4)
"""Of everything but gravity."""

PERCENTAGES = (8, 12, 18, 25)
MASKS = {"A": 1000, "B": 2000}
"""Seeds of the dead sensors, to which the percentage is added: far from those of `ant`."""

NOTE = "Changes to develop on, of which none is reported. "


def scaled(what: str, factor: float) -> Variation:
    words, change = CHANGES[what]
    return times(f"{what}{factor:g}", words, factor, change)


def defective(percent: int, mask: str) -> Variation:
    return Variation(
        f"DefectiveSensor {percent}% {mask}",
        f"{percent}% of the observation is 0",
        dead_sensors(percent / 100.0, seed=MASKS[mask] + percent),
    )


WORLDS = (
    *(scaled("Gravity", factor) for factor in GRAVITIES),
    *(scaled("Friction", factor) for factor in FACTORS),
)

HALFCHEETAH = replace(
    halfcheetah.SUITE,
    name="halfcheetah-dev",
    title="HalfCheetah, development changes",
    variations=(
        *WORLDS,
        *(scaled(part, f) for part in ("Feet", "Shins", "Thighs", "Torso") for f in FACTORS),
    ),
    extras=(),
    note=NOTE + halfcheetah.SUITE.note,
)

ANT = replace(
    ant.SUITE,
    name="ant-dev",
    title="Ant, development changes",
    variations=(*WORLDS, *(defective(percent, m) for percent in PERCENTAGES for m in MASKS)),
    note=NOTE + ant.SUITE.note,
)
