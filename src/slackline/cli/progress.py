"""Progress on a terminal; silence elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from slackline.cli.signals import unsaved_work
from slackline.training import OnTick, Tick

STDERR = Console(stderr=True)


@contextmanager
def training_bar(title: str, digits: int | None = None) -> Iterator[OnTick]:
    """A bar with the return (so many decimals, or by its size), steps per second and the
    time left; nothing when nobody is watching."""

    def on_tick(tick: Tick) -> None:
        unsaved_work(True)
        with suppress(OSError):  # the terminal was closed: the training is saved all the same
            draw(tick)

    try:
        with _bar(title, digits) as draw:
            yield on_tick
    finally:
        unsaved_work(False)


@contextmanager
def _bar(title: str, digits: int | None) -> Iterator[OnTick]:
    if not STDERR.is_terminal:
        yield lambda _: None
        return
    from slackline.bench.stats import decimals

    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("return {task.fields[mean]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=STDERR, transient=True) as progress:
        task = progress.add_task(title, total=None, speed="compiling", mean="–")
        before: list[Tick] = []

        def draw(tick: Tick) -> None:
            rate = steps_per_second(tick, before[-1] if before else None)
            before[:] = [tick]
            # Robots' episodes end all at once, and seldom; until then the last return stays.
            if not math.isnan(tick.mean_return):
                places = decimals(tick.mean_return, digits)
                progress.update(task, mean=f"{tick.mean_return:.{places}f}")
            progress.update(
                task,
                total=tick.total_steps,
                completed=tick.steps,
                speed=f"{human(rate)} steps/s" if rate else "",
            )

        yield draw


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A spinner for work of unknown length."""
    if not STDERR.is_terminal:
        yield
        return
    with STDERR.status(title):
        yield


def steps_per_second(now: Tick, before: Tick | None) -> float | None:
    """Environment steps of all seeds per second since the last tick (the first one compiled)."""
    if before is None or now.seconds <= before.seconds:
        return None
    return (now.steps - before.steps) * now.copies / (now.seconds - before.seconds)


def human(number: float) -> str:
    """12345678 -> 12.3M"""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
