"""The commands of docs/analyses.md, and what goes wrong, end to end on tiny runs."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import refused, told
from documents import blocks

from slackline import cli
from slackline.analyses.catalogue import ANALYSES

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "analyses.md").read_text(encoding="utf-8")
FIRST, OWN, PAPER = (
    [shlex.split(line)[1:] for line in block.splitlines() if line.startswith("slackline")]
    for block in blocks(DOCUMENT, "sh")
)
TINY = ["--hyper.num-envs", "4", "--hyper.num-steps", "4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the document's first commands have been given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("analyses"))
        patch.setenv("SLACKLINE_STEPS", "320")
        for words in FIRST:
            assert cli.run([*words, *(TINY if words[0] == "train" else [])]) == 0, words
        yield Path.cwd()


def test_every_kind_writes_figures_a_table_and_numbers(folder: Path) -> None:
    written = {file.name for file in (folder / "runs/line/analyses").iterdir()}
    for name in ("shots", "chosen", "z", "classifier", "beta", "anchors", "strips", "sweep-length"):
        assert {f"{name}.md", f"{name}.json"} <= written
        assert any(f.startswith(f"{name}-") and f.endswith(".png") for f in written), name
        json.loads((folder / f"runs/line/analyses/{name}.json").read_text())


def test_the_log_has_the_anchors_and_snapshots_are_kept(folder: Path) -> None:
    numbers = json.loads((folder / "runs/line/analyses/anchors.json").read_text())
    (found,) = numbers.values()
    assert len(found["steps"]) == len(found["cosine"]) == len(found["distance"])
    assert len(found["returns"]) == 4, "three on the way, and the end"
    assert found["cosine"][-1] == pytest.approx(found["final"]["by_tensor"], abs=1e-3)
    assert found["distance"][-1] == pytest.approx(found["final"]["distance"], rel=1e-3)


def test_the_documents_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(DOCUMENT, "python")
    exec(code, {})
    assert capsys.readouterr().out.count("\n") >= 2
    assert (folder / "figures" / "z.json").exists()


def test_an_environment_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    train, sweep = OWN
    small = ["--steps", "64", "--hyper.num-envs", "2", "--hyper.num-steps", "16"]
    told(capsys, *train, *small, "--hyper.minibatches", "2")
    assert "g =" in told(capsys, *sweep)
    assert Path("runs/own/analyses/sweep-g.json").exists()


def test_walks_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("run.json", "subspace.safetensors"):
        shutil.copy(ROOT / "results/discrete/maze2d-lop" / name, run)
    said = told(capsys, "analyse", "walks", str(run), "--shots", "3", "--variation", "Maze2")
    assert "Maze2" in said
    assert "Maze1" not in said
    assert (run / "analyses/walks-run.png").exists()


def test_the_guides_example(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.split("## Add an analysis\n")[1].split("\n## ")[0]
    names: dict[str, Any] = {}
    exec(compile(blocks(section, "python")[0], "guide", "exec", dont_inherit=True), names)
    monkeypatch.setitem(ANALYSES, "seeds", names["Seeds"])
    said = told(capsys, "analyse", "seeds", "runs/line", "runs/single", "--json")
    assert list(json.loads(said).values()) == [3, 3]


@pytest.mark.parametrize("words", PAPER, ids=" ".join)
def test_the_papers_commands_parse(words: list[str]) -> None:
    importlib.import_module(f"slackline.cli.{words[0]}").parse(words[1:])
    assert (ROOT / words[2]).is_dir()


def test_numbers_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, "analyse", "chosen", "runs/line", "--json"))
    assert list(found) == ["K = 5"]


MISTAKES = {
    "analyse chosen": "name at least one RUN",
    "analyse shot runs/line": "unknown analysis 'shot'; did you mean shots?",
    "analyse --devices 1 shots runs/line": "KIND comes first: shots",
    "analyse shots runs/line --most 0": "most is 0; it must be",
    "analyse shots runs/line --variation Long": "unknown variation of cartpole 'Long'",
    "analyse chosen runs/line --shots 7": "shots is 7; the runs were adapted with 5",
    "analyse chosen runs/single": "runs/single: has no scores on cartpole; adapt it first",
    "analyse beta runs/nothing": "runs/nothing",
    "analyse classifier runs/single": "is a single run with one policy",
    "analyse anchors runs/single": "is a single run with one anchor",
    "analyse anchors runs/line --variation LongPole": "leave --variation out",
    "analyse walks runs/line": "cartpole is not a maze",
    "analyse strips runs/line --seed 9": "unknown seed of runs/line '9'",
    "analyse z runs/line --out runs/line/run.json": "runs/line/run.json: cannot be written to",
    "sweep runs/line --change lenth --from 1 --to 2": "unknown change of cartpole 'lenth'",
    "sweep runs/line --change length --from 2 --to 1": "from must be less than to",
    "sweep runs/line --change length --from 1": "--to is missing",
    "sweep runs/line --change length --from a --to 2": "--from",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line(
    folder: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert MISTAKES[words] in refused(capsys, *words.split())


def test_policies_that_were_not_kept_are_missed_by_name(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder / "runs/line", tmp_path / "bare")
    os.remove(tmp_path / "bare/subspace.safetensors")
    said = refused(capsys, "analyse", "z", str(tmp_path / "bare"))
    assert "its policies were not kept" in said
    told(capsys, "analyse", "chosen", str(tmp_path / "bare"))


def test_runs_of_one_method_are_told_apart_by_their_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "runs/weaker"
    trained = ["--method", "lop", "--beta", "0.1", "--seeds", "2", "--out", other]
    told(capsys, "train", "cartpole", *trained, *TINY)
    told(capsys, "adapt", other, "--adapter", "grid", "--shots", "5", "--episodes", "1")
    said = told(capsys, "analyse", "beta", "runs/line", other, "--out", "both")
    assert "0.1" in said
    found = json.loads(Path("both/beta.json").read_text())
    assert sorted(found) == ["Line of policies, β = 0.1", "Line of policies, β = 1"]
    said = told(capsys, "analyse", "chosen", "runs/line", other, "--json")
    assert set(json.loads(said)["K = 5"]) == {
        "Line of policies, beta = 1",
        "Line of policies, beta = 0.1",
    }
