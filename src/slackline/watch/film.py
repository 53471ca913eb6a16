"""The film: K policies side by side, moving."""

from __future__ import annotations

import math
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from slackline.drawing.sheet import INK, QUIET, new_sheet
from slackline.watch.scenes import Picture, Window
from slackline.watch.stage import BEST, MARGIN, Stage, aspect_of, frame, write_heading
from slackline.watch.watched import Watched

DPI = 100
GAP, HEAD, TOP = 0.14, 0.52, 0.86
"""Inches: between panels, above a picture, above all panels."""
LAST = 1.6
"""Seconds for which the last frame stands before the film begins anew."""


class Timing(NamedTuple):
    """Which steps are frames, and how fast they play."""

    every: int
    fps: float

    @staticmethod
    def of(seconds: float | None, every: int | None, fps: float | None) -> Timing:
        """In real time where that can be watched (10 to 25 frames a second), but for what is given.

        An environment without seconds plays ten steps a second.
        """
        seconds = seconds or 0.1
        if every is None:
            every = max(1, round(1.0 / ((fps or 25.0) * seconds)))
        return Timing(every, fps or float(np.clip(1.0 / (every * seconds), 10.0, 25.0)))

    def steps(self, shown: int) -> list[int]:
        """The steps that are drawn: every so many, and the last."""
        return sorted({*range(0, shown + 1, self.every), shown})

    def durations(self, num: int) -> list[int]:
        """Milliseconds for each of `num` frames."""
        return [round(1000.0 / self.fps)] * (num - 1) + [round(1000.0 * LAST)]


class Panel(NamedTuple):
    """One policy of a film: its stage and the words that change."""

    stage: Stage
    total: Any
    """The return so far."""
    note: Any

    @property
    def artists(self) -> list[Any]:
        return [*self.stage.artists, self.total, self.note]


class FilmSheet:
    """A sheet of which only what moves is drawn anew for every frame."""

    def __init__(self, watched: Watched):
        self.watched, num = watched, len(watched.labels)
        window = watched.picture(0, 0).window
        columns = num if num <= 3 else math.ceil(math.sqrt(num))
        self.wide = {1: 4.8, 2: 3.4}.get(columns, 2.7)
        self.tall = self.wide * aspect_of(window)
        width = 2 * MARGIN + columns * self.wide + (columns - 1) * GAP
        below = fill(watched.explanation, int(width * 14))
        bottom = TOP + -(-num // columns) * (HEAD + self.tall + GAP)
        height = bottom + 0.17 * (below.count("\n") + 1) + 0.1
        self.sheet = new_sheet(width, height, DPI)
        write_heading(self.sheet, watched)
        self.sheet.write(MARGIN, bottom, below, fontsize=9.5, color=QUIET, linespacing=1.3)
        self.clock = self.moving(width - MARGIN, 0.17, fontsize=14, color=QUIET, ha="right")
        self.panels = []
        for k in range(num):
            row, column = divmod(k, columns)
            empty = max(0, (row + 1) * columns - num)  # a last row that is not full is centred
            x = MARGIN + (column + empty / 2) * (self.wide + GAP)
            self.panels.append(self.panel(k, x, TOP + row * (HEAD + self.tall + GAP), window))
        self.canvas: Any = self.sheet.figure.canvas
        self.canvas.draw()
        self.still = self.canvas.copy_from_bbox(self.sheet.figure.bbox)

    def panel(self, k: int, x: float, y: float, window: Window) -> Panel:
        sheet, best = self.sheet, bool(self.watched.best[k])
        frame(sheet, x, y, self.wide, HEAD + self.tall, best=best)
        axes = sheet.axes(x + 0.03, y + HEAD, self.wide - 0.06, self.tall - 0.03)
        big, small = {"fontsize": 14, "weight": "bold"}, {"fontsize": 9, "color": QUIET}
        sheet.write(x + 0.1, y + 0.08, self.watched.name(k), **big, color=BEST if best else INK)
        right = x + self.wide - 0.1
        sheet.write(right, y + 0.325, self.watched.meaning(k), **small, ha="right")
        return Panel(
            Stage(axes, window, line=0.9, size=9, rough=True),
            self.moving(right, y + 0.08, **big, ha="right"),
            self.moving(x + 0.1, y + 0.325, **small),
        )

    def moving(self, x: float, y: float, **style: Any) -> Any:
        """An empty text at a place of the sheet, in inches, to be filled frame by frame."""
        self.sheet.write(x, y, "", **style)
        return self.sheet.figure.texts[-1]

    def draw(self, step: int) -> np.ndarray:
        """The frame after `step` steps, (H, W, 3) of bytes."""
        self.clock.set_text(self.watched.clock(step))
        returns = self.watched.returns(step)
        for k, panel in enumerate(self.panels):
            picture = self.watched.picture(k, step)
            panel.stage.show(picture)
            panel.total.set_text(returns[k])
            panel.note.set_text(self.note(k, step, picture))
        self.canvas.restore_region(self.still)
        for artist in [self.clock, *(a for panel in self.panels for a in panel.artists)]:
            self.sheet.figure.draw_artist(artist)
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def note(self, k: int, step: int, picture: Picture) -> str:
        ended = f"ended at {self.watched.clock(int(self.watched.episodes.lengths[k]))}"
        words = [picture.note, ended if self.watched.over(k, step) else ""]
        return " · ".join(word for word in words if word)
