"""FruitBot: levels that are those asked for, seen as pictures, trained and adapted for real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import slackline as sl
from slackline.cli import run
from slackline.envs.host import HostParams, open_pool
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.impala import Block, Impala
from slackline.networks.strided import Strided
from slackline.paper import paper_average, paper_score
from slackline.suites.fruitbot import CPU, GAME, PAPER, QUICK, SUITE
from slackline.suites.suite import TRAIN

TINY = replace(CPU, num_envs=4, num_steps=8, minibatches=2, channels=(4, 4, 4), patch=4)
BLOCKS = {"residual": Block, "strided": Strided}


def test_the_papers_rows_and_table() -> None:
    assert [v.description for v in SUITE.variations] == [
        "levels 100 to 109",
        "levels 200 to 209",
        "levels 300 to 309",
    ]
    assert paper_score("fruitbot", CATALOGUE["lop"], "Levels100", 10) == (20.1, 4.4)
    assert paper_score("fruitbot", CATALOGUE["diayn_r"], "Levels300", 10) == (17.1, 4.6)
    assert paper_average("fruitbot", CATALOGUE["lop"], 10) == 16.38
    assert (SUITE.protocol.shots, SUITE.protocol.episodes) == (10, 16)
    assert (PAPER.policy_lr, PAPER.num_envs, PAPER.num_steps) == (5e-4, 64, 128)
    assert (PAPER.epochs, PAPER.minibatches, PAPER.gae_lambda) == (5, 8, 0.0)
    assert (PAPER.entropy, PAPER.max_grad_norm, PAPER.critic_coefficient) == (0.01, 20.0, 1.0)


def levels_seen(params: HostParams) -> set[int]:
    pool: Any = GAME.open(params, range(32), 1000)
    return {int(level) for _ in range(3) for level in pool.pool.reset()[1]["level_seed"]}


@pytest.mark.usefixtures("procgen_games")
@pytest.mark.parametrize("variation", [TRAIN, *SUITE.variations], ids=lambda v: v.name)
def test_levels_are_those_of_the_variation(variation: Any) -> None:
    first = 0 if variation is TRAIN else int(variation.name.removeprefix("Levels"))
    found = levels_seen(variation.apply(GAME.default_params()))
    assert found <= set(range(first, first + 10))
    assert len(found) > 5


@pytest.mark.usefixtures("procgen_games")
def test_spaces_are_the_games() -> None:
    real = sl.envpool("FruitbotEasy-v0", num_levels=10)
    for what in ("observation_size", "picture", "action"):
        assert getattr(GAME, what) == getattr(real, what)
    pool = open_pool(GAME, GAME.default_params(), [0, 1], 1000)
    seen = pool.reset()
    assert (seen.shape, seen.dtype) == ((2, 64, 64, 3), np.uint8)
    assert seen[0].std(axis=(0, 1)).min() > 5.0  # of each colour: planes are not rows
    pool.close()


@pytest.mark.usefixtures("procgen_games")
def test_games_end_by_themselves_before_they_are_cut() -> None:
    """What the suite promises the learner: no episode is truncated early."""
    pool = open_pool(GAME, GAME.default_params(), list(range(16)), 1000)
    pool.reset()
    draw, ended = np.random.default_rng(0), 0
    for _ in range(400):
        did = pool.step(draw.integers(15, size=16))
        assert not did.truncated.any()
        ended += int(did.terminated.sum())
    assert ended > 16
    pool.close()


@pytest.mark.usefixtures("procgen_games")
@pytest.mark.parametrize("vision", BLOCKS)
def test_a_line_is_trained_saved_and_adapted(vision: Any, tmp_path: Path) -> None:
    hyper, out = replace(TINY, vision=vision), tmp_path / "run"
    lines = sl.train_seeds("fruitbot", "lop", seeds=2, steps=64, hyper=hyper, out=out)
    policy = sl.load(out, seed=1).policy
    assert isinstance(policy, Impala)
    for block, anchors in zip((*policy.shared, policy.last), (1, 1, 2), strict=True):
        assert isinstance(block, BLOCKS[vision])
        assert block.outputs == 4
        assert {leaf.shape[0] for leaf in jax.tree.leaves(block)} == {anchors}
    found = lines[0].adapt("Levels200", shots=2, episodes=1, score_episodes=2)
    assert found.returns.shape == (2, 1)
    assert np.isfinite(found.scores).all()


def test_the_quick_presets_convolution_costs_a_forty_fifth() -> None:
    """Multiplications for one picture, by the sizes alone."""
    first, second, third = CPU.channels
    residual = 9 * 32**2 * 12 * first + 4 * 9 * 16**2 * first**2
    residual += 9 * 16**2 * first * second + 4 * 9 * 8**2 * second**2
    residual += 9 * 8**2 * second * third + 4 * 9 * 4**2 * third**2
    assert (CPU.patch, QUICK.patch, QUICK.channels) == (2, 8, (16,))
    assert QUICK.vision == "strided"
    patches = 8**2 * (8 * 8 * 3) * 16
    assert patches == pytest.approx(residual / 45, rel=0.02)
    assert SUITE.preset("quick", "senses") is QUICK


@pytest.mark.usefixtures("procgen_games")
def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    small = ["--hyper.num-envs", "4", "--hyper.num-steps", "8", "--hyper.channels", "4", "4"]
    words = ["train", "fruitbot", "--method", "diayn_r", "--preset", "cpu", "--steps", "64"]
    assert run([*words, *small, "--out", str(out)]) == 0
    hyper = json.loads((out / "run.json").read_text())["config"]["hyper"]
    assert (hyper["patch"], hyper["channels"]) == (2, [4, 4])
    counts = ["--shots", "2", "--episodes", "1", "--score-episodes", "1"]
    assert run(["adapt", str(out), "--variation", "Levels300", *counts]) == 0
    assert "Levels300" in capsys.readouterr().out
    assert run(["train", "fruitbot", "--hyper.patch", "5", "--out", str(tmp_path / "no")]) == 2
    assert "patch is 5; it must divide the 64 × 64 pixels" in capsys.readouterr().err
