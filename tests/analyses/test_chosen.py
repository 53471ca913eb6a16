"""Which candidate was chosen, where every seed has candidates of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "report"))

from fake_store import Store  # type: ignore[import-not-found]

from slackline.analyses.analysis import Subject
from slackline.analyses.catalogue import examine
from slackline.analyses.chosen import Chosen
from slackline.methods.latent import Simplex
from slackline.report.charts import chosen_chart, selection_charts
from slackline.report.results import load_results, regions
from slackline.store.run import RunFolder
from slackline.store.scores import read_scores
from slackline.suites import builtin

CENTRE, FIRST, SECOND, THIRD = range(4)


@pytest.fixture
def hull(tmp_path: Path) -> RunFolder:
    """Three seeds; all keep candidate 0, which lies elsewhere for each of them."""
    run = Store(tmp_path).add("cop", seeds=3, shots=(2,))
    where = {0: (0.9, 0.05, 0.05), 1: (0.05, 0.9, 0.05), 2: (0.85, 0.1, 0.05)}
    rows = read_scores(run.scores_file)
    zs = [
        list(where[seed]) if candidate == 0 else [0.3, 0.3, 0.4]
        for seed, candidate in rows.select("seed", "candidate").iter_rows()
    ]
    rows = rows.with_columns(z=pl.Series(zs, dtype=pl.List(pl.Float32)))
    rows = rows.filter((pl.col("phase") == "select") | (pl.col("episode") == 0))
    rows = rows.with_columns(
        pl.when(phase="score").then(0).otherwise("candidate").alias("candidate")
    )
    run.scores_file.unlink()
    from slackline.store.scores import merge_scores

    merge_scores(run.scores_file, rows)
    return run


def test_the_nearest_landmark() -> None:
    kept = np.array([[0.34, 0.33, 0.33], [0.0, 0.95, 0.05], [0.5, 0.0, 0.5]], np.float32)
    found = regions(Simplex(3), kept)
    assert len(found.landmarks) == 7, "the centre, three anchors, three midpoints"
    assert [found.landmarks[i] for i in found.nearest[1:]] == [[0, 1, 0], [0.5, 0, 0.5]]
    assert found.nearest[0] == CENTRE
    assert len(regions(Simplex(8), np.eye(8, dtype=np.float32)).landmarks) == 9


def test_choices_among_own_candidates_are_counted_by_where_they_lie(hull: RunFolder) -> None:
    found = examine(Chosen(), [Subject(hull, builtin("cartpole"))], ())
    numbers = found.numbers["K = 2"]["Convex set of policies"]
    assert (numbers["chosen"] == np.array([[FIRST], [SECOND], [FIRST]])).all()
    (table,) = found.tables
    for row in table.rows:
        assert row.cells[1:] == ("near 1.00 0.00 0.00", "2 of 3", "2")
    assert "drew candidates of its own" in table.caption
    plates: Any = found.figures
    by_variation, _ = (plate.charts[0] for plate in plates)
    (cells,) = by_variation.marks
    assert cells.values[0].tolist() == [0, 2, 1, 0, 0, 0, 0]


def test_the_page_counts_them_alike(hull: RunFolder) -> None:
    (result,) = load_results(hull.path).suites
    (entry,) = result.methods(2)
    chart: Any = chosen_chart(result, entry, 2)
    assert list(chart.marks[0].y) == [0, 2, 1, 0, 0, 0, 0]
    assert chart.x.names[FIRST] == "1 0 0"
    assert "z near 1 0 0 chosen by 2 of 3 seeds" in chart.marks[0].hover[FIRST]
    curves: Any = selection_charts(result, entry, 2)[0]
    labels = [mark.label for mark in curves.marks]
    assert "mean over seeds" not in labels, "of candidates that have nothing in common"


def test_candidates_that_all_seeds_share_are_counted_by_number(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.add("lop", seeds=3, shots=(5,))
    found = examine(Chosen(), [Subject(run, builtin("cartpole"))], ())
    (numbers,) = found.numbers["K = 5"].values()
    assert (numbers["chosen"] == store.chosen["lop", 5][:, 1:]).all()
    assert "of its own" not in found.tables[0].caption
