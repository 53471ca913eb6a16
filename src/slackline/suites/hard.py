"""Severe changes: the paper's factors twice over, and what goes wrong with real robots.

Robots and training are those of `halfcheetah` and `ant`, and what was trained on them adapts to
these changes with `--suite`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slackline.envs.impaired import Impaired
from slackline.suites import ant, halfcheetah
from slackline.suites.bodies import locked_joint, payload, slope, times
from slackline.suites.halfcheetah import CHANGES, FACTORS, VARIED
from slackline.suites.impairments import (
    Change,
    inside,
    latency,
    sensor_bias,
    sensor_noise,
    weak_motor,
)
from slackline.suites.suite import Suite, Variation

SENSOR_STD = {
    "halfcheetah": (
        *(0.28, 0.62, 0.62, 0.58, 0.42, 0.44, 0.71, 0.31),
        *(1.9, 1.8, 3.7, 7.9, 7.9, 6.9, 5.1, 8.3, 7.5),
    ),
    "ant": (
        *(0.10, 0.09, 0.07, 0.07, 0.18, 0.59, 0.30, 0.60, 0.28, 0.56, 0.32, 0.57, 0.27),
        *(3.1, 1.5, 0.93, 1.3, 1.1, 1.8, 6.3, 4.1, 6.3, 4.0, 6.1, 4.4, 6.2, 3.9),
    ),
}
"""Standard deviation of every sensor while single policies trained (the mean over six seeds of
their normalisers), to two digits."""

NOISE = 0.3
"""Standard deviation of the sensors' noise, in spreads of each sensor."""
BIAS = 0.3
"""The sensors' error, in spreads of each sensor; its signs are drawn once."""
WEAK = 0.5
"""The share of the commanded action that a weak motor does."""
PAYLOAD = 0.5
"""The load on the torso, as a share of the robot's weight."""
SLOPE = 10.0
"""Degrees."""

JOINTS = {
    "halfcheetah": {
        "WeakMotor": (0, "the back thigh"),
        "DeadMotor": (3, "the front thigh"),
        "LockedKnee": (1, "the back knee"),
        "LockedAnkle": (5, "the front ankle"),
    },
    "ant": {
        "WeakMotor": (2, "hip 1"),
        "DeadMotor": (7, "ankle 3"),
        "LockedHip": (4, "hip 2"),
        "LockedAnkle": (1, "ankle 4"),
    },
}
"""Which motor or joint is impaired: its number among the actions, and its name in the model."""

NOTE = (
    "Changes more severe than the paper's. Motors, latency and sensors are changed around the "
    "simulator; rewards are for what reaches the motors. "
)


def twice(size: str, what: str, change: Callable[[float], Any] | None = None) -> Variation:
    """One of the paper's changes made twice, as the authors' own code does it."""
    words, usual = CHANGES[what]
    return times(f"{size}{what}Twice", words, FACTORS[size] ** 2, change or usual)


def of_the_robot(variation: Variation) -> Variation:
    """The same change inside an `Impaired` environment."""
    return replace(variation, apply=inside(variation.apply))


def impairments(robot: str) -> tuple[Variation, ...]:
    """What goes wrong with motors, joints and sensors, and where the robot has to go."""
    spread = np.array(SENSOR_STD[robot])
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(spread))
    changes: dict[str, tuple[str, Change]] = {
        **{name: of_joint(name, *which) for name, which in JOINTS[robot].items()},
        "Latency1": ("actions reach the motors 1 step late", latency(1)),
        "Latency2": ("actions reach the motors 2 steps late", latency(2)),
        "Latency3": ("actions reach the motors 3 steps late", latency(3)),
        "SensorNoise": (
            f"noise on every sensor, {NOISE:g} of its spread",
            sensor_noise((NOISE * spread).tolist()),
        ),
        "SensorBias": (
            f"every sensor wrong by {BIAS:g} of its spread",
            sensor_bias((BIAS * signs * spread).tolist()),
        ),
        "Payload": (
            f"a load of {PAYLOAD:.0%} of the robot's weight on the torso",
            inside(payload(PAYLOAD)),
        ),
        "Uphill": (f"a slope of {SLOPE:g}° up", inside(slope(SLOPE))),
        "Downhill": (f"a slope of {SLOPE:g}° down", inside(slope(-SLOPE))),
    }
    return tuple(Variation(name, words, change) for name, (words, change) in changes.items())


def of_joint(name: str, motor: int, where: str) -> tuple[str, Change]:
    """What the variation's name says of a joint, or of its motor."""
    if name.startswith("Locked"):
        return f"{where} is locked", inside(locked_joint(motor))
    gain = {"WeakMotor": WEAK, "DeadMotor": 0.0}[name]
    return f"motor of {where} × {gain:g}", weak_motor(motor, gain)


def hard(plain: Suite, pairs: Sequence[tuple[str, str]], note: str) -> Suite:
    """The robot's hard suite; `pairs` are the paper's changes that are made twice."""
    return replace(
        plain,
        name=f"{plain.name}-hard",
        title=f"{plain.title}, hard changes",
        env=Impaired(plain.jax_env),
        variations=(
            *(of_the_robot(twice(*pair)) for pair in pairs),
            *impairments(plain.name),
        ),
        extras=(),
        note=NOTE + halfcheetah.NOTE + note,
    )


HALFCHEETAH = hard(halfcheetah.SUITE, VARIED, halfcheetah.IN_FULL)
ANT = hard(ant.SUITE, ant.WORLDS, ant.SOFT)
