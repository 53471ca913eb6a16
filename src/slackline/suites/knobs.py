"""Knobs: the numbers of a suite's environment that `slackline sweep` can change by degrees."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slackline.envs.api import Params
from slackline.envs.brax import BraxParams
from slackline.envs.host import HostEnv
from slackline.envs.impaired import MAX_LATENCY, ImpairedParams
from slackline.envs.mjcf import PARTS, Factors
from slackline.errors import SlacklineError, unknown
from slackline.suites.suite import Suite, Variation

Change = Callable[[Params], Params]


@dataclass(frozen=True)
class Knob:
    """One number of an environment."""

    name: str
    words: str
    """What its values are: "gravity ×"."""
    usual: float | None
    """Its value in training; None if that is unknown."""
    at: Callable[[float], Change]
    """What setting it to a value does to the environment's parameters."""
    whole: bool = False
    """Whether only whole numbers have a meaning."""
    option: bool = False
    """Whether it is an option that an environment outside JAX is made with."""

    def variation(self, value: float) -> Variation:
        """The environment with the knob at a value; equal names, equal episodes."""
        if self.whole and value != round(value):
            raise SlacklineError(f"{self.name} is {value:g}; it must be a whole number")
        set_to = {self.name: int(value) if self.whole else value} if self.option else None
        words = f"{self.words} {value:g}"
        return Variation(f"{self.name} {value:g}", words, self.at(value), options=set_to)


def knobs_of(suite: Suite, *, absolute: bool = False) -> dict[str, Knob]:
    """Those of a suite's environment, by name. Numbers of the environment itself are multiplied by
    factors, or, `absolute`, set to values; numbers that are 0 in training (a slope) are always set
    to values."""
    if isinstance(suite.env, HostEnv):
        found = _of_a_mujoco_robot(suite)
    else:
        found = _of_params(suite.jax_env.default_params(), absolute)
    return {knob.name: knob for knob in found}


def knob_named(suite: Suite, name: str, *, absolute: bool = False) -> Knob:
    """The suite's knob called `name`; for an environment of the user's, the option of that name."""
    known = knobs_of(suite, absolute=absolute)
    if name in known:
        return known[name]
    if isinstance(suite.env, HostEnv) and not known:
        return _option(suite.env, name)
    if not known:
        raise SlacklineError(f"{suite.name} has no numbers that a sweep can change")
    raise unknown(f"change of {suite.name}", name, known)


def _option(env: HostEnv, name: str) -> Knob:
    """An option of the function that makes the user's environment."""
    if not name.isidentifier():
        raise SlacklineError(f"change is {name!r}; it must be the name of an option")
    given = env.default_params().options.get(name)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    usual = float(given) if is_number else None  # type: ignore[arg-type]

    def at(value: float) -> Change:
        return lambda params: params._replace(options={**params.options, name: value})

    return Knob(name, f"{name} =", usual, at, option=True)


def _of_params(params: Params, absolute: bool) -> list[Knob]:
    if isinstance(params, BraxParams):
        return _of_a_robot(params)
    if isinstance(params, ImpairedParams):
        inner = [_inside(knob) for knob in _of_params(params.inner, absolute)]
        return [*inner, *_of_impairments(params)]
    if not hasattr(params, "_fields"):
        return []
    return [
        _field(name, float(value), absolute)
        for name, value in params._asdict().items()
        if np.ndim(value) == 0 and np.issubdtype(np.asarray(value).dtype, np.floating)
    ]


def _field(name: str, usual: float, absolute: bool) -> Knob:
    """A number of a NamedTuple of parameters."""
    words = name.replace("_", " ")
    by_factor = not absolute and usual != 0.0

    def at(value: float) -> Change:
        new = usual * value if by_factor else value
        return lambda params: params._replace(**{name: new})

    return Knob(name, f"{words} {'×' if by_factor else '='}", 1.0 if by_factor else usual, at)


def _of_a_robot(params: BraxParams) -> list[Knob]:
    from slackline.suites import bodies

    knobs = [
        Knob("gravity", "gravity ×", 1.0, bodies.gravity),
        Knob("friction", "friction ×", 1.0, bodies.friction),
        Knob("payload", "payload, of the robot's weight:", 0.0, bodies.payload),
        Knob("slope", "degrees uphill:", 0.0, bodies.slope),
        Knob("dead_sensors", "share of dead sensors:", 0.0, bodies.dead_sensors),
    ]
    if "bfoot" in params.sys.link_names:
        knobs += [
            Knob(part, f"mass and radius of the {part} ×", 1.0, partial(bodies.part_size, part))
            for part in PARTS
        ]
    return knobs


def _inside(knob: Knob) -> Knob:
    """The same of the environment that has the motors and sensors."""
    from slackline.suites.impairments import inside

    return replace(knob, at=lambda value: inside(knob.at(value)))


def _of_impairments(params: ImpairedParams) -> list[Knob]:
    from slackline.suites import impairments

    num_sensors, num_motors = len(params.bias), len(params.gains)

    def weak(gain: float) -> Change:
        changes = [impairments.weak_motor(motor, gain) for motor in range(num_motors)]

        def change(params: Params) -> Params:
            for each in changes:
                params = each(params)
            return params

        return change

    return [
        Knob("motors", "strength of all motors ×", 1.0, weak),
        Knob(
            "latency",
            f"steps (0 to {MAX_LATENCY}) that actions are late:",
            0.0,
            lambda steps: impairments.latency(int(steps)),
            whole=True,
        ),
        Knob(
            "sensor_noise",
            "standard deviation of every sensor's noise:",
            0.0,
            lambda std: impairments.sensor_noise([std] * num_sensors),
        ),
    ]


def _of_a_mujoco_robot(suite: Suite) -> list[Knob]:
    from slackline.suites.mujoco import MujocoRobot, dead_sensors, scaled

    env: Any = suite.env
    if not isinstance(env, MujocoRobot):
        return []
    parts = [f for f in Factors._fields if env.robot == "halfcheetah" or f not in PARTS]
    knobs = [Knob(what, f"{what} ×", 1.0, partial(scaled, what)) for what in parts]
    dead = partial(dead_sensors, seed=0, size=env.observation_size)
    return [*knobs, Knob("dead_sensors", "share of dead sensors:", 0.0, dead)]


def tame(name: str) -> str:
    """A knob's name as part of a file's."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
