"""Robots through the command: what is refused, in one line, and what is kept."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from test_cli import refused

import slackline as sl
from slackline.api import Line
from slackline.envs.brax import BraxParams, HalfCheetah
from slackline.errors import SlacklineError
from slackline.io.files import read_json
from slackline.io.tensors import read_tensors
from slackline.store.run import RunConfig, RunFolder
from slackline.suites.bodies import dead_sensors
from slackline.suites.resolve import suite as find_suite
from slackline.training import run_training

TINY = (
    *("--hyper.num-envs", "4", "--hyper.num-steps", "2", "--hyper.block", "2"),
    *("--hyper.minibatches", "2", "--hyper.epochs", "1", "--hyper.hidden", "8"),
    *("--hyper.critic-hidden", "8"),
)


class Bomb(HalfCheetah):
    """A robot whose physics takes steps far too long, and so explodes within a few of them."""

    def default_params(self) -> BraxParams:
        params = super().default_params()
        return params._replace(sys=exploding(params.sys))


def exploding(sys: Any) -> Any:
    return sys.tree_replace({"opt.timestep": jnp.float32(3.0)})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train halfcheetah-foo", "'foo'"),
        ("train halfcheetah --preset foo", "'foo'"),
        ("train ant --devices 4096", "devices is 4096"),
        ("train ant --preset fast --hyper.block 100", "block is 100; it must divide num_envs, 256"),
        ("train ant --preset fast --hyper.minibatches 9", "must divide block × num_steps, 2048"),
    ],
)
def test_bad_input_is_one_line(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *words.split(), "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_dead_sensors_that_cannot_be() -> None:
    with pytest.raises(SlacklineError, match=r"fraction of dead sensors is 1\.2"):
        dead_sensors(1.2)
    with pytest.raises(SlacklineError, match="seed of dead sensors is -1"):
        dead_sensors(0.2, seed=-1)


def config(suite: str, steps: int = 16) -> RunConfig:
    hyper = replace(
        find_suite(suite).presets["fast"],
        num_envs=4,
        num_steps=2,
        block=2,
        minibatches=2,
        epochs=1,
        hidden=(8,),
        critic_hidden=(8,),
    )
    return RunConfig(suite, "lop", sl.method("lop").options, hyper, (3,), steps)


def test_a_robot_that_explodes_stops_the_run_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Training names the step and keeps what was good; files of another body are refused."""
    sound = find_suite("halfcheetah")
    good = tmp_path / "good"
    line = run_training(config("halfcheetah"), good, suite=sound, checkpoint_seconds=0.0)[0]
    with pytest.raises(SlacklineError, match="Custom returned a value that is not finite"):
        Line.of(line).adapt(
            lambda params: params._replace(sys=exploding(params.sys)),
            shots=2,
            episodes=1,
            score_episodes=1,
        )
    longer, bad = replace(config("halfcheetah"), steps=4096), tmp_path / "bad"
    RunFolder(bad).create(longer)
    shutil.copy(good / "checkpoint.safetensors", bad)  # as if it had got as far as that
    before = (bad / "checkpoint.safetensors").read_bytes()
    bomb = replace(sound, env=Bomb())
    with pytest.raises(
        SlacklineError,
        match=r"the simulation broke down at step [\d,]+: .*seed 3 .*; the last good checkpoint is",
    ):
        run_training(longer, bad, suite=bomb, resume=True, checkpoint_seconds=0.0)
    assert (bad / "checkpoint.safetensors").read_bytes() == before
    kept, header = read_tensors(bad / "checkpoint.safetensors")  # refuses what is not finite
    assert header["iteration"] == 2
    assert kept["seen.count"] == 2 * 8

    monkeypatch.undo()
    ant = tmp_path / "ant"
    shutil.copytree(good, ant)
    text = json.dumps(read_json(good / "run.json"))  # without its checksum
    (ant / "run.json").write_text(text.replace("halfcheetah", "ant"))
    with pytest.raises(SlacklineError, match="saved by a run on halfcheetah, and this one is on"):
        RunFolder(ant).load_checkpoint(None)
    for verb in ("adapt", "watch"):
        assert "saved by a run on halfcheetah, and this one is on ant" in refused(
            capsys, verb, str(ant), "--variation", "BigGravity"
        )
