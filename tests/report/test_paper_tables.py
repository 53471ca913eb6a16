"""The paper's tables: measured beside published, and what has not been run."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path

import pytest
from commands import refused, told
from documents import blocks
from fake_store import Store

from slackline import cli
from slackline.cli import train
from slackline.report.paper_tables import beta_table, shots_table, summary
from slackline.report.results import load_results
from slackline.report.table import Column, Row, Table, latex

ROOT = Path(__file__).parents[2]


def cells(table: Table, row: str) -> dict[str, str]:
    """A row's first cell of every column by the column's name; the paper's as "paper NAME"."""
    (found,) = [r for r in table.rows if r.cells[0] == row or "/".join(r.cells[:2]) == row]
    names, last = [], ""
    for column in table.columns:
        names.append(f"paper {last}" if column.quoted else column.name)
        last = last if column.quoted else column.name
    return dict(zip(names, found.cells, strict=True))


def test_the_summary_has_all_families_and_says_what_was_not_run(pair: Store) -> None:
    returns, ratios, better, missing = summary(load_results(pair.path)).tables
    assert [row.cells[0] for row in returns.rows] == [
        *("cartpole", "acrobot", "pendulum", "minigrid", "halfcheetah", "ant", "fruitbot"),
        *("maze2d", "halfcheetah-mujoco", "ant-mujoco"),
    ]
    found = cells(returns, "cartpole")
    scores = pair.fresh["lop", 10].astype(float)[:, 1:].mean(axis=(1, 2))
    assert found["lop"] == f"{scores.mean():.1f} ± {scores.std(ddof=1):.1f} (3)"
    assert found["paper lop"] == "149.9"
    assert cells(returns, "ant")["lop"] == "not run"
    assert cells(returns, "ant")["paper lop"] == "4031"
    assert cells(returns, "ant-mujoco") == {
        "suite": "ant-mujoco", "single": "not run", "paper single": "–",
        "lop": "not run", "paper lop": "–",
    }  # fmt: skip
    assert cells(ratios, "cartpole")["paper lop"] == "1.05"
    assert cells(better, "all families")["lop"].endswith("(1)")
    commands = {row.cells[0]: row.cells[1] for row in missing.rows}
    assert commands["cartpole: diayn_r, diayn_r_l2"] == (
        "slackline bench cartpole --methods diayn_r diayn_r_l2 --seeds 10 --out runs/cartpole"
    )
    assert "halfcheetah: single, lop, diayn_r, lc, ensemble, cop, bop" not in commands
    assert "halfcheetah: single, lop, diayn_r, lc, cop, bop" in commands


def test_a_searched_beta_is_the_best_and_called_optimistic(store: Store) -> None:
    store.add("single", suite="maze2d")
    store.add("diayn_r", suite="maze2d", level=-50.0)
    store.add("diayn_r", suite="maze2d", folder="low", options={"beta": 0.1}, level=-20.0)
    returns = summary(load_results(store.path)).tables[0]
    best = store.fresh["low", 10].astype(float)[:, 1:].mean()
    assert cells(returns, "maze2d")["diayn_r"].startswith(f"{best:.1f} ±")
    assert "maze2d's diayn_r β = 0.1" in returns.caption
    assert "optimistic" in returns.caption


def test_shots_are_beside_the_papers_and_a_part_of_the_skills_is_marked(store: Store) -> None:
    store.add("single", suite="ant", shots=(5, 10, 20), steps=40_960, level=3000.0)
    store.add("lop", suite="ant", shots=(5, 10), steps=40_960, level=4000.0)
    store.add("diayn_r", suite="ant", shots=(5, 10), steps=40_960, level=3000.0)
    made = shots_table(load_results(store.path))
    table, missing = made.tables
    assert [row.cells[0] for row in table.rows] == ["5", "10", "20"]
    assert cells(table, "5")["paper lop"] == "4035"
    assert cells(table, "20")["lop"] == "not run"
    assert cells(table, "20")["paper lop"] == "4174"
    assert cells(table, "5")["diayn_r"].endswith("*")
    assert not cells(table, "10")["diayn_r"].endswith("*")
    assert "diayn_r at K = 5 tries the first 5 of its skills" in table.caption
    commands = {row.cells[0]: row.cells[1] for row in missing.rows}
    assert commands["ant: lop at K = 20"] == f"slackline adapt {store.path}/ant-lop --shots 20"
    assert "--skills 5" in commands["ant: diayn_r at K = 5"]


def test_commands_can_be_typed_whatever_folders_are_called(store: Store) -> None:
    store.add("lop", suite="ant", shots=(5,), steps=40_960, folder="my line")
    store.add("single", suite="ant", shots=(5, 10), steps=40_960)
    missing = shots_table(load_results(store.path)).tables[1]
    commands = {row.cells[0]: row.cells[1] for row in missing.rows}
    words = shlex.split(commands["ant: lop at K = 10"])
    assert words == ["slackline", "adapt", str(store.path / "my line"), "--shots", "10"]


