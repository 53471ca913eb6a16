"""Robots through the command: what is refused, in one line, and what is kept."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from test_cli import refused

import slackline as sl
from slackline.envs.brax import BraxParams, HalfCheetah
from slackline.errors import SlacklineError
from slackline.store.files import read_tensors
from slackline.store.run import RunConfig, RunFolder
from slackline.suites import suite as find_suite
from slackline.suites.bodies import dead_sensors
from slackline.training import run_training

TINY = (
    *("--hyper.num-envs", "4", "--hyper.num-steps", "2", "--hyper.block", "2"),
    *("--hyper.minibatches", "2", "--hyper.epochs", "1", "--hyper.hidden", "8"),
    *("--hyper.critic-hidden", "8"),
)


class Slippery(HalfCheetah):
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


def test_more_dead_sensors_than_there_are() -> None:
    with pytest.raises(SlacklineError, match=r"fraction of dead sensors is 1\.2"):
        dead_sensors(1.2)


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training names the step; a checkpoint of another body is refused; so is its adaptation."""
    sound = replace(find_suite("halfcheetah"))
    line = run_training(config("halfcheetah"), tmp_path / "good", checkpoint_seconds=0.0)[0]
    with pytest.raises(SlacklineError, match="Custom returned a value that is not finite"):
        line.adapt(
            lambda params: params._replace(sys=exploding(params.sys)),
            shots=2,
            episodes=1,
            score_episodes=1,
        )
    before = (tmp_path / "good" / "checkpoint.safetensors").read_bytes()
    bomb = replace(sound, env=Slippery())
    monkeypatch.setattr("slackline.store.run.suite", lambda _: bomb)
    longer = replace(config("halfcheetah"), steps=4096)
    with pytest.raises(SlacklineError, match=r"the simulation broke down at step [\d,]+: .*seed 3"):
        run_training(longer, tmp_path / "bad", checkpoint_seconds=0.0)
    assert (tmp_path / "good" / "checkpoint.safetensors").read_bytes() == before
    checkpoint = RunFolder(tmp_path / "bad").checkpoint_file
    if checkpoint.exists():
        read_tensors(checkpoint)  # refuses anything that is not finite

    monkeypatch.undo()
    shutil.copytree(tmp_path / "good", tmp_path / "ant")
    text = (tmp_path / "ant" / "run.json").read_text()
    (tmp_path / "ant" / "run.json").write_text(text.replace('"halfcheetah"', '"ant"'))
    with pytest.raises(SlacklineError, match="saved by a run on halfcheetah, and this one is on"):
        RunFolder(tmp_path / "ant").load_checkpoint(None)
