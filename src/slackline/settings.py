"""NAME=VALUE, as people write settings on the command line and in the names of environments."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from slackline.errors import SlacklineError


def assignment(word: str) -> tuple[str, Any]:
    """ "gravity=-5.0" -> ("gravity", -5.0)"""
    name, equals, text = word.partition("=")
    if not name or not equals:
        raise SlacklineError(f"option is {word!r}; it must look like NAME=VALUE")
    with contextlib.suppress(ValueError):
        return name, json.loads(text)
    return name, text


def query(options: Mapping[str, Any]) -> str:
    """The way back, as part of a name: `?gravity=-5.0&wind=true`."""
    words = [f"{key}={json.dumps(value, default=str)}" for key, value in options.items()]
    return "?" + "&".join(words) if words else ""
