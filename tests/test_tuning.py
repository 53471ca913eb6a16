"""Tuning: a grid of floats in one program, on the training environment and nothing else."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import jax
import numpy as np
import pytest

import slackline as sl
from slackline import cli
from slackline.errors import SlacklineError
from slackline.store.choice import load_choice, save_choice
from slackline.suites import FURTHER, NAMES
from slackline.suites.suite import TrainTask, Variation
from slackline.tuning import cells, tune

TINY = sl.Hyper(num_envs=8, num_steps=8, hidden=(8,), critic_hidden=(8,))


def task() -> TrainTask:
    return replace(sl.suite("cartpole").train_task, hyper=TINY)


@pytest.fixture(scope="module")
def ranking() -> list:
    """A learning rate that learns beside one that cannot move."""
    return tune(task(), {"lr": (1e-6, 1e-2), "entropy": (0.0, 1e-3)}, seeds=2, steps=60_000)


def test_a_task_has_no_variation_to_look_at() -> None:
    """The guard: whatever tuning is given, it cannot reach a test environment from it."""
    assert "variations" not in {f.name for f in fields(TrainTask)}
    for name in (*NAMES, *FURTHER):
        values = vars(sl.suite(name).train_task).values()
        assert not any(isinstance(v, Variation | sl.Suite | tuple) for v in values)


def test_tuning_never_applies_a_variation(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("tuning looked at a variation")

    monkeypatch.setattr(Variation, "apply", property(forbidden), raising=False)
    assert len(tune(task(), {"lr": (1e-3,)}, seeds=1, steps=640)) == 1


def test_the_better_learning_rate_wins(ranking: list) -> None:
    assert [c.changed["lr"] for c in ranking[:2]] == [1e-2, 1e-2]
    assert ranking[0].score > ranking[-1].score
    assert ranking[0].hyper.policy_lr == ranking[0].hyper.critic_lr == 1e-2
    assert all(len(c.scores) == 2 for c in ranking)


def test_every_cell_is_trained_with_its_own_floats(ranking: list) -> None:
    """Cells that differ only in entropy end differently: none was trained in another's place."""
    slow, fast = ([c for c in ranking if c.changed["lr"] == lr] for lr in (1e-6, 1e-2))
    assert fast[0].training_return != fast[1].training_return
    assert fast[0].training_return > slow[0].training_return


def test_a_vmapped_cell_matches_training_it_alone(ranking: list) -> None:
    alone = tune(task(), {"lr": (1e-2,), "entropy": (1e-3,)}, seeds=2, steps=6_400)
    beside = tune(task(), {"lr": (1e-6, 1e-2), "entropy": (1e-3,)}, seeds=2, steps=6_400)
    twin = next(c for c in beside if c.changed["lr"] == 1e-2)
    np.testing.assert_allclose(alone[0].training_return, twin.training_return, rtol=1e-4)


def test_the_choice_survives_the_file(ranking: list, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "h.json"
    save_choice(path, task(), ranking, seeds=2, steps=60_000)
    assert load_choice(path, "cartpole") == ranking[0].hyper
    assert len(json.loads(path.read_text())["ranking"]) == 4


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ({"lrr": (1.0,)}, "unknown hyper-parameter to tune 'lrr'; did you mean lr"),
        ({"num_envs": (8,)}, "unknown hyper-parameter"),
        ({"lr": (-1.0,)}, "policy_lr is -1"),
        ({"lr": ()}, "no value for lr"),
        ({"lr": tuple(np.linspace(0.1, 1, 5000))}, "number of combinations"),
    ],
)
def test_bad_grids_are_refused(grid: dict, problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        cells(TINY, grid)


@pytest.mark.parametrize(
    "content",
    [
        '{"format": "slackline-hyper", "schema": 1}',
        "{}",
        '{"format": "slackline-hyper", "schema": 9}',
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "h.json").write_text(content)
    with pytest.raises(SlacklineError, match=r"h\.json"):
        load_choice(tmp_path / "h.json", "cartpole")


def test_the_command_tunes_and_train_reads_its_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("slackline.cli.tune.set_up_jax", lambda _: None)
    monkeypatch.setattr("slackline.cli.train.set_up_jax", lambda _: None)
    words = ["tune", "cartpole", "--grid", "lr=2e-3,3e-3", "--seeds", "1", "--steps", "2k"]
    assert cli.run([*words, "--out", "h.json"]) == 0
    assert "next: slackline train cartpole --hyper h.json" in capsys.readouterr().out
    assert cli.run([*words, "--out", "h.json"]) == 2
    words = ["train", "cartpole", "--hyper", "h.json", "--steps", "2k", "--out", "r"]
    assert cli.run([*words, "--hyper.entropy", "0.5"]) == 0
    saved = json.loads((tmp_path / "r" / "run.json").read_text())["config"]["hyper"]
    assert saved["policy_lr"] == load_choice(tmp_path / "h.json", "cartpole").policy_lr
    assert saved["entropy"] == 0.5
    assert jax.local_device_count() == 4
