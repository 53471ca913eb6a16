"""Dataclasses whose fields declare their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from slackline.errors import SlacklineError
from slackline.io.decode import (
    check,
    count,
    counts,
    decode,
    flag,
    number,
    one_of,
    part,
    several,
    table,
    text,
)


@dataclass(frozen=True)
class Config:
    """One field of each kind; the first has no default."""

    steps: int = count(high=100)
    share: float = number(0.5, low=0.0, high=1.0)
    rate: float = number(1.0, above=0.0)
    wide: tuple[int, ...] = counts((8, 8), high=64, shortest=1, longest=3)
    loud: bool = flag(False)
    kind: str = one_of("a", lambda: ("a", "b"))


def test_what_is_left_out_is_the_default_or_the_bases() -> None:
    made = decode(Config, {"steps": 3, "wide": [4]})
    assert made == Config(3, 0.5, 1.0, (4,), False, "a")
    assert decode(Config, {"loud": True}, base=made) == Config(3, 0.5, 1.0, (4,), True, "a")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"steps": 101}, "steps is 101; it must be a whole number from 1 to 100"),
        ({"steps": 2.0}, "steps is 2.0; it must be a whole number"),
        ({"steps": True}, "steps is True; it must be a whole number"),
        ({"share": 1.5}, "share is 1.5; it must be a finite number, at least 0, at most 1"),
        ({"share": float("nan")}, "share is nan"),
        ({"share": "x"}, "share is 'x'"),
        ({"rate": 0}, "rate is 0; it must be a finite number, greater than 0"),
        ({"wide": 8}, "wide is 8; it must be a list of widths"),
        ({"wide": []}, "number of layers in wide is 0"),
        ({"wide": [1, 2, 3, 4]}, "number of layers in wide is 4"),
        ({"wide": [8, 0]}, "wide is 0; it must be a whole number from 1 to 64"),
        ({"loud": 1}, "loud is 1; it must be true or false"),
        ({"kind": "c"}, "kind is 'c'; it must be a or b"),
        ({"kind": ["a"]}, r"kind is \('a',\); it must be a or b"),
        ({"loudd": True}, r"settings do not match this version \(fields: loudd\)"),
    ],
)
def test_what_a_field_does_not_allow_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(SlacklineError, match=says):
        decode(Config, {"steps": 1} | changed)


def test_what_has_no_default_must_be_there() -> None:
    with pytest.raises(SlacklineError, match=r"fields: steps\)$"):
        decode(Config, {"share": 0.1})
    with pytest.raises(SlacklineError, match=r"fields: share\)$"):
        decode(Config, {"steps": 1}, required=("share",))


def test_a_dataclass_made_by_hand_is_checked_alike() -> None:
    check(Config(1))
    with pytest.raises(SlacklineError, match="share is -1"):
        check(Config(1, share=-1.0))


@dataclass(frozen=True)
class Whole:
    """Holds another dataclass, and what only some have."""

    name: str = text()
    inner: Config = part(lambda values: decode(Config, values))
    seeds: tuple[int, ...] = several(one="seed", low=0, high=9, longest=2)
    more: dict[str, Any] | None = table(None)


def test_parts_are_decoded_too() -> None:
    plain = {"name": "x", "inner": {"steps": 3}, "seeds": [4]}
    assert decode(Whole, plain) == Whole("x", Config(3), (4,), None)
    assert decode(Whole, plain | {"more": {"a": 1}}).more == {"a": 1}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"name": 3}, "name is 3; it must be text"),
        ({"inner": 3}, "inner is 3; it must be a table"),
        ({"inner": {"steps": 0}}, "steps is 0; it must be a whole number from 1 to 100"),
        ({"seeds": 3}, "seeds is 3; it must be a list of whole numbers"),
        ({"seeds": []}, "number of seeds is 0; it must be a whole number from 1 to 2"),
        ({"seeds": [1, 10]}, "seed is 10; it must be a whole number from 0 to 9"),
        ({"more": []}, r"more is \(\); it must be a table"),
    ],
)
def test_parts_tables_and_lists_are_checked(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(SlacklineError, match=says):
        decode(Whole, {"name": "x", "inner": {"steps": 3}, "seeds": [4]} | changed)
