"""The guide's examples of an environment, a method and an adapter; that of an algorithm is run in
tests/algorithms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from documents import blocks

import slackline as sl
from slackline.adapt.catalogue import ADAPTERS
from slackline.methods import auxiliary, conditioning, latent
from slackline.methods.method import Method

GUIDE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
TINY = sl.Hyper(num_envs=8, num_steps=8, hidden=(8,), critic_hidden=(8,))
FEW: dict[str, Any] = {"shots": 2, "episodes": 1, "score_episodes": 1}


def section(title: str) -> str:
    return GUIDE.split(f"## {title}\n")[1].split("\n## ")[0]


def defined(title: str, number: int = 0) -> dict[str, Any]:
    """What a block of the section defines, with nothing there before."""
    names: dict[str, Any] = {}
    exec(blocks(section(title), "python")[number], names)
    return names


def test_the_environment_trains_and_its_variations_differ() -> None:
    suite = defined("Add an environment")["SUITE"]
    line = sl.train(suite, "lop", steps=3 * 64, hyper=TINY)
    returns = [line.adapt(name, **FEW).score for name in ("Gale", "Backwind", "Train")]
    assert np.isfinite(returns).all()
    assert len(set(returns)) == 3


def trained(method: Method, monkeypatch: pytest.MonkeyPatch) -> Any:
    """By its name, once it is in the catalogue."""
    monkeypatch.setitem(sl.CATALOGUE, method.name, method)
    return sl.train("cartpole", method.name, steps=3 * 64, hyper=TINY)


def methods_line(text: str, names: dict[str, Any]) -> Method:
    """The method that a line of the catalogue makes."""
    parts = {**vars(auxiliary), **vars(conditioning), **vars(latent), "Method": Method}
    return eval(text.strip().rstrip(","), parts | names)


def test_a_method_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    method = methods_line(blocks(section("Add a method"), "python")[0], {})
    line = trained(method, monkeypatch)
    assert line.policy.layers[0].weight.shape[0] == 4
    assert line.at([0.25, 0.25, 0.25, 0.25])(np.zeros(4)) in (0, 1)


def test_a_method_with_a_part_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = defined("Add a method", 1)
    text = re.search(r"`(Method\(\"ends\".*?)`", section("Add a method"))
    assert text is not None
    line = trained(methods_line(text[1], names), monkeypatch)
    drawn = np.asarray(names["Ends"]().sample(jax.random.key(0), 4000))
    outer = np.mean((drawn < 0.1) | (drawn > 0.9))
    assert abs(outer - 4 / np.pi * np.arcsin(0.1**0.5)) < 0.03, "the arcsine law"
    assert line.at(0.3)(np.zeros(4)) in (0, 1)


def test_an_adapter_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = defined("Add an adapter")["Twice"]
    monkeypatch.setitem(ADAPTERS, twice.name, twice)
    line = sl.train("cartpole", "lop", steps=3 * 64, hyper=TINY)
    by_hand = line.adapter("twice", budget=4)
    asked = by_hand.ask_many(4)
    np.testing.assert_array_equal(asked[0], asked[2])
    np.testing.assert_array_equal(asked[0], asked[1][::-1])
    found = line.adapt("LongPole", adapter="twice", budget=4, score_episodes=2)
    assert found.adapter == "twice"
    assert len(found.candidates) <= 2
