"""Changes to develop on: other factors and other dead sensors than those that are reported.

Tune how well a method adapts on these, never on the variations of the suites themselves.
Environments and training are the same.
"""

from dataclasses import replace

from slackline.suites import acrobot, ant, cartpole, halfcheetah, maze2d, minigrid, pendulum
from slackline.suites.bodies import dead_sensors, times
from slackline.suites.halfcheetah import CHANGES
from slackline.suites.suite import Suite, Variation, setting

GRAVITIES = (0.6, 0.85, 1.15, 1.4)
FACTORS = (0.6, 1.4)
"""Of everything but gravity."""

PERCENTAGES = (8, 12, 18, 25)
MASKS = {"A": 1000, "B": 2000}
"""Seeds of the dead sensors, to which the percentage is added: far from those of `ant`."""

WALLS = {
    "a wall left of the middle: 18 moves": {6: ".###..."},
    "a wall right of the middle: 18 moves": {10: "...###."},
    "a wide wall, open on the left: 22 moves": {7: ".######"},
    "a wide wall, open on the right: 22 moves": {9: "######."},
    "open on the left, then on the right: 24 moves": {4: "..#####", 11: "#####.."},
}
"""Rows of Maze2d's corridor that are not open."""

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


def developing(suite: Suite, *variations: Variation) -> Suite:
    """A suite with other variations, to develop on."""
    return replace(
        suite,
        name=f"{suite.name}-dev",
        title=f"{suite.title}, development changes",
        variations=variations,
        extras=(),
        note=NOTE + suite.note,
    )


CARTPOLE = developing(
    cartpole.SUITE,
    *(setting(f"PoleMass{mass:g}", pole_mass=mass) for mass in (0.003, 2.0)),
    *(setting(f"Length{length:g}", length=length) for length in (0.07, 1.4)),
    *(setting(f"Force{force:g}", force=force) for force in (1.5, 30.0)),
)

ACROBOT = developing(
    acrobot.SUITE,
    *(setting(f"Mass{mass:g}", mass=mass) for mass in (0.4, 1.7)),
    *(setting(f"Inertia{inertia:g}", inertia=inertia) for inertia in (0.4, 1.7)),
    *(setting(f"Length{length:g}", length=length) for length in (0.4, 1.7)),
)

PENDULUM = developing(
    pendulum.SUITE,
    *(setting(f"Mass{mass:g}", mass=mass) for mass in (0.4, 1.15)),
    *(setting(f"Length{length:g}", length=length) for length in (0.4, 1.4)),
)

MAZE2D = developing(
    maze2d.SUITE,
    *(
        maze2d.drawn(f"Walls{i}", words, maze2d.walled(walls))
        for i, (words, walls) in enumerate(WALLS.items(), 1)
    ),
)

MINIGRID = developing(
    minigrid.SUITE, *map(minigrid.two_rooms, (11, 12, 13)), *map(minigrid.four_rooms, (11, 12, 13))
)

HALFCHEETAH = developing(
    halfcheetah.SUITE,
    *WORLDS,
    *(scaled(part, f) for part in ("Feet", "Shins", "Thighs", "Torso") for f in FACTORS),
)

ANT = developing(
    ant.SUITE, *WORLDS, *(defective(percent, m) for percent in PERCENTAGES for m in MASKS)
)
