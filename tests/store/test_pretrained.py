"""The trained lines that come with the package."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import refused, told

import slackline as sl
from slackline.cli.train import parse
from slackline.store.pretrained import FOLDER, Pretrained, pretrained
from slackline.store.run import RunFolder

LINES = list(pretrained().values())


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def stored() -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in FOLDER.rglob("*")}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_a_line_is_what_the_index_says(line: Pretrained) -> None:
    if line.suite == "ant":
        pytest.importorskip("brax")
    loaded = sl.load(f"pretrained:{line.name}")
    assert (loaded.suite, loaded.method.name, loaded.seed) == (line.suite, line.method, line.seed)
    assert loaded.training is not None
    assert loaded.training.mean.mean() == pytest.approx(line.training_return, rel=1e-4)
    config = RunFolder(line.folder).config()
    assert config.seeds == (line.seed,)
    commands = line.command.split(" && ")
    slackline, verb, *words = shlex.split(commands[0])
    trained = parse(words)
    assert (slackline, verb, trained.suite) == ("slackline", "train", line.suite)
    opened = any("--open" in shlex.split(command) for command in commands)
    assert (trained.method, opened) == (
        ("single", True) if line.method == "vigour" else (None, False)  # None: the recommended one
    )
    assert sl.suite(line.suite).recommended == line.method
    assert line.seed in range(trained.first_seed, trained.first_seed + line.seeds)
    assert trained.hyper == config.hyper
    assert line.change in [v.name for v in sl.suite(line.suite).variations]
    assert line.helped > line.hurt
    assert line.helped + line.hurt <= line.seeds
    assert line.size < 200_000


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "list", "--pretrained")
    found = json.loads(told(capsys, "list", "--pretrained", "--json"))
    assert [line["name"] for line in found] == [line.name for line in LINES]
    for line in LINES:
        assert f"pretrained:{line.name}: {line.method} on {line.suite}, seed {line.seed}" in text
        assert f"helped {line.helped} of {line.seeds} seeds" in text


def test_a_name_that_there_is_not_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sl.SlacklineError, match="unknown pretrained line 'pendulun'; did you mean"):
        sl.load("pretrained:pendulun")
    for verb in (["adapt"], ["watch"], ["export", "--to", "c"]):
        assert "unknown pretrained line 'x'" in refused(capsys, verb[0], "pretrained:x", *verb[1:])


def test_commands_take_them_and_leave_the_package_alone(capsys: pytest.CaptureFixture[str]) -> None:
    before, name = stored(), "pretrained:pendulum"
    few = ["--variation", "Short", "--budget", "2", "--score-episodes", "2"]
    assert "Short" in told(capsys, "adapt", name, *few)
    assert told(capsys, "export", name, "--to", "c", "--z", "#3") == "c: policy.h\n"
    assert Path("policy.h").exists()
    assert stored() == before


def test_a_film_goes_into_the_current_folder(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    before, short = stored(), ["--shots", "2", "--steps", "4"]
    told(capsys, "watch", "pretrained:pendulum", "--variation", "Short", *short)
    assert Path("watch-Short.gif").exists()
    assert stored() == before


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_it_acts_at_once(line: Pretrained) -> None:
    loaded = sl.load(f"pretrained:{line.name}")
    middle = loaded.method.latent.nested(1)[0]
    action = loaded.at(middle)(np.zeros(loaded.observation_shape))
    assert np.isfinite(action).all()


def test_anchors_are_watched_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    words = ["--variation", "LongPole", "--steps", "4", "--z", "centre", "#3"]
    said = told(capsys, "watch", "pretrained:cartpole", *words)
    assert "│ centre │" in said
    assert "│ #3     │" in said
