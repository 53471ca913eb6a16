"""Progress on a terminal; silence elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from slackline.shown import decimals, human

STDERR = Console(stderr=True)


@dataclass(frozen=True)
class Tick:
    """Where a training stands."""

    steps: int
    """Environment steps done, per seed."""
    total_steps: int
    copies: int
    """Seeds × members of an ensemble, trained at once."""
    mean_return: float
    """Mean over seeds of the return of the episodes that just ended (NaN if none did)."""
    seconds: float
    """Time spent so far, earlier sessions included."""


OnTick = Callable[[Tick], None]


@contextmanager
def training_bar(title: str, digits: int | None = None, *, shown: bool = True) -> Iterator[OnTick]:
    """A bar with the return (so many decimals, or by its size), steps per second and the time left;
    nothing where there is no terminal, or if it is not to be shown."""
    if not (shown and STDERR.is_terminal):
        yield lambda _: None
        return
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

        def on_tick(tick: Tick) -> None:
            with suppress(OSError):  # the terminal was closed: the training goes on all the same
                draw(tick)

        yield on_tick


@contextmanager
def waiting(title: str, *, shown: bool = True) -> Iterator[None]:
    """A spinner for work of unknown length."""
    if not (shown and STDERR.is_terminal):
        yield
        return
    with STDERR.status(title):
        yield


def steps_per_second(now: Tick, before: Tick | None) -> float | None:
    """Environment steps of all seeds per second since the last tick (the first one compiled)."""
    if before is None or now.seconds <= before.seconds:
        return None
    return (now.steps - before.steps) * now.copies / (now.seconds - before.seconds)