def test_skills_trained_for_each_k_are_one_row_of_runs(store: Store) -> None:
    store.add("diayn_r", suite="ant", shots=(5, 10), steps=40_960)
    store.add("diayn_r", suite="ant", folder="five", options={"skills": 5}, shots=(5,),
              steps=40_960, level=500.0)  # fmt: skip
    table = shots_table(load_results(store.path)).tables[0]
    assert cells(table, "5")["diayn_r"].startswith(
        f"{store.fresh['five', 5].astype(float)[:, 1:].mean():.1f} ±"
    )


def test_betas_are_beside_the_papers_with_the_training_return(store: Store) -> None:
    store.add("lop", suite="ant", steps=40_960, level=4000.0)
    store.add("lop", suite="ant", folder="low", options={"beta": 0.1}, steps=40_960, level=5000.0)
    table, missing = beta_table(load_results(store.path)).tables
    low = cells(table, "lop/0.1")
    assert low["paper K = 10"] == "3991"
    assert low["paper Train"] == "7659"
    train = store.fresh["low", 10].astype(float)[:, 0].mean()
    assert low["Train"] == f"{train:.0f}"
    assert cells(table, "lop/10")["K = 10"] == "not run"
    assert cells(table, "lop/best")["K = 10"].endswith("(β = 0.1)")
    assert cells(table, "lop/best")["paper K = 10"] == "4031"
    commands = {row.cells[0]: row.cells[1] for row in missing.rows}
    assert "--method lc --beta 10 " in commands["ant: lc, β = 10, K = 10"]
    assert commands["ant: lop, β = 0.1, K = 20"].startswith("slackline adapt ")


@pytest.mark.parametrize("name", ["summary", "shots", "beta", "variations"])
@pytest.mark.parametrize("kind", ["text", "markdown", "csv", "latex"])
def test_every_table_in_every_format(
    pair: Store, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    text = told(
        capsys, "report", str(pair.path), "--table", name, "--format", kind, "--paper-scoring"
    )
    if name in ("summary", "variations"):
        assert "biased" in text
        assert "lop" in text
    if kind == "latex" and name in ("summary", "variations"):
        assert r"\begin{tabular}" in text


def test_csv_has_plain_numbers(pair: Store, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "deep" / "table.csv"
    words = ("--table", "summary", "--format", "csv", "--out", str(out))
    assert f"table: {out}" in told(capsys, "report", str(pair.path), *words)
    single, line = csv.DictReader(io.StringIO(out.read_text()))
    assert float(line["mean"]) == pytest.approx(
        pair.fresh["lop", 10].astype(float)[:, 1:].mean(), rel=1e-5
    )
    assert (single["ratio"], line["paper_mean"], line["K"]) == ("", "149.9", "10")
    assert line["paired"] == "True"
    assert line["folders"].endswith("cartpole-lop")


def test_only_some_suites(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    store.add("lop")
    store.add("lop", suite="acrobot", level=-100.0)
    text = told(capsys, "report", str(store.path), "--table", "variations", "--suites", "acrobot")
    assert "Acrobot" in text
    assert "CartPole" not in text
    text = told(capsys, "report", str(store.path), "--table", "summary", "--suites", "acrobot")
    assert "acrobot" in text
    assert "cartpole" not in text, "it was run, and is no row of what was not"
    words = (str(store.path), "--table", "variations", "--suites", "acrobat")
    assert "unknown suite 'acrobat'; did you mean acrobot?" in refused(capsys, "report", *words)


def test_options_that_do_not_go_together(pair: Store, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(pair.path)
    assert "it is an option of --table" in refused(capsys, "report", folder, "--format", "csv")
    words = (folder, "--table", "beta", "--markdown", "x.md")
    assert "leave --markdown out" in refused(capsys, "report", *words)


def test_the_documents_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On the stored runs, as they are printed; trainings are only parsed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    text = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    for words in (shlex.split(line, comments=True)[1:] for line in lines):
        if words[0] == "train":
            train.parse(words[1:])
        else:
            assert cli.run(words) == 0
    assert (tmp_path / "summary.csv").read_text().startswith("suite,method,")


def test_latex_escapes_what_it_must() -> None:
    table = Table("a_b 5 %", (Column("x", words=True), Column("y")), ((Row(("{z}", "1 ± 2")),),))
    assert latex(table).splitlines()[2:] == [
        r"\caption{a\_b 5 \%.}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"x & y \\",
        r"\midrule",
        r"\{z\} & 1 $\pm$ 2 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_averages_of_some_changes_or_another_k_say_so_beside_the_papers(store: Store) -> None:
    """The paper's average is of all changes, and of K = 10."""
    store.add("single", variations=("LongPole",))
    store.add("lop")
    store.add("lop", suite="pendulum")
    store.add("single", suite="acrobot", shots=(5,))
    first, *_ = summary(load_results(store.path)).tables
    rows = {row.cells[0]: row.cells for section in first.sections for row in section}
    assert rows["cartpole"][1].endswith("(3), 1 of 6 changes")
    assert rows["cartpole"][3].endswith("(3), 1 of 6 changes"), "those that all were measured on"
    assert rows["pendulum"][3].endswith("(3)")
    assert rows["acrobot"][1].endswith("(3), K = 5")
