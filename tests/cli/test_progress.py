"""The bar that is shown while training."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from slackline.cli import progress
from slackline.training import Tick


def test_the_last_return_stays_until_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system=None, width=120)
    monkeypatch.setattr(progress, "STDERR", console)
    with progress.training_bar("line") as on_tick:
        on_tick(Tick(10, 100, 1, 42.04, 1.0))
        on_tick(Tick(20, 100, 1, math.nan, 2.0))
    last = screen.getvalue().rpartition("return ")[2]
    assert last.startswith("42.0 ")
    assert "20%" in screen.getvalue()


def test_nothing_is_shown_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(progress, "STDERR", Console(file=screen))
    with progress.training_bar("line") as on_tick:
        on_tick(Tick(10, 100, 1, 42.04, 1.0))
    assert screen.getvalue() == ""
