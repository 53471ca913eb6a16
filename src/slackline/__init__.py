"""Slackline: train a subspace of policies on one environment, adapt it to many.

import slackline as sl

line = sl.train("cartpole", seed=0)
result = line.adapt("LongPole", shots=10)
action = line.at(result.z)(observation)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slackline.errors import Interrupted, SlacklineError, imported
from slackline.runtime import compile_loops_whole

if TYPE_CHECKING:
    from slackline.adapt.adapter import Adapter, Choice
    from slackline.adapt.asktell import AskTell, load_adapter
    from slackline.adapt.catalogue import ADAPTERS
    from slackline.adapt.kshot import Adaptation
    from slackline.api import Line, adapt_many, analyse, load, suite, sweep, train, train_seeds
    from slackline.envs.envpool import envpool
    from slackline.envs.gymnasium import gymnasium
    from slackline.learn.hyper import Hyper
    from slackline.methods.catalogue import CATALOGUE, method
    from slackline.methods.method import Method
    from slackline.subspace import Policy, Subspace
    from slackline.suites.suite import Suite, Variation

compile_loops_whole()

# JAX takes a second to import, so names are fetched from their homes on first use.
_HOMES = {
    "ADAPTERS": "slackline.adapt.catalogue",
    "Adaptation": "slackline.adapt.kshot",
    "Adapter": "slackline.adapt.adapter",
    "AskTell": "slackline.adapt.asktell",
    "CATALOGUE": "slackline.methods.catalogue",
    "Choice": "slackline.adapt.adapter",
    "Hyper": "slackline.learn.hyper",
    "Line": "slackline.api",
    "Method": "slackline.methods.method",
    "Policy": "slackline.subspace",
    "Subspace": "slackline.subspace",
    "Suite": "slackline.suites.suite",
    "Variation": "slackline.suites.suite",
    "adapt_many": "slackline.api",
    "analyse": "slackline.api",
    "envpool": "slackline.envs.envpool",
    "gymnasium": "slackline.envs.gymnasium",
    "load": "slackline.api",
    "load_adapter": "slackline.adapt.asktell",
    "method": "slackline.methods.catalogue",
    "suite": "slackline.api",
    "sweep": "slackline.api",
    "train": "slackline.api",
    "train_seeds": "slackline.api",
}

__all__ = [
    "ADAPTERS",
    "CATALOGUE",
    "Adaptation",
    "Adapter",
    "AskTell",
    "Choice",
    "Hyper",
    "Interrupted",
    "Line",
    "Method",
    "Policy",
    "SlacklineError",
    "Subspace",
    "Suite",
    "Variation",
    "adapt_many",
    "analyse",
    "envpool",
    "gymnasium",
    "load",
    "load_adapter",
    "method",
    "suite",
    "sweep",
    "train",
    "train_seeds",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(imported(_HOMES[name]), name)
    raise AttributeError(f"module 'slackline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
