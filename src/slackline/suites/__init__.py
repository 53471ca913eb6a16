"""The families of the paper, one file each. A new suite is a new file and a new name here."""

from __future__ import annotations

from importlib import import_module

from slackline.envs.brax import BACKENDS
from slackline.errors import unknown
from slackline.suites.suite import Suite

NAMES = (
    "cartpole",
    "acrobot",
    "pendulum",
    "pendulum-continuous",
    "maze2d",
    "minigrid",
    "fruitbot",
    "halfcheetah",
    "ant",
)

ROBOTS = ("halfcheetah", "ant")
"""Suites that exist once more for each of Brax's other engines: `ant-positional` and so on."""

MUJOCO = "mujoco"
"""The robots on MuJoCo itself, outside JAX: `ant-mujoco`."""

DEVELOPED_ON = ("cartpole", "acrobot", "pendulum", "maze2d", "minigrid", "halfcheetah", "ant")
"""Suites with other changes, to tune on: `ant-dev` and so on."""

FURTHER = {
    "halfcheetah-soft": ("halfcheetah", "SOFT_SUITE"),
    "halfcheetah-hard": ("hard", "HALFCHEETAH"),
    "halfcheetah-mujoco-hard": ("mujoco", "HALFCHEETAH_HARD"),
    "ant-hard": ("hard", "ANT"),
    "ant-mujoco-hard": ("mujoco", "ANT_HARD"),
    **{f"{name}-dev": ("dev", name.upper()) for name in DEVELOPED_ON},
}
"""Other changes of an environment that is trained the same way: the module and the name in it.
What was trained on it adapts to them with `--suite`."""


def is_own(name: str) -> bool:
    """Whether a name stands for an environment or a suite file of the user's own."""
    return ":" in name or name.endswith(".toml")


def builtin(name: str) -> Suite:
    """One of slackline's own suites, a closed list; imported on first use."""
    if name in FURTHER:
        module, constant = FURTHER[name]
        return getattr(import_module(f"slackline.suites.{module}"), constant)
    robot, _, engine = name.partition("-")
    if robot in ROBOTS and engine == MUJOCO:
        return import_module("slackline.suites.mujoco").on(robot)
    if robot in ROBOTS and engine:
        if engine not in BACKENDS:
            further = [n.partition("-")[2] for n in FURTHER if n.startswith(f"{robot}-")]
            kind = f"physics engine or set of changes of {robot}"
            raise unknown(kind, engine, (*BACKENDS, MUJOCO, *further))
        return import_module(f"slackline.suites.{robot}").on(engine)
    if name not in NAMES:
        raise unknown("suite", name, (*NAMES, *FURTHER))
    return import_module(f"slackline.suites.{name.replace('-', '_')}").SUITE
