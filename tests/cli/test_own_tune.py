"""Tuning on environments outside JAX, as the command line does it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from commands import refused, told

import slackline as sl
from slackline.learn.learner import Learner
from slackline.learn.programs import trainer_of
from slackline.methods.catalogue import method
from slackline.suites.own import suite_of
from slackline.suites.resolve import environment
from slackline.suites.suite import TrainTask
from slackline.tuning import _scores_on_host, tune

FILE = """
env = "host_probes:HostAim"
steps = 64

[[variation]]
name = "Broken"
env = "host_probes:HostAim?target=0.5"

[hyper]
num_envs = 4
num_steps = 8
minibatches = 2
hidden = [4]
critic_hidden = [4]
"""


def test_a_suite_file_is_tuned_for_and_trained_with_the_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("aims.toml").write_text(FILE)
    said = told(capsys, "tune", "aims.toml", "--grid", "lr=1e-6,1e-2", "--seeds", "2")
    assert "single policy on the training environment, 2 seeds × 64 steps" in said
    file = Path("runs/aims-hyper.json")
    assert f"next: slackline train aims.toml --hyper {file}" in said
    kept = json.loads(file.read_text())
    assert {cell["lr"] for cell in kept["ranking"]} == {1e-6, 1e-2}
    assert "exists already" in refused(capsys, "tune", "aims.toml")
    told(capsys, "train", "aims.toml", "--hyper", str(file), "--out", "run")
    trained = json.loads(Path("run/run.json").read_text())["config"]["hyper"]
    assert trained["policy_lr"] == kept["hyper"]["policy_lr"]


def test_words_of_environments_make_plain_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    Path("runs/host_probes-HostAim-target-1.0-hyper.json").write_text("")
    said = refused(capsys, "tune", "host_probes:HostAim?target=1.0")
    assert "runs/host_probes-HostAim-target-1.0-hyper.json: exists already" in said


def task_of(word: str) -> TrainTask:
    hyper = sl.Hyper(
        algorithm="ppo",
        num_envs=8,
        num_steps=16,
        minibatches=2,
        epochs=4,
        hidden=(8,),
        critic_hidden=(8,),
    )
    return replace(suite_of(environment(word)).train_task, hyper=hyper)


def test_the_better_learning_rate_wins() -> None:
    task = task_of("host_probes:HostAim")
    ranking = tune(task, {"lr": (1e-6, 1e-2)}, seeds=2, steps=6_400)
    assert [choice.changed["lr"] for choice in ranking] == [1e-2, 1e-6]
    assert ranking[0].score > ranking[1].score


def test_a_training_that_diverged_neither_stops_the_others_nor_has_a_score() -> None:
    task = task_of("host_probes:HostAim")
    learner = Learner(task.env, task.horizon, method("single"))
    hypers = jax.tree.map(lambda x: jnp.full(2, x, jnp.float32), task.hyper)
    program = trainer_of(learner, hypers, [0, 1], budget=2, hyper_axis=0)
    state = program.init()
    poison = jnp.array([jnp.nan, 0.0])
    networks = jax.tree.map(
        lambda x: x + poison.reshape(2, *(1,) * (x.ndim - 1)) if x.dtype == jnp.float32 else x,
        state.networks,
    )
    trained, _ = program.advance(state._replace(networks=networks), 2)
    program.close()
    scores = _scores_on_host(task, trained, [0, 1])
    assert np.isnan(scores).tolist() == [True, False]


def test_every_cell_trains_as_it_does_alone() -> None:
    task = task_of("host_probes:HostAim")
    alone = tune(task, {"lr": (1e-3,)}, seeds=1, steps=640)
    beside = tune(task, {"lr": (1e-6, 1e-3)}, seeds=1, steps=640)
    twin = next(choice for choice in beside if choice.changed["lr"] == 1e-3)
    np.testing.assert_allclose(alone[0].training_return, twin.training_return, rtol=1e-4)
    np.testing.assert_allclose(alone[0].scores, twin.scores, rtol=1e-3)
