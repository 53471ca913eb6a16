"""The report's pictures as PNG files: charts drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from slackline.drawing.sheet import COLOURS, DPI, INK, QUIET, WIDTH, file_of, new_figure, styled
from slackline.io.files import write_output
from slackline.report.chart import Axis, Bars, Cells, Chart, Diamonds, Line, Mark, Plate, legend_of
from slackline.report.plates import plates
from slackline.report.results import Results, SuiteResult
from slackline.report.trajectories import tiles_of, trajectories_png
from slackline.store.run import folder_name

HATCHES = ("", "///", "xxx", "...")
POINTS, DOTS = 0.9, 0.67
"""Points of a line and of a dot for a pixel on the page."""
COLUMNS = 3
"""Charts side by side."""
LAYOUT = "constrained"


def draw_figures(results: Results, folder: Path, kinds: Sequence[str] = ("png",)) -> list[Path]:
    """Draw every suite's figures at its main K, once a kind of file; returns the files written.
    Walks are pictures of pixels and have the first kind alone."""
    written = []
    with styled():
        for result in results.suites:
            for plate in plates(result):
                drawn = draw_plate(plate)
                for kind in kinds:
                    name = f"{folder_name(result.suite.name, plate.name)}.{kind}"
                    written.append(write_output(folder / name, file_of(drawn, kind)))
            written += draw_walks(result, folder)
    return written


def draw_walks(result: SuiteResult, folder: Path) -> list[Path]:
    """The paper's maze pictures, one a method, of its first seed."""
    if tiles_of(result.suite) is None:
        return []
    return [
        trajectories_png(
            entry.runs[0].subspace(),
            result.main_shots,
            folder / f"{folder_name(result.suite.name, f'walks-{entry.name}')}.png",
            result.suite,
        )
        for entry in result.methods(result.main_shots)
        if entry.runs[0].has_weights
    ]


def draw_plate(plate: Plate) -> Any:
    """A figure of one chart, or of several in rows under common axes."""
    charts, columns = plate.charts, min(COLUMNS, len(plate.charts))
    rows = -(-len(charts) // columns)
    figure = new_figure(WIDTH, sheet_height(charts[0], rows), DPI, layout=LAYOUT)
    maps = any(isinstance(mark, Cells) for chart in charts for mark in chart.marks)
    panels = figure.subplots(rows, columns, sharex=not maps, sharey=True, squeeze=False)
    headings = []
    for i, (panel, chart) in enumerate(zip(panels.flat, charts, strict=False)):
        headings.append(draw_chart(panel, chart))
        is_lowest = maps or i + columns >= len(charts)  # every heat map has columns of its own
        panel.tick_params(labelbottom=is_lowest)
        panel.set_xlabel((chart.x.long_title or chart.x.title) if is_lowest else "")
        panel.set_ylabel("" if i % columns else chart.y.long_title or chart.y.title)
    for panel in panels.flat[len(charts) :]:
        panel.set_axis_off()
    draw_legend(figure, panels.flat[: len(charts)], plate)
    headed(figure, plate.title, plate.subtitle)
    keep_apart(figure, headings)
    return figure


def sheet_height(chart: Chart, rows: int) -> float:
    """Inches of a figure with so many rows of charts like this one; names down the side need room
    for each."""
    if not chart.name:
        return max(4.5, 1.8 + 0.24 * len(chart.y.names))
    return 1.6 + max(2.3, 0.6 + 0.24 * len(chart.y.names)) * rows


def draw_legend(figure: Any, panels: Iterable[Any], plate: Plate) -> None:
    """In the order of the marks, which matplotlib has by kind."""
    drawn: dict[str, Any] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        drawn = dict(zip(labels, handles, strict=True)) | drawn
    wanted = list(legend_of(plate.charts))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 5}
    if plate.legend_title:
        place = {"loc": "outside right upper", "title": plate.legend_title, "alignment": "left"}
    figure.legend([drawn[label] for label in wanted], wanted, **place)


def headed(figure: Any, title: str, subtitle: str) -> None:
    """A title in words and, smaller, what is shown; the axes keep clear of both."""
    subtitle = fill(subtitle, 132)
    inches = 0.62 + 0.18 * (subtitle.count("\n") + 1)
    width, height = figure.get_size_inches()
    room = (0.005, 0.005, 0.99, 1 - inches / height - 0.01)
    figure.get_layout_engine().set(rect=room, hspace=0.07, wspace=0.03)
    left = 0.12 / width
    figure.text(left, 1 - 0.14 / height, title, size=16, weight="bold", va="top")
    figure.text(
        left, 1 - 0.52 / height, subtitle, size=9.5, color=QUIET, va="top", linespacing=1.35
    )


def keep_apart(figure: Any, headings: Sequence[tuple[Any, Any]]) -> None:
    """Put names and notes on lines of their own where a note would run into its name."""
    figure.draw_without_rendering()
    ends = [(name.get_window_extent(), note.get_window_extent()) for name, note in headings]
    if any(name.x1 + 0.05 * DPI > note.x0 for name, note in ends if name.width and note.width):
        for name, note in headings:
            name.set_text(f"{name.get_text()}\n" if note.get_text() else name.get_text())


