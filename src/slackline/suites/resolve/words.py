"""Environments by a word that the user gives:

gym:LunarLander-v3?gravity=-5.0    a Gymnasium id, with options for its maker
envpool:HalfCheetah-v5             an EnvPool id
my_robot.sim:make                  a function of yours that makes a Gymnasium environment
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from slackline.envs.advice import advice
from slackline.envs.envpool import envpool, envpool_ids
from slackline.envs.gymnasium import describe, gymnasium, gymnasium_ids
from slackline.envs.host import HostEnv, users_output
from slackline.errors import SlacklineError, in_one_line
from slackline.settings import assignment, query


def environment(spec: str, options: Mapping[str, Any] | None = None) -> HostEnv:
    """The environment that a word stands for; `options` are added to those in it."""
    source, given = parsed(spec)
    merged = given | dict(options or {})
    return _environment(source, written(source, merged))


def parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """ "gym:Pendulum-v1?g=5.0" -> ("gym:Pendulum-v1", {"g": 5.0})"""
    source, _, words = spec.partition("?")
    return source, dict(map(assignment, filter(None, words.split("&"))))


def written(whose: str, options: Mapping[str, Any]) -> str:
    """Options as JSON, which is how they are kept."""
    try:
        return json.dumps(options, allow_nan=False)
    except (TypeError, ValueError):
        raise SlacklineError(
            f"{whose}: options are {options!r}; they must be finite numbers, words, true, false, "
            "or lists and tables of them"
        ) from None


@lru_cache(maxsize=64)
def _environment(source: str, options: str) -> HostEnv:
    """To know an environment's spaces one has to be made: once a process is enough."""
    scheme, _, rest = source.partition(":")
    merged = json.loads(options)
    if not rest:
        raise SlacklineError(
            f"environment is {source!r}; it must look like gym:ID, envpool:ID or module:function"
        )
    if scheme == "gym":
        return gymnasium(rest, **merged)
    if scheme == "envpool":
        return envpool(rest, **merged)
    return describe(source + query(merged), imported(scheme, rest), merged)


def imported(module: str, function: str) -> Callable[..., Any]:
    """A function of the user's own, from the folder the command was given in or from anywhere."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        with users_output():
            home = import_module(module)
    except Exception as error:  # it is the user's code, and may do anything
        told = f"cannot import {module} ({type(error).__name__}: {in_one_line(error)})"
        known = "" if _is_of(error, module) else advice(error)
        raise SlacklineError(f"{module}:{function}: {known or told}") from error
    make = getattr(home, function, None)
    if make is None:
        raise SlacklineError(f"{module}:{function}: {module} has no {function}")
    if not callable(make):
        raise SlacklineError(f"{module}:{function}: is not a function that makes an environment")
    return make


def _is_of(error: Exception, module: str) -> bool:
    """Whether it is the named module itself that was not found, not one that it needs."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def word_for_id(name: str) -> str | None:
    """The word for an environment that is named by its id alone: Pendulum-v1 -> gym:Pendulum-v1.
    None if the name does not look like an id, or if Gymnasium is installed and has no such id."""
    if not re.search(r"-v\d+(\?|$)", name):
        return None
    source, mark, options = name.partition("?")
    for scheme, ids in (("gym", gymnasium_ids), ("envpool", envpool_ids)):
        with suppress(SlacklineError):
            found = {each.casefold(): each for each in ids()}.get(source.casefold())
            if found is not None:
                return f"{scheme}:{found}{mark}{options}"
    # Without Gymnasium that word is answered by how to install it.
    return None if find_spec("gymnasium") else f"gym:{name}"
