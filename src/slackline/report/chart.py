"""Charts as data: what is drawn, of which colour and under which name; no library's words.

`plotly_charts` draws them into the page and `figures` into PNG files. Colours are numbers of the
palette (`sheet.COLOURS`, and the style sheet's --c0, --c1, …), None is ink. Sizes are in pixels of
the page. Values that are NaN are gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Line:
    """Values joined up, or dots where `joined` is False."""

    x: Numbers
    y: Numbers
    colour: int | None
    label: str = ""
    """In the legend; lines of one label have one entry, those without have none."""
    hover: tuple[str, ...] = ()
    """What is said at each point."""
    width: float = 2.4
    opacity: float = 1.0
    dot: float = 0.0
    """Diameter of the dots; 0: none."""
    joined: bool = True
    dashed: bool = False
    group: str = ""
    """Marks of one group are shown and hidden together."""


@dataclass(frozen=True)
class Diamonds:
    """Marks of single values."""

    x: Numbers
    y: Numbers
    colour: int | None
    label: str
    hover: tuple[str, ...]
    size: float = 9.0
    filled: bool = False
    """With the ground's colour, so that what lies below is hidden."""
    group: str = ""
    """Where the axis has names: the group of bars it stands in."""


@dataclass(frozen=True)
class Bars:
    """Bars from zero."""

    x: Numbers
    y: Numbers
    colour: int
    label: str
    hover: tuple[str, ...]
    errors: Numbers | None = None
    """Half the length of each whisker."""
    pattern: int = 0
    """Tells bars of one colour apart; 0: none."""
    group: str = ""
    """Bars of one group stand in line, groups side by side. Bars without one are stacked."""


@dataclass(frozen=True)
class Band:
    """What lies between two curves."""

    x: Numbers
    low: Numbers
    high: Numbers
    colour: int
    opacity: float = 0.12
    group: str = ""


@dataclass(frozen=True)
class Cells:
    """A heat map: a value for every name of the y axis (down) and every column 0, 1, 2, …"""

    values: np.ndarray
    """(rows, columns); 0 is the ground's colour, NaN a gap."""
    colour: int
    hover: tuple[str, ...] = ()
    """What is said at each cell, row by row."""
    most: float = 1.0
    """The value that has the whole colour."""
    label: str = ""
    decimals: int = 0
    """Of the numbers written into the cells; zeros are left out."""


Mark = Line | Diamonds | Bars | Band | Cells


@dataclass(frozen=True)
class Axis:
    """A scale and its title."""

    title: str = ""
    long_title: str = ""
    """Where there is room for it."""
    names: tuple[str, ...] = ()
    """What stands at 0, 1, 2, …, if it is no scale of numbers."""
    ticks: tuple[float, ...] = ()
    """Where to put numbers; none: anywhere."""
    decimals: int | None = None
    """Of these numbers; None: as few as tell them apart."""
    span: tuple[float, float] | None = None
    """From where to where; None: over all values."""
    from_zero: bool = False
    large: bool = False
    """Whether its numbers are to be written short: 20k, 1.5M."""


@dataclass(frozen=True)
class Chart:
    """One pair of axes."""

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    label: str
    """The chart in a sentence, for those who do not see it."""
    height: int
    name: str = ""
    """What stands above it, where there are several."""
    note: str = ""
    """What stands beside its name."""
    whiskers: str = ""
    """What the bars' errors are."""
    legend: bool = False
    """Whether the legend is drawn inside the page's chart."""

    @property
    def labelled(self) -> dict[str, Mark]:
        """The legend: the first mark of every label."""
        found: dict[str, Mark] = {}
        for mark in self.marks:
            if not isinstance(mark, Band) and mark.label:
                found.setdefault(mark.label, mark)
        return found


def legend_of(charts: Sequence[Chart]) -> dict[str, Mark]:
    """One legend for all of them."""
    found: dict[str, Mark] = {}
    for chart in charts:
        for label, mark in chart.labelled.items():
            found.setdefault(label, mark)
    return found


@dataclass(frozen=True)
class Plate:
    """One or several charts under a title: a file."""

    name: str
    """The end of its file name."""
    title: str
    subtitle: str
    charts: tuple[Chart, ...]
    legend_title: str = ""
    """Above the legend, which then stands at the side and not below."""
