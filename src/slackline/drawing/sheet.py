"""Sheets to draw on: colours, matplotlib's settings, and a canvas that needs no display."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from slackline.errors import SlacklineError

COLOURS = (
    *("#d55e00", "#828383", "#0072b2", "#359566", "#3d9fdb"),
    *("#ac4188", "#8f4f00", "#483d9b", "#ae005d", "#7e5337", "#1a1a1a", "#9000f0"),
)
"""By `colour_index`; safe for colour-blind readers."""
NUM_COLOURS = len(COLOURS)
INK, QUIET, GRID = "#1d2329", "#5b6570", "#e6e4de"
FREE, WALL = "#f7f6f2", "#3a424b"  # of a maze
WIDTH, DPI = 10.0, 160  # 1600 pixels

STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#b9b6ae",
    "axes.grid": True,
    "axes.labelcolor": QUIET,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 10,
    "grid.color": GRID,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}


def styled() -> AbstractContextManager[None]:
    """Our style, as a context; to be entered before anything else of matplotlib's."""
    try:
        import matplotlib.figure
    except ImportError:
        raise SlacklineError(
            "figures need matplotlib: pip install 'slackline-rl[figures]'"
        ) from None
    return matplotlib.rc_context(STYLE)


def new_figure(width: float, height: float, dpi: int, **settings: Any) -> Any:
    """An empty figure (inches) on the Agg canvas, whatever backend the user has."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, **settings)
    FigureCanvasAgg(figure)
    return figure


def file_of(figure: Any, kind: str = "png") -> bytes:
    """The content of a picture file; matplotlib itself would write through links."""
    file = io.BytesIO()
    figure.savefig(file, format=kind)
    return file.getvalue()


class Sheet(NamedTuple):
    """A figure addressed in inches from its top left corner."""

    figure: Any
    width: float
    height: float

    def write(self, x: float, y: float, text: str, **style: Any) -> None:
        style = {"fontsize": 9, "color": INK, "va": "top"} | style
        self.figure.text(x / self.width, 1 - y / self.height, text, **style)

    def axes(self, x: float, y: float, width: float, height: float) -> Any:
        box = (x, self.height - y - height, width, height)
        sizes = (self.width, self.height) * 2
        return self.figure.add_axes(tuple(a / b for a, b in zip(box, sizes, strict=True)))


def new_sheet(width: float, height: float, dpi: int) -> Sheet:
    return Sheet(new_figure(width, height, dpi, facecolor="white"), width, height)
