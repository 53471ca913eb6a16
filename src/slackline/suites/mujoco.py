"""HalfCheetah-v5 and Ant-v5: the same variations on real MuJoCo, through EnvPool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np

from slackline.envs.api import Continuous
from slackline.envs.envpool import EnvPoolPool, make
from slackline.envs.host import HostEnv, HostParams, Pool
from slackline.envs.mjcf import Factors, envpool_options
from slackline.errors import unknown
from slackline.suites import ant, halfcheetah
from slackline.suites.bodies import drawn_dead, times
from slackline.suites.halfcheetah import CHANGES, FACTORS
from slackline.suites.hard import twice
from slackline.suites.suite import Protocol, Suite, Variation

Change = Callable[[HostParams], HostParams]


@dataclass(frozen=True)
class MujocoRobot(HostEnv):
    """A robot of EnvPool's. Its options are the `Factors` of its model that are not 1."""

    robot: str = field(compare=False)
    env_id: str = field(compare=False)

    def open(self, params: HostParams, seeds: Sequence[int], horizon: int) -> Pool:
        model = envpool_options(self.robot, Factors(**params.options))
        return EnvPoolPool(make(self.env_id, seeds, model))


HALFCHEETAH = MujocoRobot("halfcheetah-mujoco", 17, Continuous(6), "halfcheetah", "HalfCheetah-v5")
ANT = MujocoRobot("ant-mujoco", 105, Continuous(8), "ant", "Ant-v5")
"""With contact forces among the observations, as by default."""


def scaled(what: str, factor: float) -> Change:
    """Gravity, friction, or a part's mass and radius × factor."""
    if what not in Factors._fields:
        raise unknown("quantity of a model", what, Factors._fields)

    def change(params: HostParams) -> HostParams:
        now = params.options.get(what, 1.0)
        return params._replace(options={**params.options, what: now * factor})

    return change


def dead_sensors(fraction: float, seed: int, size: int) -> Change:
    """A share of the `size` observations is always 0, drawn as on Brax."""

    def change(params: HostParams) -> HostParams:
        alive = np.ones(size, np.float32) if params.sensors is None else params.sensors.copy()
        alive[drawn_dead(fraction, size, seed)] = 0.0
        return params._replace(sensors=alive)

    return change


def varied(size: str, what: str) -> Variation:
    words, _ = CHANGES[what]
    return times(f"{size}{what}", words, FACTORS[size], partial(scaled, what.lower()))


def defective(percent: int) -> Variation:
    return ant.defective(percent, partial(dead_sensors, size=ANT.observation_size))


NOTE = (
    "MuJoCo's HalfCheetah-v5 and Ant-v5, which the paper did not use: the paper's numbers beside "
    "ours would mean nothing. Masses, sizes, gravity and friction are changed in the model itself. "
    "Resets are noisy, so the score is the mean of ten fresh episodes. "
)


def of(robot: MujocoRobot, title: str, family: Any, note: str, **rest: Any) -> Suite:
    """The suite of a robot with the hyper-parameters of its Brax twin; nothing runs in blocks."""
    return Suite(
        name=robot.name,
        title=title,
        env=robot,
        horizon=1000,
        hyper=replace(family.PAPER, block=0),
        presets={"fast": replace(family.FAST, block=0, num_envs=64, num_steps=128)},
        protocol=Protocol(steps=10_000_000, shots=10, episodes=1, score_episodes=10),
        note=NOTE + note,
        **rest,
    )


@cache
def on(robot: str) -> Suite:
    if robot == "halfcheetah":
        return of(
            HALFCHEETAH,
            "HalfCheetah-v5",
            halfcheetah,
            "Torso and shins touch the floor here.",
            variations=tuple(varied(*pair) for pair in halfcheetah.VARIED),
            extras=(varied("Huge", "Torso"),),
            options=halfcheetah.SUITE.options,
            exceptions=halfcheetah.SUITE.exceptions,
        )
    return of(
        ANT,
        "Ant-v5",
        ant,
        ant.MASKS,
        variations=(
            *(varied(*pair) for pair in ant.WORLDS),
            *map(defective, ant.PERCENTAGES),
        ),
        options=ant.SUITE.options,
    )


def hard(robot: str, pairs: Sequence[tuple[str, str]]) -> Suite:
    """The paper's changes made twice, on MuJoCo; nothing here impairs motors or sensors."""
    plain = on(robot)
    return replace(
        plain,
        name=f"{plain.name}-hard",
        title=f"{plain.title}, hard changes",
        variations=tuple(twice(size, what, partial(scaled, what.lower())) for size, what in pairs),
        extras=(),
        note="Changes more severe than the paper's. " + NOTE,
    )


HALFCHEETAH_HARD = hard("halfcheetah", halfcheetah.VARIED)
ANT_HARD = hard("ant", ant.WORLDS)