def draw_chart(panel: Any, chart: Chart) -> tuple[Any, Any]:
    """The marks, the scales, and what stands above them: name and note."""
    groups = list(dict.fromkeys(m.group for m in chart.marks if isinstance(m, Bars) and m.group))
    below = np.zeros(1)
    for mark in chart.marks:
        if isinstance(mark, Bars):
            _bars(panel, mark, groups, below if not groups else np.zeros(1))
            below = below + np.asarray(mark.y)
            panel.grid(axis="x", visible=False)
        elif isinstance(mark, Diamonds):
            _diamonds(panel, mark, groups)
        elif isinstance(mark, Line):
            _line(panel, mark)
        elif isinstance(mark, Cells):
            _cells(panel, mark)
        else:
            area = {"color": tint(mark), "alpha": mark.opacity, "lw": 0}
            panel.fill_between(mark.x, mark.low, mark.high, **area)
    _scale(panel, "x", chart.x)
    _scale(panel, "y", chart.y)
    note = panel.set_title(chart.note, loc="right", size=9, color=QUIET, pad=6)
    return panel.set_title(chart.name, weight="bold", pad=6), note


def tint(mark: Mark) -> str:
    return INK if mark.colour is None else COLOURS[mark.colour]


def _line(panel: Any, mark: Line) -> None:
    order = np.argsort(mark.x, kind="stable")
    panel.plot(
        np.asarray(mark.x)[order],
        np.asarray(mark.y)[order],
        color=tint(mark),
        alpha=mark.opacity,
        lw=POINTS * mark.width,
        ls="" if not mark.joined else (0, (5, 3)) if mark.dashed else "-",
        marker="o" if mark.dot else "",
        ms=DOTS * mark.dot,
        label=mark.label or None,
    )


def _diamonds(panel: Any, mark: Diamonds, groups: list[str]) -> None:
    ground = "white" if mark.filled else "none"
    look = {"mfc": ground, "mec": tint(mark), "mew": 1.6, "ms": DOTS * mark.size}
    panel.plot(_beside(mark, groups), mark.y, "D", ls="", zorder=5, label=mark.label, **look)


def _bars(panel: Any, mark: Bars, groups: list[str], below: np.ndarray) -> None:
    if groups:
        shape = {"width": 0.8 / len(groups) * 0.92}
    else:
        steps = np.diff(np.sort(mark.x))
        shape = {"width": 0.85 * steps.min(initial=1.0), "ec": "white", "lw": 0.8}
    panel.bar(
        _beside(mark, groups),
        mark.y,
        bottom=np.broadcast_to(below, len(mark.y)),
        color=tint(mark),
        hatch=HATCHES[mark.pattern],
        label=mark.label,
        yerr=mark.errors,
        error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2.5},
        **shape,
    )


def _cells(panel: Any, mark: Cells) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("", ["#fbfaf7", tint(mark)])
    rows, columns = mark.values.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    panel.grid(visible=False)
    look = {"cmap": shades, "vmin": 0.0, "vmax": mark.most, "ec": "white", "lw": 1.0}
    panel.pcolormesh(*edges, np.ma.masked_invalid(mark.values), **look)
    panel.set(xlim=edges[0][[0, -1]], ylim=edges[1][[-1, 0]])
    for (row, column), value in np.ndenumerate(mark.values):
        if np.isnan(value) or value:
            known = f"{value:.{mark.decimals}f}"
            colour = "white" if value > 0.55 * mark.most else INK
            words = {"ha": "center", "va": "center", "size": 8, "color": colour}
            panel.text(column, row, "–" if np.isnan(value) else known, **words)


def _beside(mark: Bars | Diamonds, groups: list[str]) -> np.ndarray:
    """Where the marks of a group stand: groups side by side, around their names."""
    x = np.asarray(mark.x, float)
    if mark.group not in groups:
        return x
    return x + (groups.index(mark.group) - (len(groups) - 1) / 2) * 0.8 / len(groups)


def _scale(panel: Any, which: str, of: Axis) -> None:
    axis = panel.xaxis if which == "x" else panel.yaxis
    if of.names:
        axis.set_ticks(range(len(of.names)), of.names)
        panel.tick_params(axis=which, labelrotation=30 if which == "x" and len(of.names) > 8 else 0)
    elif of.ticks:
        axis.set_ticks(of.ticks, [f"{value:.2f}".rstrip("0").rstrip(".") for value in of.ticks])
    elif of.decimals == 0:
        axis.get_major_locator().set_params(integer=True)
    if of.large:
        axis.set_major_formatter(lambda value, _: short_count(value))
        panel.margins(**{which: 0.01})
    if of.span:
        panel.set(**{f"{which}lim": of.span})


def short_count(value: float) -> str:
    """20000 as 20k, 1500000 as 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
