"""The one exception a user meets: a sentence that says what is wrong and what to do."""

from __future__ import annotations

import difflib
import math
import numbers
import shlex
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

LONGEST = 2000
"""Characters of a message; values that were given may be of any length."""


class SlacklineError(Exception):
    """Bad input or an unusable file. The command line prints it as one line and exits with 2."""

    def __init__(self, message: str = ""):
        whole = " ".join(message.split()) if any(c in message for c in LINE_BREAKS) else message
        whole = _harmless(whole)
        super().__init__(whole if len(whole) <= LONGEST else f"{whole[:LONGEST]} …")


def _harmless(text: str) -> str:
    """Text without terminal control characters: names in files may hold anything."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c.isspace() else ascii(c)[1:-1] for c in text)


class Damaged(SlacklineError):  # noqa: N818
    """A file that is not what was written: cut short, or some of it was changed."""


class Interrupted(SlacklineError):  # noqa: N818
    """Training was stopped on request; the last checkpoint is kept."""

    def __init__(self, message: str, signum: int = 2):
        super().__init__(message)
        self.signum = signum
        """The signal that asked for it; 2 is SIGINT, Ctrl-C."""


class CellsFailed(SlacklineError):  # noqa: N818
    """Some cells of a benchmark failed for good; the others are done. The command exits with 3."""


class NotNamed(SlacklineError):  # noqa: N818
    """Something needs an environment that only a file names: the user has to name it.

    In Python the message shows the call to make; the command line shows its own command again
    with `flags` behind it, unless there are none: then only Python can name the environment.
    """

    def __init__(self, why: str, call: str, flags: Sequence[str]):
        super().__init__(f"{why}; name it again, if you trust it: {call}")
        self.why, self.flags = why, tuple(flags)

    def for_command(self, command: Sequence[str]) -> str:
        """The message on the command line, where `command` was given."""
        if not self.flags:
            return str(self)
        line = shlex.join([*command, *self.flags])
        return f"{self.why}; name it again, if you trust it: {line}"


def needed(module: str, sentence: str, extra: str) -> Any:
    """A package that only some users need, imported; without it, how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SlacklineError(f"{sentence}: pip install 'slackline-rl[{extra}]'") from error


def imported(module: str) -> Any:
    """A module of the full install, imported; where only NumPy and safetensors are installed, an
    error with the pip command."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("slackline"):
            raise
        raise SlacklineError(
            f"this needs {error.name}, which is not installed: pip install slackline-rl"
        ) from error


def spelt(value: Any) -> str:
    """Whatever was given, as Python writes it, if Python can: not a number of 10,000 digits, lists
    in a thousand lists, or an object whose own `__repr__` fails."""
    try:
        return repr(value)
    except Exception:  # an object's own code may do anything
        return f"{type(value).__name__} that cannot be written out"


def in_one_line(error: BaseException) -> str:
    """A foreign error's message in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]


def unknown(kind: str, name: str, known: Iterable[str]) -> SlacklineError:
    """`unknown suite 'cartpol'; did you mean cartpole? (known: ...)`"""
    known, name = list(known), name if isinstance(name, str) else spelt(name)
    by_folded = {k.casefold(): k for k in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(by_folded[n] for n in near)}?" if near else ""
    return SlacklineError(f"unknown {kind} {spelt(name)}{hint} (known: {', '.join(known)})")


def require_name(kind: str, name: Any, known: Iterable[str]) -> None:
    """Refuse what is none of the known names."""
    known = list(known)
    if not isinstance(name, str) or name not in known:
        raise unknown(kind, name, known)


def require_number(
    field: str,
    value: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
) -> None:
    """Refuse a value that is NaN, infinite, outside [low, high], or not strictly above `above`."""
    bounds = [
        f"greater than {above:g}" if above > -math.inf else "",
        f"at least {low:g}" if low > -math.inf else "",
        f"at most {high:g}" if high < math.inf else "",
    ]
    allowed = "a finite number" + "".join(f", {b}" for b in bounds if b)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise SlacklineError(f"{field} is {spelt(value)}; it must be {allowed}")
    try:
        value = float(value)
    except OverflowError:  # a whole number beyond all floats
        value = math.inf
    if not math.isfinite(value) or value < low or value > high or value <= above:
        raise SlacklineError(f"{field} is {value:g}; it must be {allowed}")


def require_count(field: str, value: int, *, low: int = 1, high: int = 1_000_000) -> None:
    """Refuse a count outside [low, high]."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise SlacklineError(
            f"{field} is {spelt(value)}; it must be a whole number from {low} to {high}"
        )
