"""Hopeless episodes are stopped early, what that saves is counted, and nothing is lost by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import by_hand, fake_line

from slackline.adapt.asktell import AskTell, load_adapter
from slackline.errors import SlacklineError
from slackline.methods.latent import Interval

LINE = Interval()
LENGTH = 100


def play(adapter: AskTell, reward_at: Any) -> tuple[float, int]:
    """(return told, steps played) of the next episode, whose every step pays reward_at(z)."""
    episode = adapter.episode()
    for step in range(1, LENGTH + 1):
        if episode.on_step(reward_at(float(episode.z[0])), done=step == LENGTH):
            return episode.end(), step
    return episode.end(), LENGTH


def test_an_episode_far_behind_the_best_is_stopped_and_told_at_its_best() -> None:
    """Near 0.5 a step pays 1, elsewhere −1, so that z's elsewhere end at −100 beside 100."""
    adapter = by_hand(LINE, "nested", 12)
    played = [play(adapter, lambda z: 1.0 if abs(z - 0.5) < 0.3 else -1.0) for _ in range(12)]
    stopped = [(told, steps) for told, steps in played if steps < LENGTH]
    assert stopped, "three standard deviations behind at the latest"
    for told, steps in stopped:
        assert told == -steps + (LENGTH - steps), "as if it had then gone on as the best one did"
    assert adapter.saved_steps == sum(LENGTH - steps for _, steps in played)
    assert abs(float(adapter.best().z[0]) - 0.5) < 0.3


@pytest.mark.parametrize("done", [True, False])
def test_an_episode_that_ends_by_itself_is_told_as_it_was(done: bool) -> None:
    """A robot that falls just when it would be stopped is not credited with what it never did."""
    adapter = by_hand(LINE, "nested", 12)
    for _ in range(3):
        play(adapter, lambda _: 1.0)
    episode = adapter.episode()
    assert not episode.on_step(1.0)
    assert episode.on_step(-1000.0, done=done) == (not done), "once over, nothing is stopped"
    assert episode.end() == (-999.0 if done else -999.0 + LENGTH - 2)
    assert adapter.saved_steps == (0 if done else LENGTH - 2)


def test_the_first_episode_and_equals_are_played_to_the_end() -> None:
    adapter = by_hand(LINE, "bayes", 6)
    assert [play(adapter, lambda _: 0.5) for _ in range(6)] == [(50.0, LENGTH)] * 6
    assert adapter.saved_steps == 0


def test_stopping_goes_on_after_a_crash(tmp_path: Path) -> None:
    line = fake_line(LINE)
    adapter = AskTell(by_hand(LINE, "nested", 8).adapter, line, 8)
    play(adapter, lambda z: z)
    again = load_adapter(adapter.save(tmp_path / "state.json"), line)
    np.testing.assert_array_equal(again.course.partial, np.cumsum(np.full(LENGTH, 0.5)))
    assert again.saved_steps == 0


@pytest.mark.parametrize(
    "course",
    [
        {},
        {"partial": [[1.0]], "saved_steps": 0},
        {"partial": ["a"], "saved_steps": 0},
        {"partial": [1e300], "saved_steps": 0},
        {"partial": [], "saved_steps": -1},
        {"partial": [], "saved_steps": 0.5},
        [],
    ],
)
def test_courses_that_no_file_may_have(course: Any, tmp_path: Path) -> None:
    line = fake_line(LINE)
    path = AskTell(by_hand(LINE, "nested", 8).adapter, line, 8).save(tmp_path / "state.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"course": course}))
    with pytest.raises(SlacklineError, match="unusable state"):
        load_adapter(path, line)


def test_steps_that_cannot_be_counted() -> None:
    adapter = by_hand(LINE, "nested", 3)
    with pytest.raises(SlacklineError, match="margin"):
        adapter.episode(margin=0.0)
    assert adapter.remaining == 3, "nothing was asked for"
    episode = adapter.episode()
    with pytest.raises(SlacklineError, match="reward"):
        episode.on_step(float("nan"))
    with pytest.raises(SlacklineError, match="no step"):
        episode.end()
