"""Procgen's games through EnvPool, with Qt from a pip package."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from slackline.envs import procgen
from slackline.envs.procgen import load_procgen, load_qt
from slackline.errors import SlacklineError

envpool: Any = pytest.importorskip("envpool", reason="EnvPool is not installed")


def pool(num_envs: int = 32, **options: Any) -> Any:
    """EnvPool was imported first, and has found no Qt unless the machine has its own."""
    return envpool.make(
        *("FruitbotEasy-v0", "gymnasium"), num_envs=num_envs, num_threads=1, seed=0, **options
    )


def first_frames(**options: Any) -> dict[int, bytes]:
    """The first picture of each level that turns up, by the level's number."""
    env = pool(**options)
    found: dict[int, bytes] = {}
    for _ in range(2):
        frames, info = env.reset()
        for level, frame in zip(info["level_seed"], frames, strict=True):
            assert found.setdefault(int(level), frame.tobytes()) == frame.tobytes()
    env.close()
    return found


@pytest.mark.usefixtures("procgen_games")
def test_fruitbot_runs() -> None:
    env = pool(4)
    frames, _ = env.reset()
    for action in range(15):
        frames, rewards, terminated, truncated, _ = env.step(np.full(4, action, np.int32))
        assert (frames.shape, frames.dtype) == ((4, 3, 64, 64), np.uint8)
        assert rewards.shape == terminated.shape == truncated.shape == (4,)
        assert np.isfinite(rewards).all()
    assert len(np.unique(frames)) > 10
    env.close()


@pytest.mark.usefixtures("procgen_games")
def test_levels_are_those_asked_for() -> None:
    """A level's number decides its first picture; two ranges have no level in common."""
    some = first_frames(num_levels=10, start_level=0)
    others = first_frames(num_levels=10, start_level=1000)
    assert set(some) <= set(range(10))
    assert set(others) <= set(range(1000, 1010))
    assert min(len(some), len(others)) > 5
    assert not set(some.values()) & set(others.values())


@pytest.mark.usefixtures("procgen_games")
def test_one_level_is_one_level() -> None:
    assert set(first_frames(num_levels=1, start_level=7)) == {7}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "envpool.procgen", None)
        with pytest.raises(SlacklineError, match=r"need EnvPool: .*slackline-rl\[envpool\]"):
            load_procgen()
    if not sys.platform.startswith("linux"):
        return
    with monkeypatch.context() as patch:
        patch.setattr(procgen, "LIBRARIES", ("libQt5Nowhere.so.5",))
        with pytest.raises(SlacklineError, match=r"PyQt5-Qt5 is not installed; .*\[envpool\]"):
            load_qt()
    with monkeypatch.context() as patch:
        patch.setattr(procgen, "LIBRARIES", ("libQt5Core.so.5", "libQt5Nowhere.so.5"))
        with pytest.raises(SlacklineError, match=r"libQt5Nowhere.so.5 cannot be loaded .*libgl1"):
            load_qt()
    with monkeypatch.context() as patch:
        patch.setattr(procgen.importlib.util, "find_spec", lambda _: None)
        with pytest.raises(SlacklineError, match="PyQt5-Qt5 is not installed"):
            load_qt()
