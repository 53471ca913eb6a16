"""What analyses found, kept and shown again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import refused, told
from fake_store import Store

from slackline.analyses.analysis import Finding, Picture, Subject
from slackline.analyses.beta import Beta
from slackline.analyses.catalogue import examine
from slackline.analyses.chosen import Chosen
from slackline.errors import SlacklineError
from slackline.report.chart import Axis, Band, Bars, Cells, Chart, Diamonds, Line, Plate
from slackline.report.findings import (
    MARKS,
    SUFFIX,
    Kept,
    findings_below,
    plain,
    read_finding,
    write_finding,
)
from slackline.report.page import render
from slackline.report.results import load_results
from slackline.report.table import Column, Row, Table
from slackline.suites import builtin

MARKED = (
    Line([0.0, 1.0], np.array([2.0, np.nan]), None, "line", ("a", "b"), dashed=True),
    Diamonds([0.0], [1.0], 3, "kept", ("c",), filled=True),
    Bars([0.0, 1.0], [1.0, 2.0], 4, "bars", (), errors=[0.5, 0.5], group="lop"),
    Band([0.0, 1.0], [0.0, 0.0], [1.0, 1.0], 2),
    Cells(np.array([[0.0, 1.0], [np.nan, 2.0]]), 5, ("w", "x", "y", "z"), most=2.0),
)


def kept_of(*marks: Any) -> Kept:
    chart = Chart(marks, Axis("x", ticks=(0.0, 1.0)), Axis("y", span=(0.0, 2.0)), "A chart.", 300)
    row = Row(("<b>one</b>", "2"), best=frozenset({1}), tags=(("suite", "ant"),))
    table = Table("Numbers", (Column("name", words=True), Column("2")), ((row,),), "Caption.")
    plate = Plate("p", "Many marks", "Each kind once.", (chart,))
    return Kept("Everything", "cartpole", "slackline analyse all", (table,), (plate,), ("a.png",))


def test_every_kind_of_mark_comes_back(tmp_path: Path) -> None:
    assert {type(mark) for mark in MARKED} == set(MARKS.values())
    kept = kept_of(*MARKED)
    path = write_finding(tmp_path / f"all{SUFFIX}", kept)
    again = read_finding(path)
    assert plain(again) == plain(kept)
    assert again.tables == kept.tables
    first: Any = again.plates[0].charts[0].marks[0]
    assert np.isnan(first.y[1])


DAMAGED = {
    "not JSON": "{",
    "nothing": "[]",
    "no format": {"format": None},
    "a field too many": {"extra": 1},
    "a title that is no text": {"title": 3},
    "a mark of another kind": {"plates.0.charts.0.marks.0.is": "script"},
    "a colour there is not": {"plates.0.charts.0.marks.0.colour": 99},
    "values of another length": {"plates.0.charts.0.marks.0.x": [1.0]},
    "words for numbers": {"plates.0.charts.0.marks.0.x": ["a", "b"]},
    "a row too short": {"tables.0.sections.0.0.cells": ["one"]},
    "a picture elsewhere": {"pictures": ["../../secret.png"]},
    "a height of nothing": {"plates.0.charts.0.height": 0},
}


@pytest.mark.parametrize("what", DAMAGED)
def test_what_cannot_be_one_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    path, damage = write_finding(tmp_path / f"all{SUFFIX}", kept_of(*MARKED)), DAMAGED[what]
    if isinstance(damage, str):
        path.write_text(damage)
    else:
        values = json.loads(path.read_text())
        for place, value in damage.items():
            *above, last = place.split(".")
            inner = values
            for name in above:
                inner = inner[int(name)] if isinstance(inner, list) else inner[name]
            inner[last] = value
        path.write_text(json.dumps(values))
    with pytest.raises(SlacklineError, match="is not what an analysis kept") as found:
        findings_below([tmp_path])
    assert "\n" not in str(found.value)


def test_the_page_of_a_folder_has_what_was_found_below_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "runs")
    subjects = [
        Subject(store.add("lop", folder=f"lop{beta}", options={"beta": beta}), builtin("cartpole"))
        for beta in (0.1, 1.0)
    ]
    for kind in (Beta(), Chosen()):
        examine(kind, subjects, ()).save(store.path / "lop0.1" / "analyses")
    told(capsys, "report", str(store.path))
    page = (store.path / "report.html").read_text(encoding="utf-8")
    assert page.index('id="cartpole"') < page.index('id="analyses"')
    assert "CartPole: the return by β" in page
    assert "which of 10 policies each change wants" in page
    assert page.count('data-suite="cartpole"') >= 4
    (store.path / "lop0.1" / "analyses" / f"beta{SUFFIX}").write_text("{}")
    assert f"beta{SUFFIX}: is not what an analysis kept" in refused(
        capsys, "report", str(store.path)
    )


def test_pictures_are_on_the_page_and_words_of_files_are_escaped(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    store.add("single")
    store.add("lop")
    table = kept_of().tables[0]
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    small, large = Picture("small", png), Picture("large", png + bytes(2_000_000))
    found = Finding("stills", (table,), (small, large), {}, "cartpole")
    found.save(store.path / "analyses")
    page = render(load_results(store.path), findings=findings_below([store.path]))
    assert page.count('<img src="data:image/png;base64,') == 1
    assert "Picture: stills-large.png in" in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page
    assert "<b>one</b>" not in page
    (store.path / "analyses" / "stills-small.png").unlink()
    assert "data:image" not in render(
        load_results(store.path), findings=findings_below([store.path])
    )
