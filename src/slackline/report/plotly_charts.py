"""Charts of the page: Plotly figures as plain dicts.

Colours are names that page.js resolves from the style sheet ("@ink", "@c2", or "@c2/0.3" with an
opacity), so that one figure serves the light and the dark page. An axis of names runs down the
side, where there is room for them on a telephone too.
"""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from slackline.report.chart import (
    Axis,
    Band,
    Bars,
    Cells,
    Chart,
    Diamonds,
    Line,
    Mark,
    Numbers,
    legend_of,
)

Figure = dict[str, Any]

PATTERNS = ("", "/", "x", ".")
LEGEND = {
    "orientation": "h",
    "x": 0,
    "y": 1.02,
    "yanchor": "bottom",
    "traceorder": "normal",
    "font": {"size": 12},
}
FEW = 6
"""Counts up to this many have a tick each."""
SMALL = 250
"""A chart less high has few numbers on its axes."""


def figure(chart: Chart) -> Figure:
    """What Plotly draws."""
    marks = [trace(mark) for mark in chart.marks]
    return {"data": [_laid_down(t, chart.x.names) for t in marks], "layout": layout(chart)}


def layout(chart: Chart) -> Figure:
    grouped = any(isinstance(mark, Bars) and mark.group for mark in chart.marks)
    margin = {"t": 8, "r": 20, "b": 44, "l": 60 if chart.y.title else 44}
    axes = {"xaxis": axis(chart.x, 8, chart), "yaxis": axis(chart.y, 5, chart)}
    if chart.x.names:
        margin["l"] = 8
        names = {"autorange": "reversed", "automargin": True, "showgrid": False}
        names["type"] = "category"  # names that are numbers (β) would become a scale of numbers
        axes = {"xaxis": axes["yaxis"], "yaxis": names}
    return {
        "barmode": "group" if grouped else "stack",
        "scattermode": "group" if grouped else "overlay",
        "bargap": 0.28 if grouped else 0.12,
        "height": chart.height,
        "showlegend": chart.legend,
        "legend": LEGEND,
        "margin": margin,
        **axes,
    }


def axis(of: Axis, few: int, chart: Chart) -> Figure:
    found: Figure = {"title": {"text": text(of.title), "standoff": 6}}
    if of.decimals is not None:
        found["tickformat"] = f".{of.decimals}f" if of.decimals else "d"
    if of.ticks:
        found["tickvals"] = numbers(of.ticks)
    elif of.decimals == 0 and _stacked(chart) <= FEW and of is chart.y:
        found["dtick"] = 1  # or else 0, 0, 0, 1, 1, 1
    elif chart.height < SMALL and not chart.x.names:
        found["nticks"] = few
    if of.span:
        found["range"] = list(of.span)
    if of.names and of is chart.y:
        found |= {"tickvals": list(range(len(of.names))), "ticktext": [text(n) for n in of.names]}
        found |= {"autorange": "reversed", "automargin": True, "showgrid": False}
    if of.from_zero:
        found["rangemode"] = "tozero"
    return found


def _stacked(chart: Chart) -> float:
    """How high the highest pile of bars is."""
    bars = [mark for mark in chart.marks if isinstance(mark, Bars)]
    places = {x for mark in bars for x in mark.x}
    piles = (sum(y for m in bars for x, y in zip(m.x, m.y, strict=True) if x == p) for p in places)
    return max(map(float, piles), default=math.inf)


def _laid_down(found: Figure, names: tuple[str, ...]) -> Figure:
    """A trace with its values to the right and the names down the side."""
    if not names:
        return found
    named = [text(names[int(i)]) for i in found["x"]]
    turned = found | {"x": found["y"], "y": named, "orientation": "h"}
    if "error_y" in turned:
        turned["error_x"] = turned.pop("error_y")
    return turned


def trace(mark: Mark) -> Figure:
    if isinstance(mark, Band):
        return _band(mark)
    if isinstance(mark, Cells):
        return _cells(mark)
    draw = {Line: _line, Diamonds: _diamonds, Bars: _bars}[type(mark)]
    hover = [text(words) for words in mark.hover]
    shared = {
        "x": numbers(mark.x),
        "y": numbers(mark.y),
        "name": text(mark.label),
        "showlegend": bool(mark.label),
        "hoverinfo": "text" if hover else "skip",
    }
    if hover:
        shared["hovertext"] = hover[0] if len(hover) == 1 else hover
    return shared | draw(mark)


