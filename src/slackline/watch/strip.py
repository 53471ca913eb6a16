"""The strip: stills of K policies, a row a policy, time to the right."""

from __future__ import annotations

import numpy as np

from slackline.drawing.sheet import DPI, INK, QUIET, WIDTH, Sheet, file_of, new_sheet, styled
from slackline.watch.stage import (
    BEST,
    MARGIN,
    Stage,
    aspect_of,
    frame,
    write_heading,
)
from slackline.watch.watched import Watched

MOMENTS = 6
"""Stills of each policy."""
TOP, BOTTOM, NAMES, GAP = 1.16, 0.36, 1.6, 0.06
"""Inches: above and below the rows, for the words at the left of a row, between stills."""


def strip_png(watched: Watched) -> bytes:
    """The strip as a PNG file."""
    window = watched.picture(0, 0).window
    wide = (WIDTH - 2 * MARGIN - NAMES) / MOMENTS
    pitch = max((wide - GAP) * aspect_of(window), 0.9) + 0.24
    with styled():
        sheet = new_sheet(WIDTH, TOP + len(watched.labels) * pitch + BOTTOM, DPI)
        write_heading(sheet, watched)
        for j, step in enumerate(moments(watched.shown)):
            x = MARGIN + NAMES + (j + 0.5) * wide
            sheet.write(x, TOP - 0.28, watched.clock(step), ha="center", color=QUIET)
        for k in range(len(watched.labels)):
            draw_row(sheet, watched, k, TOP + k * pitch, pitch, wide)
        sheet.write(MARGIN, sheet.height - 0.3, watched.explanation, color=QUIET)
        return file_of(sheet.figure)


def moments(shown: int) -> list[int]:
    """Steps evenly over what is shown, both ends included."""
    return [round(step) for step in np.linspace(0, shown, MOMENTS)]


def draw_row(sheet: Sheet, watched: Watched, k: int, y: float, pitch: float, wide: float) -> None:
    """One policy: its words, then its stills."""
    window = watched.picture(k, 0).window
    tall = (wide - GAP) * aspect_of(window)
    middle = y + (pitch - 0.1 - tall) / 2
    frame(sheet, MARGIN, y, WIDTH - 2 * MARGIN, pitch - 0.1, best=bool(watched.best[k]))
    write_words(sheet, watched, k, y + 0.1)
    for j, step in enumerate(moments(watched.shown)):
        axes = sheet.axes(MARGIN + NAMES + j * wide, middle, wide - GAP, tall)
        Stage(axes, window, line=0.7, size=6.5).show(watched.picture(k, step))


def write_words(sheet: Sheet, watched: Watched, k: int, y: float) -> None:
    """z and the return."""
    x, colour = MARGIN + 0.12, BEST if watched.best[k] else INK
    sheet.write(x, y, watched.name(k), fontsize=12, weight="bold", color=colour)
    lines = [f"return {watched.returns()[k]}"]
    if watched.over(k, watched.shown):
        lines.append(f"ended at {watched.clock(int(watched.episodes.lengths[k]))}")
    elif watched.partial:
        until = watched.clock(watched.shown)
        lines.append(f"until {until}: {watched.returns(watched.shown)[k]}")
    lines.append(watched.picture(k, watched.shown).note)
    words = "\n".join(line for line in lines if line)
    sheet.write(x, y + 0.27, words, color=QUIET, linespacing=1.35)
