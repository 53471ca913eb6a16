"""What is said of options that cannot be parsed, by tyro's private events or without them."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from commands import refused

from slackline.cli import parsing

SENTENCES = {
    "train": "SUITE is missing (slackline train --help)",
    "train cartpole --stepz 3": "unknown options: --stepz 3 (slackline train --help)",
    "train cartpole --steps": "--steps needs a value after it (slackline train --help)",
    "train cartpole --steps x": "--steps: not a whole number (",
    "report runs --table b": "--table is 'b'; it must be beta or shots or summary or variations (",
}


@pytest.mark.parametrize("words", SENTENCES)
def test_tyros_private_events_are_where_they_were(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"error: {SENTENCES[words]}" in refused(capsys, *words.split()), (
        "tyro's private _errors is not what it was in 1.0.16: mend slackline/cli/parsing.py, or "
        "pin tyro; until then users read tyro's own text, as the next test does"
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("train", "SUITE"),
        ("train cartpole --stepz 3", "--stepz"),
        ("train cartpole --steps", "--steps"),
        ("train cartpole --steps x", "not a whole number"),
        ("report runs --table b", "'b'"),
    ],
)
@pytest.mark.parametrize("lost", ["hook", "fields"])
def test_without_them_tyros_own_text_is_the_error(
    words: str,
    named: str,
    lost: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whether the hook is gone or its events have other fields."""
    if lost == "hook":

        def no_hook(_: Any) -> AbstractContextManager[None]:
            return nullcontext()

        monkeypatch.setattr(parsing, "on_event", no_hook)
    else:
        monkeypatch.setattr(parsing, "_complaint", lambda event: event.what_was_renamed)
    said = refused(capsys, *words.split())
    assert named in said
    assert said.endswith(f"(slackline {words.split()[0]} --help)")
    assert not set(said) & set("│╭╯")


def test_an_event_that_is_unknown_is_left_to_tyro() -> None:
    class UnknownEvent(SimpleNamespace):
        pass

    assert parsing.complaint(UnknownEvent(prog="slackline")) is None
    assert parsing.without_box("╭─╮\n│ │\n╰─╯") == "the options could not be understood"


def test_the_import_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tyro._errors", None)
    with parsing.on_event(lambda _: None) as found:
        assert found is None
