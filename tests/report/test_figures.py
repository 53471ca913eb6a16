"""Figures as matplotlib has drawn them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fake_store import Store

from slackline.analyses.analysis import Subject
from slackline.analyses.beta import Beta
from slackline.analyses.catalogue import examine
from slackline.drawing.sheet import styled
from slackline.report import plotly_charts
from slackline.report.chart import Axis, Bars, Cells, Chart, Line, Plate
from slackline.report.charts import training_chart
from slackline.report.figures import draw_plate
from slackline.report.results import load_results
from slackline.suites import builtin

LONG = "a wide wall with a lane on either side: 22 moves"


def chart(mark: Any, *, rows: int = 0, name: str = "Maze4", note: str = "") -> Chart:
    y = Axis(names=tuple(f"row {i}" for i in range(rows)))
    return Chart((mark,), Axis("x"), y, "A chart.", 200, name=name, note=note)


def drawn(*charts: Chart) -> Any:
    with styled():
        figure = draw_plate(Plate("p", "Title", "Subtitle.", charts))
        figure.draw_without_rendering()
    return figure


def test_heat_maps_side_by_side_show_all_of_their_columns() -> None:
    """Landmarks of one run beside the candidates of another: seven columns beside five."""
    wide, narrow = np.ones((2, 7)), np.ones((2, 5))
    figure = drawn(*(chart(Cells(values, 0), rows=2) for values in (wide, narrow, wide, narrow)))
    for panel, columns in zip(figure.axes, (7, 5, 7, 5), strict=False):
        assert panel.get_xlim() == (-0.5, columns - 0.5)
        assert panel.get_ylim() == (1.5, -0.5), "the first row on top"
        assert panel.xaxis.get_tick_params()["labelbottom"]
        box = panel.get_window_extent()
        assert len(panel.texts) == 2 * columns
        assert all(box.contains(*text.get_window_extent().min) for text in panel.texts)


def test_what_was_not_measured_is_a_dash() -> None:
    figure = drawn(chart(Cells(np.array([[0.0, 3.0], [np.nan, np.nan]]), 0, most=3.0), rows=2))
    assert [text.get_text() for text in figure.axes[0].texts] == ["3", "–", "–"]


def line(label: str) -> Line:
    return Line([0.0, 1.0], [1.0, 2.0], 0, label)


def test_the_legend_has_what_any_of_the_charts_shows() -> None:
    charts = [chart(line(label)) for label in ("β = 0.1", "β = 1", "β = 0.1")]
    (legend,) = drawn(*charts).legends
    assert [text.get_text() for text in legend.get_texts()] == ["β = 0.1", "β = 1"]
    assert [label for _, label in plotly_charts.legend(*charts)] == ["β = 0.1", "β = 1"]


@pytest.mark.parametrize("note", ["force = 1", LONG])
def test_a_note_does_not_run_into_the_name(note: str) -> None:
    figure = drawn(*(chart(line("one"), note=note if i == 1 else "") for i in range(3)))
    heading = [text for text in figure.findobj() if type(text).__name__ == "Text"]
    (name, *_), (beside,) = (
        [text for text in heading if text.axes is figure.axes[1] and words in text.get_text()]
        for words in ("Maze4", note)
    )
    first = name.get_window_extent(), name.get_text().count("\n")
    if first[1]:  # a line of its own, above
        assert first[0].y1 - first[0].height / 2 > beside.get_window_extent().y1
    else:
        assert first[0].x1 < beside.get_window_extent().x0
    assert bool(first[1]) == (note == LONG)


def test_a_training_whose_episodes_end_together_is_a_curve(store: Store) -> None:
    """Most moments have no episode that ended; what lies between two that do is no gap."""
    run = store.add("lop", options={"beta": 0.1})
    (result,) = load_results(store.path).suites
    (first,) = result.runs
    points = [
        {
            "iteration": step,
            "steps": step,
            "seconds": step,
            "return": [float(step)] * 3 if step % 4 == 0 else [None] * 3,
        }
        for step in range(1, 41)
    ]
    sparse = replace(first, progress=points)
    shown: Any = training_chart(replace(result, runs=[sparse]))
    lines = [mark for mark in shown.marks if isinstance(mark, Line)]
    assert len(lines) == 4, "three seeds and their mean"
    for mark in lines:
        assert list(mark.x) == list(range(4, 41, 4))
        assert np.isfinite(mark.y).all()
    run.progress_file.unlink()
    for point in points:
        run.append_progress(point)
    found = examine(Beta(), [Subject(run, builtin("cartpole"))], ())
    figures: Any = found.figures
    (curve,) = figures[1].charts[0].marks
    assert list(curve.y) == list(range(4, 41, 4))


def test_averages_of_fewer_changes_do_not_stand_beside_those_of_all(store: Store) -> None:
    both = [
        store.add("lop", folder=f"lop{beta}", options={"beta": beta}, variations=variations)
        for beta, variations in ((0.1, None), (1.0, ("LongPole",)))
    ]
    subjects = [Subject(run, builtin("cartpole")) for run in both]

    def cells(*variations: str) -> list[str]:
        (table,) = examine(Beta(), subjects, variations).tables
        return [row.cells[-1] for row in table.rows]

    assert cells()[1] == "–"
    assert "–" not in [cells()[0], *cells("LongPole")]


def test_heat_maps_of_the_page_leave_zeros_out() -> None:
    (cells,) = plotly_charts.figure(chart(Cells(np.array([[0.0, 3.0], [np.nan, 1.0]]), 0)))["data"]
    assert cells["text"] == [["", "3"], ["", "1"]]
    assert cells["texttemplate"] == "%{text}"


def test_bars_at_names_that_are_numbers_stand_at_equal_distances() -> None:
    """0.1, 1 and 10 are names of β's and no scale, for Plotly too."""
    bars = Bars(range(3), [1.0, 2.0, 3.0], 0, "Line", (), group="lop")
    one = Chart((bars,), Axis("β", names=("0.1", "1", "10")), Axis("return"), "A chart.", 200)
    found = plotly_charts.figure(one)
    assert found["data"][0]["y"] == ["0.1", "1", "10"]
    assert found["layout"]["yaxis"]["type"] == "category"
