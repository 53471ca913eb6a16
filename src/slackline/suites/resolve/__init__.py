"""From names to suites: whatever the user gives in a command or a call.

This is the only place that imports, calls or opens what a name says, so it is for names that the
user gives now, never for those that a file holds. Only `cli` and `api` may import it (a contract
in pyproject.toml); everything else takes suites as objects, and finds those that files name with
`suites.builtin` and `suites.recorded`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from slackline.envs.gymnasium import gymnasium
from slackline.envs.host import HostEnv
from slackline.errors import SlacklineError, spelt
from slackline.suites import NAMES, builtin, is_own
from slackline.suites.own import suite_of
from slackline.suites.resolve.again import named_again
from slackline.suites.resolve.files import suite_file
from slackline.suites.resolve.words import environment, word_for_id
from slackline.suites.suite import Suite

__all__ = ["Task", "as_suite", "environment", "named_again", "suite"]

Task = str | Suite | HostEnv | Callable[..., Any]
"""What can be trained on: a suite or its name, an environment, or a function that makes one."""


def suite(name: str) -> Suite:
    """The suite called `name`, or that of a suite file (robot.toml) or of an environment of the
    user's own (see words.py), whose code is imported and called."""
    if not isinstance(name, str):
        raise SlacklineError(f"suite is {spelt(name)}; it must be the name of one")
    if name.endswith(".toml"):
        return suite_file(Path(name))
    if is_own(name):
        return suite_of(environment(name))
    try:
        return builtin(name)
    except SlacklineError:
        word = word_for_id(name)
        if word is None:
            raise
        raise SlacklineError(f"unknown suite {spelt(name)}; did you mean {word}?") from None


def as_suite(task: Task) -> Suite:
    """The suite that `task` stands for."""
    if isinstance(task, str):
        return suite(task)
    if isinstance(task, Suite):
        return task
    found = suite_of(task if isinstance(task, HostEnv) else gymnasium(task))
    if found.name in NAMES:
        raise SlacklineError(
            f"the function that makes your environment is called {found.name}, as a suite is; "
            "call it something else"
        )
    return found