def _line(mark: Line) -> Figure:
    tint = colour(mark.colour, mark.opacity)
    dash = {"dash": "dash"} if mark.dashed else {}
    modes = ["lines"] * mark.joined + ["markers"] * (mark.dot > 0)
    return {
        "type": "scatter",
        "mode": "+".join(modes),
        "line": {"color": tint, "width": mark.width, **dash},
        "marker": {"color": tint, "size": mark.dot},
        **({"legendgroup": text(mark.group)} if mark.group else {}),
    }


def _diamonds(mark: Diamonds) -> Figure:
    tint = colour(mark.colour)
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {
            "symbol": "diamond" if mark.filled else "diamond-open",
            "size": mark.size,
            "color": "@surface" if mark.filled else tint,
            "line": {"color": tint, "width": 1.8},
        },
        **({"offsetgroup": text(mark.group)} if mark.group else {"cliponaxis": False}),
    }


def _bars(mark: Bars) -> Figure:
    edge = {} if mark.group else {"line": {"color": "@surface", "width": 1}}
    pattern = {"shape": PATTERNS[mark.pattern], "fgcolor": "@surface", "size": 6}
    found = {
        "type": "bar",
        "marker": {"color": colour(mark.colour), "pattern": pattern, **edge},
        **({"offsetgroup": text(mark.group)} if mark.group else {}),
    }
    if mark.errors is not None:
        whiskers = {"color": "@ink", "thickness": 1.2, "width": 3}
        found["error_y"] = {"array": numbers(mark.errors), **whiskers}
    return found


def _band(mark: Band) -> Figure:
    """The outline: along the upper edge, and back along the lower one."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers([*mark.x, *np.flip(mark.x)]),
        "y": numbers([*mark.high, *np.flip(mark.low)]),
        "fill": "toself",
        "fillcolor": colour(mark.colour, mark.opacity),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": text(mark.group),
    }


def _cells(mark: Cells) -> Figure:
    hover = np.array([text(words) for words in mark.hover], dtype=object)
    return {
        "type": "heatmap",
        "z": [numbers(row) for row in mark.values],
        "zmin": 0.0,
        "zmax": mark.most,
        "colorscale": [[0.0, "@surface"], [1.0, colour(mark.colour)]],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "text": [[_written(value, mark.decimals) for value in row] for row in mark.values],
        "texttemplate": "%{text}",
        "hoverinfo": "text" if mark.hover else "skip",
        **({"hovertext": hover.reshape(mark.values.shape).tolist()} if mark.hover else {}),
    }


def _written(value: float, decimals: int) -> str:
    """What stands in a cell: nothing where it is zero or a gap."""
    return f"{value:.{decimals}f}" if value and math.isfinite(value) else ""


def colour(index: int | None, opacity: float = 1.0) -> str:
    name = "@ink" if index is None else f"@c{index}"
    return name if opacity == 1.0 else f"{name}/{opacity:g}"


def numbers(values: Numbers) -> list[float | None]:
    """For JSON, which has no NaN."""
    return [float(value) if math.isfinite(value) else None for value in values]


def text(words: str) -> str:
    """Words as Plotly wants them, which reads some HTML."""
    return html.escape(words, quote=False).replace("\n", "<br>")


def legend(*charts: Chart) -> list[tuple[str, str]]:
    """(kind of swatch, label) of charts whose legend is the page's."""
    labelled = legend_of(charts)
    found = [(_swatch(mark), label) for label, mark in labelled.items()]
    marks = [(chart, mark) for chart in charts for mark in chart.marks]
    whiskers = [c.whiskers for c, m in marks if isinstance(m, Bars) and m.errors is not None]
    if whiskers:
        bars = sum(isinstance(mark, Bars) for mark in labelled.values())
        found.insert(bars, ("whisker", whiskers[0]))
    return found


def _swatch(mark: Mark) -> str:
    own = "" if mark.colour is None else f" c{mark.colour}"
    if isinstance(mark, Line):
        thin = mark.opacity < 1.0
        if not mark.joined:
            return ("small dot" if thin else "dot") + own
        return ("dash" if mark.dashed else "thin" if thin else "stroke") + own
    return ("diamond" if isinstance(mark, Diamonds) else "square") + own
