"""Where pictures are drawn: sheets, their frames, and the stage of one policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackline.drawing.sheet import COLOURS, GRID, INK, QUIET, Sheet
from slackline.watch.scenes import ACCENT, SKY, Label, Picture, Window, mix
from slackline.watch.watched import Watched

BEST = COLOURS[3]
MARGIN = 0.16
"""Inches around a sheet."""


def write_heading(sheet: Sheet, watched: Watched) -> None:
    """The title; below it what was changed, in the colour that marks it on the bodies."""
    sheet.write(MARGIN, 0.13, watched.title, fontsize=17, weight="bold")
    colour = ACCENT if watched.is_changed else QUIET
    sheet.write(MARGIN, 0.5, watched.change, fontsize=11.5, color=colour)
    sheet.write(sheet.width - MARGIN, 0.5, watched.who, fontsize=10.5, color=QUIET, ha="right")


class Stage:
    """The axes of one policy: polygons and labels that are replaced from picture to picture.

    A rough one does not smooth shapes without an outline (grounds, shadows): the film of an ant is
    a quarter smaller that way.
    """

    def __init__(self, axes: Any, window: Window, *, line: float, size: float, rough: bool = False):
        from matplotlib.collections import PolyCollection

        left, bottom, right, top = window
        axes.set_axis_off()
        axes.set(xlim=(left, right), ylim=(bottom, top))
        self.axes, self.line, self.rough = axes, line, rough
        self.words = {"ha": "center", "va": "top", "color": QUIET, "size": size, "clip_on": True}
        self.texts: list[Any] = []
        self.image: Any = None
        self.polygons = PolyCollection([], closed=True, joinstyle="round")
        axes.add_collection(self.polygons, autolim=False)

    def show(self, picture: Picture) -> None:
        """Replace what is on stage."""
        if picture.image is not None:
            self._put(picture.image)
        shapes = [s for s in picture.shapes if is_seen(s.outline, picture.window)]
        self.polygons.set_verts([s.outline for s in shapes])
        self.polygons.set_facecolor([s.fill for s in shapes])
        # A shape without an outline gets a hair of its own colour, or neighbours would show seams.
        self.polygons.set_edgecolor([s.edge or s.fill for s in shapes])
        self.polygons.set_linewidth([self.line if s.edge else 0.3 for s in shapes])
        self.polygons.set_antialiased([bool(s.edge) or not self.rough for s in shapes])
        while len(self.texts) < len(picture.labels):
            self.texts.append(self.axes.text(0, 0, "", **self.words))
        blank = [Label(0, 0, "")] * len(self.texts)
        for text, (x, y, words) in zip(self.texts, [*picture.labels, *blank], strict=False):
            text.set(position=(x, y), text=words)

    def _put(self, image: np.ndarray) -> None:
        """Replace the pixels behind everything."""
        if self.image is None:
            extent = (*self.axes.get_xlim(), *self.axes.get_ylim())
            self.image = self.axes.imshow(image, extent=extent, aspect="auto", zorder=0)
        else:
            self.image.set_data(image)

    @property
    def artists(self) -> list[Any]:
        image = [] if self.image is None else [self.image]
        return [*image, self.polygons, *self.texts]


def is_seen(outline: np.ndarray, window: Window) -> bool:
    """Whether a polygon's bounding box meets the window."""
    left, bottom, right, top = window
    (low_x, low_y), (high_x, high_y) = outline.min(axis=0), outline.max(axis=0)
    return bool(low_x < right and high_x > left and low_y < top and high_y > bottom)


def aspect_of(window: Window) -> float:
    """Height over width."""
    left, bottom, right, top = window
    return (top - bottom) / (right - left)


def frame(sheet: Sheet, x: float, y: float, width: float, height: float, *, best: bool) -> None:
    """A panel's border, in inches from the top left corner; green and strong for the best."""
    from matplotlib.patches import FancyBboxPatch

    place = (x, sheet.height - y - height)
    colour, line = (BEST, 2.6) if best else (mix(GRID, INK, 0.12), 1.0)
    patch = FancyBboxPatch(
        place,
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.06",
        transform=sheet.figure.dpi_scale_trans,
        facecolor=SKY,
        edgecolor=colour,
        linewidth=line,
        zorder=-1,
    )
    sheet.figure.add_artist(patch)
