"""The user's own environment from the command line, end to end."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import polars as pl
import pytest
from commands import refused, told

from slackline import cli

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs" / "your-environment.md"
TINY = ["--hyper.num-envs", "2", "--hyper.num-steps", "16", "--hyper.minibatches", "2"]
SMALL = ["--shots", "2", "--episodes", "1", "--score-episodes", "2"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("own") / "run"
    assert cli.run(["train", "gym:Pendulum-v1", "--steps", "64", *TINY, "--out", str(out)]) == 0
    return out


def test_adapting_to_the_same_environment_made_otherwise(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = ["--env", "gym:Pendulum-v1", "--kwargs", "g=5.0"]
    assert "g = 5.0" in told(capsys, "adapt", str(trained), *same, *SMALL)
    other = ["--to", "gym:Pendulum-v1", "--kwargs", "g=5.0"]
    assert "gym:Pendulum-v1?g=5.0" in told(capsys, "adapt", str(trained), *other, *SMALL)
    kept = pl.read_parquet(trained / "scores.parquet")["variation"].unique().to_list()
    assert sorted(kept) == ["g=5.0", "gym:Pendulum-v1?g=5.0"]
    said, page = told(capsys, "report", str(trained)), (trained / "report.html").read_text()
    for name in kept:
        assert name in said
        assert page.count(name) > 1, "not only in the command that made it"


def test_adapting_to_the_variations_of_another_suite(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, planets = tmp_path / "run", str(EXAMPLES / "pendulum.toml")
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("scores.parquet"))
    words = ["adapt", str(run), "--suite", planets]
    assert "Moon" in told(capsys, *words, "--variation", "Moon", *SMALL)
    kept = pl.read_parquet(run / "scores.parquet").filter(variation="Moon")
    assert kept["suite"].unique().to_list() == [planets]
    assert "Moon" in told(capsys, "report", str(run)), "a table of the suite that was played"
    assert "variation of" in refused(capsys, *words, "--variation", "Moo")
    assert "exclude each other" in refused(capsys, *words, "--env", "gym:Pendulum-v1")
    assert "exclude each other" in refused(capsys, *words, "--to", "gym:Pendulum-v1")
    for suite, problem in {
        "cartpole": "cartpole: its observation shape is (4,), and the policies were trained on",
        "pendulum": "pendulum: its action is Discrete(num_actions=",
        "pendulum.tom": "unknown suite 'pendulum.tom'",
    }.items():
        assert problem in refused(capsys, "adapt", str(run), "--suite", suite)


def test_the_error_shows_the_line_that_works(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without variations the training environment is adapted to, once it is named again."""
    said = refused(capsys, "adapt", str(trained), *SMALL)
    assert "Traceback" not in said
    _, line = said.strip().split("if you trust it: ")
    assert line == f"slackline adapt {trained} {' '.join(SMALL)} --env gym:Pendulum-v1"
    assert "Train" in told(capsys, *shlex.split(line)[1:])
    assert str(trained / "report.html") in told(capsys, "report", str(trained))


