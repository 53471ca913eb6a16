"""What runs the cells of a benchmark. A new engine is a new file and a new line here."""

from __future__ import annotations

from importlib import import_module

from slackline.bench.engines.base import Engine, Settings
from slackline.errors import unknown

ENGINES = {
    "local": "processes of this machine, each bound to cores of its own",
    "ray": "a Ray cluster, or this machine as one",
    "inline": "this very process, one cell after the other: to look for mistakes in",
}
"""The engines, each in the module of its name, which has a `start(settings)`."""


def engine(name: str, settings: Settings) -> Engine:
    """The engine called `name`, ready to run cells."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    return import_module(f"slackline.bench.engines.{name}").start(settings)
