"""The summary, recomputed from the episodes that were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from commands import refused
from fake_store import Store

from slackline import cli
from slackline.bench.stats import ratio
from slackline.store.run import RunFolder
from slackline.store.scores import read_scores
from slackline.suites.suite import Suite

NAMES = """
    suite method ours ratio low high train_ratio headroom seeds steps K score score_error train
    train_error default_score default_ratio default_low default_high adapted_minus_default oracle
    label folders ratio_of difference difference_low difference_high better single
"""


def summarised(store: Store, *folders: Path) -> list[dict[str, Any]]:
    """The rows that the command writes."""
    out = store.path / "summary.json"
    words = map(str, folders or (store.path,))
    assert cli.run(["report", *words, "--summary", str(out)]) == 0
    return json.loads(out.read_text())


def row_of(rows: list[dict[str, Any]], method: str, **wanted: Any) -> dict[str, Any]:
    (found,) = (
        row
        for row in rows
        if row["method"] == method and all(row[name] == value for name, value in wanted.items())
    )
    return found


def rewrite(run: RunFolder, **columns: pl.Expr) -> None:
    """Change the stored scores."""
    read_scores(run.scores_file).with_columns(**columns).write_parquet(run.scores_file)


def per_seed(store: Store, name: str) -> np.ndarray:
    """Fresh scores (seed, variation), Train first."""
    return store.fresh[name, 10].astype(float).mean(axis=-1)


def test_a_row_has_every_number(pair: Store) -> None:
    single, line = summarised(pair)
    assert (single["method"], line["method"]) == ("single", "lop")
    assert set(single) == set(line) >= set(NAMES.split())
    mine, theirs = per_seed(pair, "lop"), per_seed(pair, "single")
    assert line["score"] == pytest.approx(mine[:, 1:].mean(), rel=1e-5)
    error = mine[:, 1:].mean(axis=1).std(ddof=1) / 3**0.5
    assert line["score_error"] == pytest.approx(error, rel=1e-4)
    assert line["train"] == pytest.approx(mine[:, 0].mean(), rel=1e-5)
    expected = ratio(mine[:, 1:], theirs[:, 1:])
    assert expected is not None
    assert [line[k] for k in ("ratio", "low", "high")] == pytest.approx(list(expected), rel=1e-4)
    assert line["train_ratio"] == pytest.approx(mine[:, 0].mean() / theirs[:, 0].mean(), rel=1e-4)
    assert line["headroom"] == pytest.approx(theirs[:, 0].mean() / theirs[:, 1:].mean(), rel=1e-4)
    assert (line["ratio_of"], line["seeds"], line["steps"], line["K"]) == ("returns", 3, 10_240, 10)
    assert (line["ours"], line["episodes"], line["label"], line["single"]) == (False, 4, "", "")
    assert line["folders"] == ["cartpole-lop"]
    assert line["better"] > 0.9


def test_default_z_and_what_adapting_adds(pair: Store) -> None:
    single, line = summarised(pair)
    tried = pair.tried["lop", 10].astype(float).mean(axis=-1)
    default = np.array([[of_v[row[0].argmax()] for of_v in row[1:]] for row in tried])
    theirs = per_seed(pair, "single")[:, 1:]
    assert line["default_score"] == pytest.approx(default.mean(), rel=1e-5)
    assert line["default_ratio"] == pytest.approx(default.mean() / theirs.mean(), rel=1e-4)
    assert line["default_low"] < line["default_ratio"] < line["default_high"]
    gap = line["score"] - line["default_score"]
    assert line["adapted_minus_default"] == pytest.approx(gap, abs=1e-3)
    assert single["default_score"] == single["score"]
    assert single["adapted_minus_default"] == 0.0


def test_a_fan_begun_from_single_policies_is_compared_with_those_seed_by_seed(store: Store) -> None:
    store.add("single", seeds=5)
    store.add("fan", first_seed=1, from_single=1)
    fan = row_of(summarised(store), "fan")
    mine, theirs = per_seed(store, "fan")[:, 1:], per_seed(store, "single")[1:4, 1:]
    expected = ratio(mine, theirs, paired=True)
    assert expected is not None
    assert [fan[k] for k in ("ratio", "low", "high")] == pytest.approx(list(expected), rel=1e-4)
    assert (fan["paired"], fan["single_seeds"], fan["label"]) == (True, 3, "begun from single")


def test_the_single_policy_is_not_compared_with_itself(pair: Store) -> None:
    single = summarised(pair)[0]
    assert [single[k] for k in ("ratio", "low", "high", "train_ratio", "better")] == [None] * 5
    assert single["headroom"] > 0.0
    assert single["single"] == ""


def test_our_method_is_named_in_one_place(
    pair: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Suite, "recommended", "lop")
    assert [row["ours"] for row in summarised(pair)] == [False, True]
    printed = capsys.readouterr().out
    assert "lop (ours)" in printed
    assert "single (ours)" not in printed


def test_runs_that_differ_in_seeds_alone_are_one(store: Store) -> None:
    """At any depth, and in several folders."""
    store.add("single", folder="a/deep/down", seeds=2)
    store.add("lop", folder="a/line", seeds=2)
    store.add("lop", folder="b/line-again", seeds=3, first_seed=2)
    _, line = summarised(store, store.path / "b", store.path / "a")
    assert line["seeds"] == 5
    assert line["folders"] == ["a/line", "b/line-again"]
    both = np.concatenate([per_seed(store, name)[:, 1:] for name in ("a/line", "b/line-again")])
    assert line["score"] == pytest.approx(both.mean(), rel=1e-5)
    assert line["score_error"] == pytest.approx(both.mean(axis=1).std(ddof=1) / 5**0.5, rel=1e-4)


def test_a_folder_given_twice_counts_once(pair: Store) -> None:
    twice = summarised(pair, pair.path, pair.path / "cartpole-lop")
    assert [row["seeds"] for row in twice] == [3, 3]


def test_other_settings_have_rows_and_labels_of_their_own(store: Store) -> None:
    store.add("single")
    store.add("lop", folder="usual")
    store.add("lop", folder="weak", options={"beta": 0.1}, hyper={"hidden": (16, 16)})
    store.add("lop", folder="long", steps=20_480)
    rows = summarised(store)
    assert len(rows) == 4
    assert row_of(rows, "lop", label="", steps=10_240)["folders"] == ["usual"]
    assert row_of(rows, "lop", label="hidden=16x16, beta=0.1")["folders"] == ["weak"]
    long = row_of(rows, "lop", steps=20_480)
    assert (long["label"], long["ratio"], long["single"]) == ("", None, None), "no Single so long"


def test_presets_are_named(store: Store) -> None:
    store.add("lop", suite="maze2d", level=-50.0, hyper={"entropy": 0.1, "clip": 0.25})
    assert summarised(store)[0]["label"] == "explore, clip=0.25"


def test_how_often_candidates_were_tried_is_a_setting(store: Store) -> None:
    store.add("single", folder="single", seeds=2, select_episodes=1)
    store.add("single", folder="single-again", seeds=2, first_seed=2, select_episodes=3)
    store.add("lop", folder="line", seeds=2, select_episodes=1)
    store.add("lop", folder="line-again", seeds=2, first_seed=2, select_episodes=3)
    rows = summarised(store)
    assert row_of(rows, "single")["seeds"] == 4, "a single policy is not chosen"
    assert row_of(rows, "lop", episodes=1)["oracle"] is None
    assert row_of(rows, "lop", episodes=3)["oracle"] is not None


def test_the_same_seed_twice_is_refused(
    pair: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pair.add("lop", folder="again", first_seed=2)
    out = tmp_path / "summary.json"
    message = refused(capsys, "report", str(pair.path), "--summary", str(out))
    assert "both hold seed 2 of lop on cartpole with the same settings" in message
    assert not out.exists()


def test_the_best_single_is_the_best_in_training(store: Store) -> None:
    """Even if it does worse on the changes."""
    store.add("single", folder="one", level=100.0)
    better = store.add("single", folder="other", level=100.0, hyper={"policy_lr": 3e-4})
    on_train = pl.when(pl.col("variation") == "Train").then(200.0).otherwise(50.0)
    rewrite(better, **{"return": on_train.cast(pl.Float32)})
    store.add("lop", level=100.0)
    rows = summarised(store)
    line = row_of(rows, "lop")
    assert (line["single"], line["single_score"]) == ("policy_lr=0.0003", 50.0)
    assert line["headroom"] == 4.0
    assert line["ratio"] == pytest.approx(line["score"] / 50.0, rel=1e-4)
    assert row_of(rows, "single", label="")["ratio"] == pytest.approx(2.0, rel=0.2)
    assert row_of(rows, "single", label="policy_lr=0.0003")["ratio"] is None


def test_a_single_policy_serves_every_k(store: Store) -> None:
    store.add("single", shots=(10,))
    store.add("lop", shots=(5, 10), level=110.0)
    rows = summarised(store)
    assert [(row["method"], row["K"]) for row in rows] == [("single", 10), ("lop", 5), ("lop", 10)]
    assert all(row["ratio"] for row in rows[1:])


def test_of_a_single_policys_ks_the_one_with_most_seeds_counts(store: Store) -> None:
    store.add("single", shots=(5, 10))
    store.add("single", folder="more", first_seed=3, shots=(10,))
    store.add("lop", shots=(5,))
    rows = summarised(store)
    assert [row["seeds"] for row in rows if row["method"] == "single"] == [3, 6]
    line = row_of(rows, "lop")
    assert line["single_seeds"] == 6
    assert line["single_score"] == row_of(rows, "single", K=10)["score"]


def test_costs_are_compared_as_costs(store: Store) -> None:
    store.add("single", suite="acrobot", level=-300.0)
    store.add("lop", suite="acrobot", level=-200.0)
    line = row_of(summarised(store), "lop")
    mine, theirs = per_seed(store, "lop"), per_seed(store, "single")
    assert line["ratio_of"] == "costs"
    assert line["ratio"] == pytest.approx(theirs[:, 1:].mean() / mine[:, 1:].mean(), rel=1e-4)
    assert 1.0 < line["low"] < line["ratio"] < line["high"]
    assert line["train_ratio"] == pytest.approx(theirs[:, 0].mean() / mine[:, 0].mean(), rel=1e-4)
    assert line["headroom"] == pytest.approx(theirs[:, 1:].mean() / theirs[:, 0].mean(), rel=1e-4)


def test_returns_around_zero_have_a_difference_instead(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for method, level in (("single", -30.0), ("lop", -10.0)):
        run = store.add(method, level=level)
        on_train = pl.col("variation") == "Train"
        rewrite(run, **{"return": pl.when(on_train).then(-pl.col("return")).otherwise("return")})
    line = row_of(summarised(store), "lop")
    assert [line[k] for k in ("ratio_of", "ratio", "low", "train_ratio", "headroom")] == [None] * 5
    gap = (per_seed(store, "lop") - per_seed(store, "single"))[:, 1:].mean()
    assert line["difference"] == pytest.approx(gap, rel=1e-4)
    assert line["difference_low"] < gap < line["difference_high"]
    assert line["better"] > 0.95
    assert f"+{gap:.1f} [" in capsys.readouterr().out


def test_returns_are_in_the_unit_they_are_shown_in(store: Store) -> None:
    store.add("lop", suite="pendulum", level=-500.0)
    (line,) = summarised(store)
    assert line["score"] == pytest.approx(per_seed(store, "lop")[:, 1:].mean() / 10, rel=1e-4)


def test_a_run_adapted_to_another_suite_has_a_row_there(store: Store) -> None:
    """Trained on one, played on the variations of another, without its Train."""
    for method in ("single", "lop"):
        run = store.add(method, suite="halfcheetah", level=500.0, steps=40_960)
        rows = read_scores(run.scores_file)
        elsewhere = rows.filter(pl.col("variation") != "Train").with_columns(
            pl.lit("halfcheetah-soft").alias("suite"), pl.col("return") * 2
        )
        pl.concat([rows, elsewhere]).write_parquet(run.scores_file)
    rows = summarised(store)
    assert [(row["suite"], row["method"]) for row in rows] == [
        ("halfcheetah", "single"),
        ("halfcheetah", "lop"),
        ("halfcheetah-soft", "single"),
        ("halfcheetah-soft", "lop"),
    ]
    home, there = rows[1], rows[3]
    assert (there["label"], home["label"]) == ("trained on halfcheetah", "")
    assert there["score"] == pytest.approx(home["score"] * 2, rel=1e-4)
    assert there["train"] == pytest.approx(home["train"], rel=1e-4)
    assert there["ratio"] == pytest.approx(home["ratio"], rel=1e-4)


def test_what_cannot_be_averaged_is_left_out_and_named(
    pair: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    pair.add("cop", variations=("Train", "LongPole"))
    assert [row["method"] for row in summarised(pair)] == ["single", "lop"]
    printed = capsys.readouterr().out
    assert "left out: " in printed
    assert "cartpole-cop at K = 10: 5 of 6 variations are missing" in printed


def test_one_seed_has_no_interval(store: Store) -> None:
    store.add("single", seeds=1)
    store.add("lop", seeds=1)
    line = row_of(summarised(store), "lop")
    assert line["ratio"] > 0.0
    unknown = ("low", "high", "score_error", "train_error", "difference_low", "better")
    assert [line[name] for name in unknown] == [None] * len(unknown)


def test_the_file_is_the_same_every_time_and_folders_are_relative(pair: Store) -> None:
    summarised(pair)
    file = pair.path / "summary.json"
    before = file.read_bytes()
    summarised(pair, pair.path / "cartpole-lop", pair.path / "cartpole-single")
    assert file.read_bytes() == before
    assert str(pair.path).encode() not in before
    assert not list(pair.path.glob("*.partial"))


def test_the_table_is_printed_and_written(
    pair: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, table = tmp_path / "new" / "summary.json", tmp_path / "summary.md"
    words = [str(pair.path), "--summary", str(out), "--markdown", str(table)]
    assert cli.run(["report", *words]) == 0
    line = json.loads(out.read_text())[1]
    shown = f"{line['ratio']:.2f} [{line['low']:.2f}, {line['high']:.2f}]"
    printed = capsys.readouterr().out
    assert shown in printed
    assert "headroom" in printed
    assert f"| {shown} |" in table.read_text()
    assert table.read_text().startswith("**Beside the single policy**\n\n| suite | method |")
    assert not (pair.path / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--summary s.json", "name at least one FOLDER"),
        ("nowhere --summary s.json", "nowhere: no such folder"),
        ("empty --summary s.json", "empty: holds no scored run (there is no run.json in it)"),
        ("runs --summary empty", "empty: is a folder"),
        ("runs --summary s.json --out page.html", "neither page nor figures"),
        ("runs --summary s.json --figures f", "neither page nor figures"),
        ("", "name at least one FOLDER"),
        ("runs --summary", "--summary"),
    ],
)
def test_bad_input_is_one_line(
    store: Store,
    words: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store.add("lop", seeds=1)
    (store.path.parent / "empty").mkdir()
    monkeypatch.chdir(store.path.parent)
    assert problem in refused(capsys, "report", *words.split())
    assert {path.name for path in Path().iterdir()} == {"runs", "empty"}


def test_nothing_to_average_is_refused(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.add("lop", variations=("LongPole",))
    message = refused(capsys, "report", str(store.path), "--summary", str(store.path / "s.json"))
    assert "there is nothing to summarise" in message
    assert "5 of 6 variations are missing" in message
