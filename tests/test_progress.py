"""The bar that is shown while training."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

import slackline as sl
from slackline import progress
from slackline.progress import Tick


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


TINY = sl.Hyper(num_envs=4, num_steps=4)


@pytest.mark.parametrize("progress_asked", [True, False])
def test_python_shows_progress_on_a_terminal_unless_told_not_to(
    progress_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, color_system=None, width=120)
    monkeypatch.setattr(progress, "STDERR", console)
    line = sl.train("cartpole", steps=320, hyper=TINY, progress=progress_asked)
    trained = screen.getvalue()
    line.adapt("LongPole", budget=2, score_episodes=1, progress=progress_asked)
    adapted = screen.getvalue().removeprefix(trained)
    assert ("senses on cartpole" in trained) == progress_asked
    assert ("adapting cartpole" in adapted) == progress_asked
    assert bool(screen.getvalue()) == progress_asked


def test_whoever_listens_is_told_instead_of_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, told = io.StringIO(), []
    console = Console(file=screen, force_terminal=True, color_system=None, width=120)
    monkeypatch.setattr(progress, "STDERR", console)
    sl.train("cartpole", steps=320, hyper=TINY, on_tick=told.append)
    assert told
    assert screen.getvalue() == ""
