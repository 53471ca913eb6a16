"""Dataclasses whose fields declare what they allow: checked, and decoded from plain data.

@dataclass(frozen=True)
class Config:
    discount: float = number(0.99, low=0.0, high=1.0)
    hidden: tuple[int, ...] = counts((8, 8), high=1024)

check(Config(discount=2.0))  # discount is 2; it must be ... at least 0, at most 1
decode(Config, {"discount": 0.9, "hidden": [8]})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, field, fields, replace
from typing import Any, TypeVar

from slackline.errors import SlacklineError, require_count, require_number, spelt

T = TypeVar("T")

RULE = "slackline-rule"
"""Where a field's metadata keeps what it allows: a function of (name, value) that may raise."""
PART = "slackline-part"
"""Where it keeps how to read a field that is a dataclass itself: a function of a mapping."""


def number(
    default: Any = MISSING,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
) -> Any:
    """A field with a finite number in [low, high] that is greater than `above`."""
    return _field(
        default, lambda name, value: require_number(name, value, low=low, high=high, above=above)
    )


def count(default: Any = MISSING, *, low: int = 1, high: int = 1_000_000) -> Any:
    """A field with a whole number from `low` to `high`."""
    return _field(default, lambda name, value: require_count(name, value, low=low, high=high))


def counts(
    default: tuple[int, ...], *, high: int = 1_000_000, shortest: int = 0, longest: int = 16
) -> Any:
    """A field with several whole numbers from 1 to `high`, the widths of layers."""

    def rule(name: str, value: Any) -> None:
        if not isinstance(value, tuple):
            raise SlacklineError(f"{name} is {spelt(value)}; it must be a list of widths")
        layers = f"number of layers in {name}"
        require_count(layers, len(value), low=shortest, high=longest)
        for each in value:
            require_count(name, each, high=high)

    return _field(default, rule)


def several(default: Any = MISSING, *, one: str, low: int, high: int, longest: int) -> Any:
    """A field with up to `longest` whole numbers from `low` to `high`; `one` is what errors call
    one of them."""

    def rule(name: str, value: Any) -> None:
        if not isinstance(value, tuple):
            raise SlacklineError(f"{name} is {spelt(value)}; it must be a list of whole numbers")
        require_count(f"number of {name}", len(value), high=longest)
        for each in value:
            require_count(one, each, low=low, high=high)

    return _field(default, rule)


def text(default: Any = MISSING) -> Any:
    """A field with a string."""
    return _of_type(default, str, "text")


def table(default: Any = MISSING) -> Any:
    """A field with a dictionary, or with its default."""
    return _of_type(default, dict, "a table of names and values")


def part(read: Callable[[Any], Any]) -> Any:
    """A field with another dataclass, which `read` decodes."""
    return field(metadata={PART: read})


def _of_type(default: Any, kind: type, described: str) -> Any:
    def rule(name: str, value: Any) -> None:
        if not isinstance(value, kind) and value is not default:
            raise SlacklineError(f"{name} is {spelt(value)}; it must be {described}")

    return _field(default, rule)


def flag(default: bool) -> Any:
    """A field that is true or false."""

    def rule(name: str, value: Any) -> None:
        if not isinstance(value, bool):
            raise SlacklineError(f"{name} is {spelt(value)}; it must be true or false")

    return _field(default, rule)


def one_of(default: str, choices: Callable[[], Iterable[str]]) -> Any:
    """A field with one of the words that `choices` lists at the time."""

    def rule(name: str, value: Any) -> None:
        known = list(choices())
        if not isinstance(value, str) or value not in known:
            raise SlacklineError(f"{name} is {spelt(value)}; it must be {' or '.join(known)}")

    return _field(default, rule)


def _field(default: Any, rule: Callable[[str, Any], None]) -> Any:
    return field(default=default, metadata={RULE: rule})


def check(config: Any) -> None:
    """Refuse a dataclass with a value that its field does not allow."""
    for each in fields(config):
        if rule := each.metadata.get(RULE):
            rule(each.name, getattr(config, each.name))


def decode(
    kind: type[T],
    values: Mapping[str, Any],
    *,
    base: T | None = None,
    required: Collection[str] = (),
    what: str = "settings",
) -> T:
    """A checked `kind` from what JSON or TOML has: lists become tuples.

    What `values` lacks is taken from `base` or the defaults, unless it is `required`.
    """
    every: Any = fields(kind)  # type: ignore[arg-type]
    needed = {f.name for f in every if f.default is f.default_factory is MISSING and base is None}
    odd = (set(values) - {f.name for f in every}) | (needed.union(required) - set(values))
    if odd:
        names = ", ".join(sorted(odd))
        raise SlacklineError(f"{what} do not match this version (fields: {names})")
    parts = {f.name: f.metadata[PART] for f in every if PART in f.metadata}
    whole = {name: _decoded(name, x, parts.get(name)) for name, x in values.items()}
    made: Any = kind(**whole) if base is None else replace(base, **whole)  # type: ignore[type-var]
    check(made)
    return made


def _decoded(name: str, value: Any, read: Callable[[Any], Any] | None) -> Any:
    if read is None:
        return tuple(value) if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        raise SlacklineError(f"{name} is {spelt(value)}; it must be a table of names and values")
    return read(value)
