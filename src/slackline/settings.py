"""NAME=VALUE, as people write settings on the command line and in the names of environments."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from slackline.errors import SlacklineError, in_one_line, spelt


def assignment(word: str) -> tuple[str, Any]:
    """ "gravity=-5.0" -> ("gravity", -5.0)"""
    name, equals, text = word.partition("=")
    if not name or not equals:
        raise SlacklineError(f"option is {word!r}; it must look like NAME=VALUE")
    with contextlib.suppress(ValueError, RecursionError):  # no JSON, or nested without end
        return name, json.loads(text)
    return name, text


DEEPEST = 20
"""Lists and tables within one another; Python itself ends at a thousand or so."""


def insist_on_shallow(value: Any, what: str) -> None:
    """Refuse what is nested so deeply that it could be neither written nor compared."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return
    raise SlacklineError(f"{what}: more than {DEEPEST} lists or tables are within one another")


def _within(value: Any) -> list[Any]:
    """The lists and tables that one holds."""
    held = value.values() if isinstance(value, Mapping) else value
    return [each for each in held if isinstance(each, list | tuple | Mapping)]


def query(options: Mapping[str, Any]) -> str:
    """The way back, as part of a name: `?gravity=-5.0&wind=true`."""
    insist_on_shallow(options, "the options")
    try:
        words = [f"{key}={json.dumps(value, default=spelt)}" for key, value in options.items()]
    except ValueError as error:  # a number with more digits than Python writes
        raise SlacklineError(f"the options cannot be written out ({in_one_line(error)})") from None
    return "?" + "&".join(words) if words else ""
