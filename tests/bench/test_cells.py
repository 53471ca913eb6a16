"""Benchmarks as folders; those that the repository has are the example."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from slackline.adapt.kshot import Adapting
from slackline.bench.cells import Cell, insist_on_room, is_scored, scores_by_suite
from slackline.errors import SlacklineError
from slackline.report.results import load_results
from slackline.store.run import RunConfig, RunFolder, folder_name
from slackline.store.scores import merge_scores, read_scores
from slackline.suites.resolve import suite

RESULTS = Path(__file__).parents[2] / "results"
KEPT = sorted({file.parents[1] for file in RESULTS.rglob("run.json")})
ADAPTING = Adapting(shots=10, episodes=1, score_episodes=10)


def cell_of(config: RunConfig, out: Path, shots: int = 10, axes: tuple[str, ...] = ()) -> Cell:
    """As bench lays it out where these options, or none, are axes."""
    words = [f"{option}{config.options[option]:g}" for option in axes]
    name = "-".join([folder_name(config.suite, config.method), *words])
    how = Adapting(shots, episodes=1, score_episodes=10)
    return Cell(suite(config.suite), config, (how,), out / name, config.suite)


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: str(path.relative_to(RESULTS)))
def test_the_command_that_made_a_kept_benchmark_can_be_given_again(folder: Path) -> None:
    runs = [RunFolder(file.parent) for file in sorted(folder.glob("*/run.json"))]
    axes = [("beta",) if "-beta" in run.path.name else () for run in runs]
    cells = [cell_of(r.config(), folder, 5, axis) for r, axis in zip(runs, axes, strict=True)]
    insist_on_room(cells, folder)
    assert [cell.path for cell in cells] == [run.path for run in runs]


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    config = RunFolder(RESULTS / "ant" / "ant-lop").config()
    with pytest.raises(SlacklineError, match=r"not a benchmark \(thesis.tex\)"):
        insist_on_room([cell_of(config, tmp_path)], tmp_path)


def test_a_summary_beside_the_runs_is_no_stranger(tmp_path: Path) -> None:
    (tmp_path / "summary.json").touch()
    config = RunFolder(RESULTS / "discrete" / "cartpole-lop").config()
    insist_on_room([cell_of(config, tmp_path)], tmp_path)


def test_a_run_is_scored_if_every_variation_is(tmp_path: Path) -> None:
    for name in ("run.json", "scores.parquet"):
        shutil.copy(RESULTS / "ant" / "ant-lop" / name, tmp_path)
    run = RunFolder(tmp_path)
    assert is_scored(run, suite("ant"), ADAPTING)
    assert not is_scored(run, suite("ant"), Adapting(10, 1, 5))
    scores = read_scores(run.scores_file)
    more = scores.filter(variation="BigGravity").with_columns(pl.lit("Moon").alias("variation"))
    pl.concat([scores, more]).write_parquet(run.scores_file)
    assert is_scored(run, suite("ant"), ADAPTING), "whatever else it was adapted to"
    scores.filter(pl.col("variation") != "BigGravity").write_parquet(run.scores_file)
    assert not is_scored(run, suite("ant"), ADAPTING)
    of_another(scores).write_parquet(run.scores_file)
    assert not is_scored(run, suite("ant"), ADAPTING), (
        "variations of another suite may have the same names"
    )


def of_another(scores: pl.DataFrame) -> pl.DataFrame:
    return scores.with_columns(pl.lit("ant-generalized").alias("suite"))


def test_scores_of_two_suites_lie_side_by_side(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "ant" / "ant-lop" / "run.json", tmp_path)
    run = RunFolder(tmp_path)
    own = read_scores(RESULTS / "ant" / "ant-lop" / "scores.parquet")
    other = of_another(own)
    merge_scores(run.scores_file, other)
    assert list(scores_by_suite(run)) == ["ant-generalized"]
    assert len(merge_scores(run.scores_file, own)) == 2 * len(own)
    assert len(merge_scores(run.scores_file, own)) == 2 * len(own), "what was there is replaced"
    found = scores_by_suite(run)
    assert_frame_equal(found["ant"], own)
    assert_frame_equal(found["ant-generalized"], other)
    results = load_results(tmp_path).suites
    assert {r.suite.name: len(r.scores) for r in results} == dict.fromkeys(found, len(own))
