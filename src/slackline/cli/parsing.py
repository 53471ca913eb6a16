"""Arguments to a verb's dataclass, by tyro; what cannot be parsed is an error in one line.

tyro prints what is wrong in a box of several lines. It also hands events to a hook, but that is
private (`tyro._errors`; 1.0.16 has nothing public like it), so it is used here and nowhere else.
Where the hook is missing or its events look different, the text of the box is the error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from io import StringIO
from typing import Any, TypeVar

import tyro

from slackline.errors import SlacklineError

T = TypeVar("T")


def parse_as(verb: str, kind: type[T], argv: list[str], default: Any = None) -> T:
    """Parse a verb's options into its dataclass."""

    def refuse(event: Any) -> None:
        if (said := complaint(event)) is not None:
            raise SlacklineError(f"{said} (slackline {verb} --help)")

    printed = StringIO()
    try:
        with on_event(refuse), redirect_stderr(printed):
            found = tyro.cli(
                kind,
                prog=f"slackline {verb}",
                args=argv,
                default=default,
                config=(tyro.conf.HelptextFromCommentsOff,),
            )
    except SystemExit as end:
        if not end.code:  # --help
            raise
        said = without_box(printed.getvalue())
        raise SlacklineError(f"{said} (slackline {verb} --help)") from None
    sys.stderr.write(printed.getvalue())
    return found


def on_event(hook: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Call the hook when tyro refuses arguments, if this tyro can."""
    try:
        from tyro._errors import on_parse_error
    except ImportError:
        return nullcontext()
    return on_parse_error(hook)


def complaint(event: Any) -> str | None:
    """What is wrong with the options; None if this tyro's event says it otherwise than expected."""
    try:
        return _complaint(event)
    except AttributeError:
        return None


def _complaint(event: Any) -> str | None:
    match type(event).__name__:
        case "MissingArgs":
            return f"{', '.join(_named(each.arg) for each in event.missing_arguments)} is missing"
        case "UnrecognizedArgs":
            return f"unknown options: {' '.join(event.tokens)}"
        case "InvalidChoice":
            allowed = " or ".join(sorted(set(event.choices) - {"None"}))
            return f"{_named(event.argument)} is {event.value!r}; it must be {allowed}"
        case "BadValue":
            return f"{_named(event.argument)} needs a value after it"
        case "InstantiationFailure":
            named = "" if event.argument is None else f"{_named(event.argument)}: "
            return f"{named}{event.message}"
    return None


def _named(argument: Any) -> str:
    """An option as it is written on the command line."""
    lowered = argument.lowered
    return str(lowered.metavar) if argument.is_positional() else "/".join(lowered.name_or_flags)


def without_box(printed: str) -> str:
    """The sentences of tyro's error, without the frame around them and the hint at --help."""
    lines = [re.sub(r"\x1b\[[0-9;]*m|[─│╭╮╰╯]", "", line).strip() for line in printed.splitlines()]
    kept = [line for line in lines if line and "--help" not in line and "helptext" not in line]
    return " ".join(kept) or "the options could not be understood"
