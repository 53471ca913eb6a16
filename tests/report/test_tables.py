"""The tables' numbers, recomputed from the episodes that were written."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fake_store import SUITE, VARIATIONS, Store

from slackline import cli
from slackline.bench.stats import ratio
from slackline.report.results import SuiteResult, load_results
from slackline.report.table import Column, Row, Table, markdown, show
from slackline.report.tables import adaptation_json, benchmark_table
from slackline.store.run import RunFolder
from slackline.store.scores import read_scores


def benchmark_rows(result: SuiteResult, shots: int) -> list[list[str]]:
    """The head first."""
    table = benchmark_table(result, shots)
    return [[column.name for column in table.columns], *(list(row.cells) for row in table.rows)]


def column(rows: list[list[str]], name: str) -> dict[str, str]:
    at = rows[0].index(name)
    return {row[0]: row[at] for row in rows[1:]}


def test_rows_hold_fresh_scores_beside_the_papers(pair: Store) -> None:
    rows = benchmark_rows(load_results(pair.path).suites[0], 10)
    assert rows[0] == ["variation", "single", "paper", "lop", "paper"]
    found = column(rows, "lop")
    per_seed = pair.fresh["lop", 10].astype(float).mean(axis=-1)
    for i, name in enumerate(VARIATIONS, start=1):  # Train comes first in the store
        values = per_seed[:, i]
        assert found[name] == f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"
    averages = per_seed[:, 1:].mean(axis=1)
    assert found["average"] == f"{averages.mean():.1f} ± {averages.std(ddof=1):.1f}"
    assert found["standard error"] == f"{averages.std(ddof=1) / np.sqrt(3):.1f}"
    single = pair.fresh["single", 10].astype(float).mean(axis=-1)[:, 1:].mean()
    assert found["ratio to Single [95 % CI]"].startswith(f"{averages.mean() / single:.2f} [")
    assert column(rows, "single")["ratio to Single [95 % CI]"] == "–"
    assert found["Train"].startswith(f"{per_seed[:, 0].mean():.1f} ± ")
    trained = pair.fresh["single", 10].astype(float)[:, 0].mean()
    assert column(rows, "single")["headroom"] == f"{trained / single:.2f}"
    assert found["headroom"] == "–", "it is the single policy's"
    assert column(rows, "paper")["average"] == "143.4"
    assert rows[3][4] == "56.1 ± 72.2", "the paper's line on LongPole"


def test_default_z_is_the_one_that_was_best_on_train(pair: Store) -> None:
    rows = benchmark_rows(load_results(pair.path).suites[0], 10)
    tried = pair.tried["lop", 10].astype(float).mean(axis=-1)  # seed, variation, candidate
    per_seed = [np.mean([of_v[row[0].argmax()] for of_v in row[1:]]) for row in tried]
    shown = f"{np.mean(per_seed):.1f} ± {np.std(per_seed, ddof=1):.1f}"
    assert column(rows, "lop")["default z"] == shown
    assert column(rows, "single")["default z"] == column(rows, "single")["average"]


def test_oracle_is_shown_where_there_are_two_selection_episodes(store: Store) -> None:
    run = store.add("lop")
    result = load_results(store.path).suites[0]
    tried = store.tried["lop", 10].astype(float)[:, 1:]
    one, other = tried[..., :2].mean(axis=-1), tried[..., 2:].mean(axis=-1)
    halves = [
        scored[i, j, judged[i, j].argmax()]
        for judged, scored in ((one, other), (other, one))
        for i, j in np.ndindex(one.shape[:2])
    ]
    shown = column(benchmark_rows(result, 10), "lop")["oracle (split halves)"]
    assert shown.startswith(f"{np.mean(halves):.1f} ± ")
    assert "scored on the other half" in benchmark_table(result, 10).caption
    shutil.rmtree(run.path)
    store.add("lop", select_episodes=1)
    result = load_results(store.path).suites[0]
    assert "oracle (split halves)" not in column(benchmark_rows(result, 10), "lop")
    assert "other half" not in benchmark_table(result, 10).caption


def test_costs_have_a_ratio_that_is_above_one_when_better(store: Store) -> None:
    store.add("single", level=-300.0, suite="acrobot")
    store.add("lop", level=-150.0, suite="acrobot")
    result = load_results(store.path).suites[0]
    line, single = (store.fresh[m, 10].astype(float)[:, 1:].mean() for m in ("lop", "single"))
    rows = benchmark_rows(result, 10)
    shown = column(rows, "lop")["ratio to Single [95 % CI]"]
    assert shown.startswith(f"{single / line:.2f} [")
    assert "Single's cost divided by the method's" in benchmark_table(result, 10).caption
    assert rows[0][-1] == "paper"
    paper = {row[0]: row[-1] for row in rows}["ratio to Single [95 % CI]"]
    assert paper == f"{99.7 / 93.2:.2f}", "the paper's, of costs too"


def test_the_papers_column_is_of_the_runs_beta(store: Store) -> None:
    store.add("lop", suite="maze2d", options={"beta": 0.01})
    rows = benchmark_rows(load_results(store.path).suites[0], 10)
    assert column(rows, "paper")["Maze2"] == "-23.6 ± 3.6"
    assert column(rows, "paper")["average"] == "-29.92"


def test_a_part_of_the_skills_is_said_to_be_one(store: Store) -> None:
    store.add("diayn_r", shots=(5, 10))
    result = load_results(store.path).suites[0]
    assert "DIAYN+R tries the first 5 of its 10 policies." in markdown(benchmark_table(result, 5))
    assert "tries the first" not in markdown(benchmark_table(result, 10))


def test_a_run_adapted_to_another_suite_is_in_its_table(store: Store) -> None:
    run = store.add("lop", suite="halfcheetah", level=500.0, steps=40_960)
    rows = read_scores(run.scores_file)
    changed = rows.filter(pl.col("variation") != "Train").with_columns(pl.col("return") - 100)
    elsewhere = [
        changed.with_columns(pl.lit(name).alias("suite"))
        for name in ("halfcheetah-positional", "halfcheetah-soft")
    ]
    pl.concat([rows, *elsewhere]).write_parquet(run.scores_file)
    one, simulator, soft = load_results(store.path).suites
    names = [result.suite.name for result in (one, simulator, soft)]
    assert names == ["halfcheetah", "halfcheetah-positional", "halfcheetah-soft"]
    for other in (simulator, soft):
        assert one.variations(10) == other.variations(10)
        gap = one.matrix("lop", 10) - other.matrix("lop", 10)
        np.testing.assert_allclose(gap, 100.0, rtol=1e-3)
    trained = [column(benchmark_rows(r, 10), "lop").get("Train") for r in (one, simulator, soft)]
    assert trained[0] == trained[2] not in ("–", None), "the same robot"
    assert trained[1] in ("–", None), "another simulator, where it was not played"


def test_a_method_the_paper_does_not_have_gets_no_paper_column(store: Store) -> None:
    store.add("single")
    store.add("ensemble")
    result = load_results(store.path).suites[0]
    assert benchmark_rows(result, 10)[0] == ["variation", "single", "paper", "ensemble"]
    assert "5 times the samples" in benchmark_table(result, 10).caption


def test_returns_are_shown_in_the_suites_unit_and_stored_as_they_are(
    pair: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = benchmark_rows(load_results(pair.path).suites[0], 10)
    scaled = replace(SUITE, display_scale=0.1, note="Divided by ten.")
    monkeypatch.setattr(RunFolder, "suite", lambda *_: scaled)
    result = load_results(pair.path).suites[0]
    shown = benchmark_rows(result, 10)
    before, after = (float(rows[1][1].split()[0]) for rows in (raw, shown))
    assert after == pytest.approx(before / 10, abs=0.06)
    assert "Divided by ten." in benchmark_table(result, 10).caption
    steps, returns = result.runs[0].curve()
    assert np.nanmax(returns) < 20
    assert len(steps) == 20


def test_markdown_is_a_table_of_the_same_rows(pair: Store, tmp_path: Path) -> None:
    result = load_results(pair.path).suites[0]
    text = markdown(benchmark_table(result, 10))
    for row in benchmark_rows(result, 10):
        assert "| " + " | ".join(row) + " |" in text
    out = tmp_path / "tables.md"
    words = ["report", str(pair.path), "--markdown", str(out), "--out", str(tmp_path / "r.html")]
    assert cli.run(words) == 0
    assert out.read_text() == text


def test_two_runs_of_one_method_have_a_column_each(store: Store) -> None:
    store.add("single", suite="maze2d")
    store.add("lop", suite="maze2d", level=110.0)
    store.add("lop", suite="maze2d", folder="other", options={"beta": 0.01}, level=120.0)
    result = load_results(store.path).suites[0]
    rows = benchmark_rows(result, 10)
    assert rows[0] == [
        "variation",
        "single",
        "paper",
        "lop (β = 1)",
        "paper",
        "lop (β = 0.01)",
        "paper",
    ]
    papers = [row[-1] for row in rows if row[0] == "Maze2"]
    assert papers == ["-23.6 ± 3.6"], "of its own β"
    assert column(rows, "lop (β = 0.01)")["average"].startswith(
        f"{store.fresh['other', 10].astype(float)[:, 1:].mean():.1f} ±"
    )


def test_runs_that_differ_in_seeds_alone_are_one_column(store: Store) -> None:
    """At any depth."""
    store.add("single", folder="deep/er/single", seeds=2)
    store.add("lop", folder="a/line", seeds=2)
    store.add("lop", folder="b/c/line", seeds=3, first_seed=2)
    result = load_results(store.path).suites[0]
    assert [entry.name for entry in result.methods(10)] == ["single", "lop"]
    assert result.entry("lop").seeds == (0, 1, 2, 3, 4)
    both = [store.fresh[name, 10].astype(float)[:, 1:] for name in ("a/line", "b/c/line")]
    expected = np.concatenate(both).mean()
    assert result.matrix("lop", 10).mean() == pytest.approx(expected, rel=1e-6)


def test_the_same_run_twice_is_told_apart_by_its_folder(pair: Store) -> None:
    shutil.copytree(pair.path / "cartpole-lop", pair.path / "copy")
    result = load_results(pair.path).suites[0]
    names = [entry.name for entry in result.methods(10)]
    assert names == ["single", "lop (cartpole-lop)", "lop (copy)"]


def test_runs_of_the_same_seeds_are_compared_pair_by_pair(pair: Store) -> None:
    result = load_results(pair.path).suites[0]
    rival = result.rival("lop", 10)
    assert rival is not None
    assert rival.paired
    expected = ratio(result.matrix("lop", 10), result.matrix("single", 10), paired=True)
    assert result.ratio_to_single("lop", 10) == expected
    assert "pair by pair" in benchmark_table(result, 10).caption
    assert "corrected for 6 comparisons (Holm)" in benchmark_table(result, 10).caption


def test_the_papers_scoring_is_shown_where_asked_for_and_called_biased(pair: Store) -> None:
    result = load_results(pair.path).suites[0]
    table = benchmark_table(result, 10, paper_scoring=True)
    (row,) = [row for row in table.rows if row.cells[0] == "paper's scoring (biased)"]
    tried = pair.tried["lop", 10].astype(float)[:, 1:].mean(axis=-1).max(axis=-1)
    assert row.cells[3].startswith(f"{tried.mean():.1f} ± ")
    assert "best of several noisy numbers is too high" in table.caption
    assert not any("biased" in row.cells[0] for row in benchmark_table(result, 10).rows)


def test_adaptation_json_names_the_chosen_z_and_its_fresh_score(pair: Store) -> None:
    scores = read_scores(pair.path / "cartpole-lop" / "scores.parquet")
    found = {row["variation"]: row for row in adaptation_json(scores)}
    fresh, chosen = pair.fresh["lop", 10], pair.chosen["lop", 10]
    for i, name in enumerate(VARIATIONS, start=1):
        for seed in found[name]["seeds"]:
            assert seed["score"] == pytest.approx(fresh[seed["seed"], i].mean(), rel=1e-5)
            assert seed["z"][0] == pytest.approx(chosen[seed["seed"], i] / 9, abs=1e-6)


def test_a_bar_in_a_name_does_not_end_its_cell() -> None:
    table = Table("t", (Column("a", words=True), Column("b")), ((Row(("x|y", "1")),),), "c")
    assert markdown(table) == "**t**\n\n| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n\nc\n"


def test_brackets_in_a_name_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[/red][link=x]a[/link]"
    show(Table(name, (Column(name),), ((Row((name,)),),), name))
    assert capsys.readouterr().out.count(name) == 4