def test_what_cannot_be_adapted_to_is_refused(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, named = str(trained), ["--env", "gym:Pendulum-v1"]
    said = refused(capsys, "adapt", run, "--env", "gym:CartPole-v1")
    assert "was trained on gym:Pendulum-v1, not on gym:CartPole-v1; another one to adapt" in said
    said = refused(capsys, "adapt", run, "--to", "gym:CartPole-v1")
    assert "gym:CartPole-v1: its observation shape is (4,)" in said
    assert "NAME=VALUE" in refused(capsys, "adapt", run, *named, "--kwargs", "g")
    assert "cannot be made" in refused(capsys, "adapt", run, "--to", "gym:Nowhere-v0")
    said = refused(capsys, "adapt", run, *named, "--kwargs", "colour=3", *SMALL)
    assert "gym:Pendulum-v1" in said
    assert "colour" in said
    both = ["--to", "gym:Pendulum-v1", "--variation", "Train"]
    assert "exclude each other" in refused(capsys, "adapt", run, *both)


def test_only_environments_outside_jax_are_exchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    tiny = ["--hyper.num-envs", "2", "--hyper.num-steps", "2"]
    told(capsys, "train", "cartpole", "--steps", "8", *tiny, "--out", out)
    assert "runs in JAX" in refused(capsys, "adapt", out, "--to", "gym:CartPole-v1")
    said = refused(capsys, "adapt", out, "--env", "gym:CartPole-v1")
    assert "was trained on cartpole, a suite of slackline's own" in said
    assert "runs in JAX" in refused(capsys, "watch", out, "--kwargs", "g=1")


def test_default_folder_has_a_tame_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told(capsys, "train", "gym:Pendulum-v1?g=5.0", "--steps", "64", *TINY)
    assert (tmp_path / "runs" / "gym-Pendulum-v1-g-5.0-vigour" / "run.json").exists()


def test_the_example_file_is_the_one_in_the_docs() -> None:
    example = (EXAMPLES / "pendulum.toml").read_text().split("\n", 1)[1]
    assert example in DOCS.read_text()


def test_bench_of_a_suite_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The docs' example on a tiny budget: a table with its variations, and a page."""
    text = (EXAMPLES / "pendulum.toml").read_text()
    tiny = text.replace("num_steps = 256", "num_steps = 16").replace("300_000", "128")
    (tmp_path / "planets.toml").write_text(tiny)
    monkeypatch.chdir(tmp_path)
    words = ["bench", "planets.toml", "--methods", "single", "lop", "--seeds", "2", *SMALL]
    said = told(capsys, *words, "--out", "b")
    assert "Pendulum on other planets" in said
    assert "Moon" in said
    assert "Jupiter" in said
    assert (tmp_path / "b" / "planets-lop" / "scores.parquet").exists()
    assert "Jupiter" in (tmp_path / "b" / "report.html").read_text()
    moon = ["adapt", "b/planets-lop", "--variation", "Moon", *SMALL]
    assert "Moon" in told(capsys, *moon, "--env", "gym:Pendulum-v1")
    assert "Moon" in told(capsys, *moon, "--suite", "planets.toml")


FILE = """
title = "Aiming"
env = "host_probes:HostAim"
steps = 64

[[variation]]
name = "Low"
options = { target = -0.5 }

[[variation]]
name = "Elsewhere"
env = "host_probes:HostAim?target=0.5"

[hyper]
num_envs = 2
num_steps = 16
minibatches = 2
hidden = [4]
critic_hidden = [4]
"""


def test_a_run_keeps_what_its_suite_file_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Later edits do not apply, nor does it matter whether the file is there."""
    monkeypatch.chdir(tmp_path)
    file, train = Path("aims.toml"), ["train", "aims.toml", "--out", "run"]
    file.write_text(FILE)
    adapt = ["adapt", "run", *SMALL, "--env", "host_probes:HostAim"]
    both = [*adapt, "--env", "host_probes:HostAim?target=0.5"]
    said = told(capsys, *train)
    envs = "--env host_probes:HostAim --env 'host_probes:HostAim?target=0.5'"
    assert f"next: slackline adapt run {envs}" in said
    assert refused(capsys, *adapt).strip().endswith(shlex.join(["slackline", *both]))
    before = told(capsys, *both)
    assert "target = -0.5" in before
    assert "trained vigour on aims.toml" in told(capsys, *train, "--resume")
    assert "target = -0.5" in told(capsys, "adapt", "run", *SMALL, "--suite", "aims.toml")

    file.write_text(FILE.replace("-0.5", "2.5").replace("Aiming", "Missing"))
    assert told(capsys, *both) == before
    assert "Aiming" in told(capsys, "report", "run")
    said = refused(capsys, "adapt", "run", "--suite", "aims.toml")
    assert "run: keeps another aims.toml (title = Aiming there, Missing here)" in said
    said = refused(capsys, *train, "--resume")
    assert "aims.toml is not what it was: title = Aiming there, Missing here" in said
    file.rename("others.toml")
    assert "target = 2.5" in told(capsys, "adapt", "run", *SMALL, "--suite", "others.toml")
    Path("others.toml").unlink()
    assert told(capsys, *both) == before
    said = told(capsys, "report", "run")
    assert "Aiming: return after" in said
    assert "Missing: return after" in said
