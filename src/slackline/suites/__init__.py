"""The families of the paper, one file each. A new suite is a new file and a new name here."""

from __future__ import annotations

from importlib import import_module

from slackline.errors import unknown
from slackline.suites.suite import Suite

NAMES = ("cartpole", "acrobot", "pendulum", "pendulum-continuous", "maze2d")


def suite(name: str) -> Suite:
    """The suite called `name`, imported on first use."""
    if name not in NAMES:
        raise unknown("suite", name, NAMES)
    return import_module(f"slackline.suites.{name.replace('-', '_')}").SUITE
