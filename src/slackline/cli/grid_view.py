"""The whole grid on a terminal, while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slackline.bench.board import Board
from slackline.bench.costs import spoken
from slackline.progress import STDERR
from slackline.shown import human

SHOWN = 12
"""Rows of cells that are being run."""


@contextmanager
def grid_view(board: Board, skipped: int) -> Iterator[Callable[[], None]]:
    """A view of the board, drawn again at each call; nothing where there is no terminal."""
    if not STDERR.is_terminal:
        yield lambda: None
        return
    with Live(console=STDERR, transient=True, auto_refresh=False) as live:

        def draw() -> None:
            with suppress(OSError):  # the terminal was closed: the cells go on all the same
                live.update(view(board, skipped), refresh=True)

        draw()
        yield draw


def view(board: Board, skipped: int) -> Group:
    """What is drawn: a line for the whole grid, and one for every cell that is being run."""
    rows = Table.grid(padding=(0, 2))
    for name, cell in list(board.running.items())[:SHOWN]:
        done = "adapting" if cell.share >= 1.0 else f"{cell.share:.0%}"
        speed = f"{human(cell.speed)} steps/s" if cell.speed else ""
        mean = cell.tick.mean_return if cell.tick else math.nan
        last = "" if math.isnan(mean) else f"return {mean:.4g}"
        again = f"attempt {cell.attempts}" if cell.attempts > 1 else ""
        bar = ProgressBar(total=1.0, completed=min(cell.share, 1.0), width=24)
        rows.add_row(name, bar, done if cell.tick else "compiling", speed, last, again)
    return Group(rows, Text(standing(board, skipped), style="bold"))


def standing(board: Board, skipped: int) -> str:
    """One line about the whole grid."""
    ended = len(board.done) + skipped
    words = [f"{ended} of {len(board.expected) + skipped} cells done"]
    words += [f"{len(board.running)} running"] if board.running else []
    words += [f"{len(board.failed)} failed"] if board.failed else []
    left = board.seconds_left()
    if left is not None and len(board.done) + len(board.failed) < len(board.expected):
        words.append(f"about {spoken(left)} left")
    return ", ".join(words)
