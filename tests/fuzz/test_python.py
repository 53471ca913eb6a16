"""Every Python entry point with anything for an argument: it works, or says in one line why not."""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import ANYTHING, ARRAYS, HUGE, JSON, ODD, fuzzed, holds

import slackline as sl
from slackline import training
from slackline.adapt.catalogue import ADAPTERS

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")

LINES = ("pretrained:cartpole", "pretrained:pendulum")


@lru_cache
def line(name: str = LINES[0]) -> Any:
    return sl.load(name)


@fuzzed
@given(st.sampled_from(LINES), ANYTHING)
@example(LINES[0], ["a", "b", "c", "d"])
@example(LINES[0], [[0.0], 0.0])
@example(LINES[0], [10**400, 0, 0, 0])
@example(LINES[0], None)
def test_observations_may_be_anything(name: str, observation: Any) -> None:
    policy = line(name).at(0.5)
    done: list[Any] = []
    if holds(lambda: done.append(policy(observation))):
        assert np.isfinite(done[0]).all()
    holds(lambda: policy.predict(observation))


@fuzzed
@given(st.sampled_from(LINES), ANYTHING)
@example(LINES[0], 10**400)
@example(LINES[0], np.array([None, object()], object))
def test_z_may_be_anything(name: str, z: Any) -> None:
    done: list[Any] = []
    if holds(lambda: done.append(line(name).at(z))):
        assert np.isfinite(done[0].outputs(np.zeros(done[0].observation_size))).all()


ASKED = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(-1, 4) | ODD),
        st.tuples(st.just("tell"), st.floats(-1e6, 1e6) | ODD | st.sampled_from(HUGE) | ARRAYS),
        st.tuples(st.just("tell other"), ANYTHING),
        st.tuples(st.just("best"), st.none()),
    ),
    max_size=12,
)


@fuzzed
@given(st.sampled_from(sorted(ADAPTERS)), st.integers(1, 30), ASKED, JSON)
@example("bayes", 5, [("ask", 2), ("tell", 1e308), ("tell", -1e308), ("best", None)], None)
@example("halving", 5, [("tell other", 10**400)], None)
def test_asking_and_telling_in_any_order(
    adapter: str, budget: int, does: list[tuple[str, Any]], damage: Any
) -> None:
    """Whatever is told, the budget holds, what is asked can be played, and all of it is saved."""
    found: list[Any] = []
    options = {"floor": -1e9} if adapter == "safe" else {}
    if not holds(lambda: found.append(line().adapter(adapter, budget=budget, **options))):
        return
    hand, out = found[0], []
    for what, value in does:
        if what == "ask":
            holds(lambda value=value: out.extend(hand.ask_many(value)))
        elif what == "tell" and out:
            if holds(lambda value=value: hand.tell(out[0], value)):
                out.pop(0)
        elif what == "tell other":
            holds(lambda value=value: hand.tell(value, 1.0))
        else:
            assert np.isfinite(np.asarray(hand.best())).all()
    assert len(hand.out) == len(out)
    assert all(np.isfinite(line().at(z)(np.zeros(4))) for z in out)
    with TemporaryDirectory() as folder:
        path = hand.save(Path(folder) / "hand.json")
        again = sl.load_adapter(path, line())
        np.testing.assert_array_equal(again.best(), hand.best())
        values = json.loads(path.read_text())
        key = sorted(values)[len(does) % len(values)]
        path.write_text(json.dumps({**values, key: damage}))
        holds(lambda: sl.load_adapter(path, line()))


@fuzzed
@given(
    st.sampled_from([field.name for field in fields(sl.Hyper)]),
    ANYTHING,
    st.sampled_from(["cartpole", "halfcheetah"]),
)
@example("hidden", [10**400], "cartpole")
@example("policy_lr", np.zeros((2, 2)), "cartpole")
def test_hyper_parameters_may_be_anything(name: str, value: Any, suite: str) -> None:
    found = sl.suite(suite)
    hyper = replace(found.hyper, **{name: value})
    holds(lambda: training.configure(found, hyper=hyper))


ARGUMENTS = ["seed", "steps", "preset", "hyper", "out", "keep_at", "from_run", "beta", "anchors"]


@fuzzed
@given(
    st.sampled_from(["cartpole", "pendulum"]) | ANYTHING,
    st.sampled_from(["senses", "fan", "lop", "single"]) | ANYTHING,
    st.sampled_from(ARGUMENTS),
    ANYTHING,
)
@example("cartpole", "lop", "keep_at", 10**400)
@example("cartpole", ["lop"], "seed", 1)
@example(3, "lop", "seed", 1)
def test_train_takes_anything(
    monkeypatch: pytest.MonkeyPatch, suite: Any, method: Any, name: str, value: Any
) -> None:
    """All but the training itself, of which only the budget decides how long it takes."""
    monkeypatch.setattr(training._Training, "run", trained)
    if name in ("out", "from_run"):
        value = f"nowhere/{value}" if isinstance(value, str) else value
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with contextlib.suppress(Trained):
            holds(lambda: sl.train(suite, method, progress=False, **{name: value}))


class Trained(Exception):  # noqa: N818
    """It would have been."""


def trained(_: Any) -> Any:
    raise Trained


@fuzzed
@given(ANYTHING, ANYTHING, st.sampled_from(["at", "save", "adapter", "export"]))
@example(3, None, "save")
@example("a\0b", None, "save")
def test_a_line_takes_anything(first: Any, second: Any, method: str) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if method == "adapter":
            holds(lambda: line().adapter(first, second))
        elif method == "export":
            holds(lambda: line().export(within(first), second))
        elif method == "save":
            holds(lambda: line().save(within(first)))
        else:
            holds(lambda: line().at(first))


def within(path: Any) -> Any:
    """A path that stays in the folder we are in."""
    return path.replace("/", "_").replace(".", "_") if isinstance(path, str) else path


@fuzzed
@given(ANYTHING, ANYTHING)
@example("pretrained:" + "é" * 999, None)
@example("a\0b", None)
@example(LINES[0], 10**400)
@example(LINES[0], [1])
def test_load_takes_anything(path: Any, seed: Any) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        holds(lambda: sl.load(path, seed))


@fuzzed
@given(st.sampled_from(sorted(sl.CATALOGUE)) | ANYTHING, ANYTHING, ANYTHING)
@example("lop", "beta", 10**400)
def test_methods_and_suites_take_anything(name: Any, option: Any, value: Any) -> None:
    holds(lambda: sl.suite(name))
    options = {option: value} if isinstance(option, str) else {}
    holds(lambda: sl.method(name, **options))
    for own in sl.CATALOGUE[name].options if isinstance(name, str) and name in sl.CATALOGUE else ():
        holds(lambda own=own: sl.method(name, **{own: copy.copy(value)}))


@fuzzed
@given(st.sampled_from(["CartPole-v1", "Pendulum-v1"]) | ANYTHING, ANYTHING, ANYTHING)
@example("CartPole-v1", "workers", "threads")
@example(3, None, None)
def test_environments_take_anything(env: Any, option: Any, value: Any) -> None:
    options = {option: value} if isinstance(option, str) and option else {}
    holds(lambda: sl.gymnasium(env, **options))
