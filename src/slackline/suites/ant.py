"""Ant in another world, or with dead sensors."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from slackline.envs.brax import Ant
from slackline.suites.bodies import dead_sensors, robot_suite
from slackline.suites.halfcheetah import FAST as CHEETAH_FAST
from slackline.suites.halfcheetah import NOTE, varied
from slackline.suites.halfcheetah import PAPER as CHEETAH
from slackline.suites.suite import Suite, Variation

PAPER = replace(CHEETAH, action_std=0.4, epochs=16, minibatches=16, discriminator_lr=1e-3)
"""The paper's table, where it is not HalfCheetah's."""

FAST = replace(CHEETAH_FAST, action_std=PAPER.action_std, layer_norm=False)
"""HalfCheetah's, without LayerNorm: it makes the single ant worse."""

WORLDS = tuple(
    (size, what) for size in ("Big", "Small", "Huge", "Tiny") for what in ("Friction", "Gravity")
)
PERCENTAGES = range(5, 40, 5)
"""How much of the observation is dead."""

SOFT = (
    "This engine gives every link of the ant the mass 1 and the inertia 1: Brax's own model says "
    "so. "
)
MASKS = (
    "The paper does not say which sensors are dead: here as many as the name says, drawn once, "
    "with the percentage as the seed."
)


def defective(percent: int, dead: Callable[..., Any] = dead_sensors) -> Variation:
    return Variation(
        f"DefectiveSensor {percent}%",
        f"{percent}% of the observation is 0",
        dead(percent / 100.0, seed=percent),
    )


@cache
def on(engine: str) -> Suite:
    """The suite on one of Brax's physics engines."""
    return robot_suite(
        Ant,
        engine,
        variations=(
            *(varied(*pair) for pair in WORLDS),
            *map(defective, PERCENTAGES),
        ),
        hyper=PAPER,
        presets={"fast": FAST},
        options={"lc": {"beta": 0.1}},
        note=NOTE + ("" if engine == "generalized" else SOFT) + MASKS,
    )


SUITE = on("spring")
