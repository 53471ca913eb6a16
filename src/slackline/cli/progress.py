"""The bar of a command that trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from slackline import progress
from slackline.cli.signals import unsaved_work
from slackline.progress import OnTick, Tick


@contextmanager
def training_bar(title: str, digits: int | None = None) -> Iterator[OnTick]:
    """A bar where there is a terminal; the first signal waits for the stride to be saved."""

    def on_tick(tick: Tick) -> None:
        unsaved_work(True)
        draw(tick)

    try:
        with progress.training_bar(title, digits) as draw:
            yield on_tick
    finally:
        unsaved_work(False)
