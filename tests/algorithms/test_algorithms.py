"""The seam between a training and its algorithm: what an algorithm brings, and how it is found."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from documents import blocks
from jax.flatten_util import ravel_pytree

import slackline as sl
from slackline.algorithms import ALGORITHMS
from slackline.algorithms.a2c import A2C
from slackline.algorithms.actor_critic import ActorCriticConfig, Units, shuffled_units
from slackline.algorithms.base import Algorithm
from slackline.errors import SlacklineError
from slackline.io.decode import number
from slackline.learn import hyper as module

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"
TINY = sl.Hyper(num_envs=8, num_steps=8, hidden=(8,), critic_hidden=(8,))


def example() -> dict[str, Any]:
    """What the guide's example of an algorithm defines."""
    section = GUIDE.read_text(encoding="utf-8").split("## Add an algorithm\n")[1]
    names: dict[str, Any] = {}
    exec(blocks(section, "python")[0], names)
    return names


def test_the_guides_algorithm_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One class, one line in the index, and it can be named."""
    made: Algorithm = example()["Reinforce"]()
    with pytest.raises(SlacklineError, match="algorithm is 'reinforce'; it must be a2c or ppo"):
        sl.train("cartpole", "lop", steps=64, hyper=replace(TINY, algorithm=made.name))
    monkeypatch.setitem(ALGORITHMS, made.name, made)
    hyper = replace(TINY, algorithm=made.name)
    line = sl.train("cartpole", "lop", steps=5 * 64, hyper=hyper, out=tmp_path / "run")
    other = sl.train("cartpole", "lop", steps=5 * 64, hyper=TINY)
    first, second = (ravel_pytree(each.policy)[0] for each in (line, other))
    assert np.isfinite(first).all()
    assert np.abs(first - second).max() > 1e-4
    assert sl.load(tmp_path / "run").at(0.5)(np.zeros(4)) in (0, 1)


@dataclass(frozen=True)
class OwnConfig(ActorCriticConfig):
    """A config with a field that no other algorithm has."""

    temper: float = number(0.5, low=0.0, high=1.0)
    """Own only."""


class Own(A2C):
    name = "own"
    Config = OwnConfig


def test_an_algorithms_own_settings_are_hyper_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its line had been there from the start: old files, which lack its fields, are read."""
    monkeypatch.setitem(ALGORITHMS, "own", Own())
    spec = importlib.util.spec_from_file_location("fresh_hyper", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    fresh: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fresh_hyper", fresh)
    spec.loader.exec_module(fresh)
    hyper = fresh.Hyper(algorithm="own", temper=0.25, clip=0.1)
    hyper.check()
    assert 0.25 in jax.tree.leaves(hyper)
    with pytest.raises(SlacklineError, match="temper is 2; it must be a finite number, at least 0"):
        replace(hyper, temper=2.0).check()
    stored = {f.name: getattr(sl.Hyper(), f.name) for f in fields(sl.Hyper)}
    assert fresh.hyper_from_json(stored).temper == 0.5


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_setting_of_an_algorithm_is_declared_once(name: str) -> None:
    """Else one algorithm's default or bounds would silently be another's."""
    assert ALGORITHMS[name].name == name
    declared = [n for kind in sl.Hyper.__mro__ for n in inspect.get_annotations(kind)]
    assert len(declared) == len(set(declared)) == len(fields(sl.Hyper))
    assert {f.name for f in fields(ALGORITHMS[name].Config)} <= {f.name for f in fields(sl.Hyper)}


def test_sub_trajectories_stay_whole() -> None:
    """Four steps of two environments in pieces of two: environment 0's first two steps first."""
    hyper = sl.Hyper(minibatch_of="trajectories", trajectory=2)
    cut = shuffled_units(hyper, (1, 4, 2))
    assert cut == Units(num=4, length=2)
    steps = jnp.arange(8).reshape(1, 4, 2)  # step t of environment n is 2 t + n
    np.testing.assert_array_equal(cut.units(steps)[0], [[0, 2], [1, 3], [4, 6], [5, 7]])
    np.testing.assert_array_equal(cut.steps(cut.units(steps)[0][:2]), [0, 2, 1, 3])
    whole = shuffled_units(replace(hyper, trajectory=0), (1, 4, 2))
    np.testing.assert_array_equal(whole.units(steps)[0], [[0, 2, 4, 6], [1, 3, 5, 7]])
    single = shuffled_units(sl.Hyper(), (1, 4, 2))
    np.testing.assert_array_equal(single.units(steps)[0], np.arange(8))


def test_what_cannot_be_cut_into_sub_trajectories_is_refused() -> None:
    pieces = replace(TINY, algorithm="ppo", minibatch_of="trajectories")
    replace(pieces, minibatches=8).check()
    with pytest.raises(SlacklineError, match="trajectory is 3; it must divide num_steps, 8"):
        replace(pieces, trajectory=3).check()
    with pytest.raises(SlacklineError, match="it must divide the sub-trajectories of a block, 16"):
        replace(pieces, trajectory=4, minibatches=3).check()
    with pytest.raises(SlacklineError, match="minibatch_of is 'episodes'; it must be steps or"):
        replace(pieces, minibatch_of="episodes").check()  # type: ignore[arg-type]


def test_trajectories_and_scaled_rewards_train_otherwise() -> None:
    plain = replace(TINY, algorithm="ppo", minibatches=4, normalise_advantage=True)
    found = [
        ravel_pytree(sl.train("cartpole", "single", steps=3 * 64, hyper=hyper).policy)[0]
        for hyper in (plain, replace(plain, minibatch_of="trajectories"))
    ]
    assert np.isfinite(found[1]).all()
    assert np.abs(found[0] - found[1]).max() > 1e-6
