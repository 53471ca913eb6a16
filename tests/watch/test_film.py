"""What is shown, for how long, and what is said about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackline.drawing.sheet import styled
from slackline.envs.cartpole import CartPoleState
from slackline.errors import SlacklineError
from slackline.suites.resolve import suite
from slackline.watch.episodes import Episodes
from slackline.watch.files import check_target, write_film, write_strip
from slackline.watch.film import FilmSheet, Timing
from slackline.watch.scenes import painter_of
from slackline.watch.stage import is_seen
from slackline.watch.strip import MOMENTS, moments
from slackline.watch.watched import Watched, step_seconds

pytest.importorskip("matplotlib")


def watched_carts(lengths: list[int], horizon: int = 40, steps: int = 20) -> Watched:
    """Carts that stand until their episodes end, earning 1 a step."""
    num = len(lengths)
    still = np.zeros((horizon + 1, num), np.float32)
    drifting = still + np.linspace(0.0, 1.0, horizon + 1, dtype=np.float32)[:, None]
    leaves: Any = (drifting, still, still, still)
    rewards = (np.arange(horizon)[:, None] < np.array(lengths)[None]).astype(np.float32)
    ended = np.array([length < horizon for length in lengths])
    env = suite("cartpole").jax_env
    params = env.default_params()
    return Watched(
        title="CartPole, Train",
        change="the training environment itself",
        is_changed=False,
        who="Line of policies, seed 0",
        labels=tuple(f"z = {k}" for k in range(num)),
        episodes=Episodes(CartPoleState(*leaves), rewards, np.array(lengths), ended),
        paint=painter_of(env, params, params),
        steps=steps,
        seconds=0.02,
    )


def test_the_best_of_the_whole_episode_is_marked_even_if_it_is_shown_in_part() -> None:
    watched = watched_carts([40, 30, 12])
    np.testing.assert_array_equal(watched.best, [True, False, False])
    assert [watched.name(k) for k in range(3)] == ["z = 0  best", "z = 1", "z = 2"]
    assert watched.returns() == ["40.0", "30.0", "12.0"]
    assert watched.returns(20) == ["20.0", "20.0", "12.0"]
    assert watched.meaning(0) == "return so far · 40.0 in all"
    assert watched.meaning(2) == "return"
    assert "the first 20 of 40 steps shown" in watched.explanation
    assert "best return of the whole episode" in watched.explanation


def test_ties_share_the_mark_and_where_all_tie_there_is_none() -> None:
    np.testing.assert_array_equal(watched_carts([40, 40, 12]).best, [True, True, False])
    np.testing.assert_array_equal(watched_carts([40, 40]).best, [False, False])
    np.testing.assert_array_equal(watched_carts([40]).best, [False])
    assert "Framed" not in watched_carts([40, 40]).explanation


def test_nothing_is_shown_after_the_last_end() -> None:
    watched = watched_carts([7, 12])
    assert watched.shown == 12
    assert not watched.partial
    assert "shown to the end" in watched.explanation
    assert watched.over(0, 7)
    assert not watched.over(0, 6)
    assert watched.picture(0, 6).shapes[0].fill != watched.picture(0, 7).shapes[0].fill


def test_returns_are_shown_in_the_unit_of_the_suite() -> None:
    scaled = replace(watched_carts([40, 20]), scale=-10.0)
    assert scaled.returns() == ["−400.0", "−200.0"]
    assert "Returns × -10" in scaled.explanation


def test_films_play_in_real_time_where_that_can_be_watched() -> None:
    assert Timing.of(0.05, None, None) == (1, 20.0)  # Brax, Pendulum
    assert Timing.of(0.02, None, None) == (2, 25.0)  # CartPole
    assert Timing.of(0.2, None, None) == (1, 10.0)  # Acrobot, twice as fast
    assert Timing.of(None, None, None) == (1, 10.0)
    assert Timing.of(0.05, 2, None) == (2, 10.0)
    assert Timing.of(0.02, None, 10.0) == (5, 10.0)
    assert Timing(3, 20.0).steps(10) == [0, 3, 6, 9, 10]
    assert Timing(3, 20.0).steps(0) == [0]
    assert Timing(1, 20.0).durations(3) == [50, 50, 1600]


def test_seconds_of_a_step() -> None:
    for name, seconds in (("cartpole", 0.02), ("acrobot", 0.2), ("maze2d", None)):
        env = suite(name).jax_env
        assert step_seconds(env, env.default_params()) == seconds


def test_moments_of_the_strip_begin_and_end_with_the_film() -> None:
    assert moments(50) == [0, 10, 20, 30, 40, 50]
    assert moments(0) == [0] * MOMENTS


def test_frames_are_of_one_size_and_differ_only_where_things_move() -> None:
    watched = watched_carts([40, 12])
    with styled():
        film = FilmSheet(watched)
        first, second = film.draw(0), film.draw(5)
        again = film.draw(0)
    np.testing.assert_array_equal(first, again)
    assert first.shape == second.shape
    assert first.dtype == np.uint8
    changed = (first != second).any(axis=-1)
    assert 0 < changed.mean() < 0.1


@pytest.mark.parametrize("num", [1, 2, 4, 5, 10])
def test_any_number_of_policies_fits(num: int, tmp_path: Path) -> None:
    watched = watched_carts([40, *([30] * (num - 1))], steps=4)
    path = write_film(watched, Timing(2, 25.0), tmp_path / "new" / "w.gif")
    strip = write_strip(watched, path)
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as film, image.open(strip) as still:
        assert film.n_frames == 3
        assert 450 < film.width < 1300
        assert still.width == 1600
    assert sorted(p.name for p in path.parent.iterdir()) == ["w.gif", "w.png"]


def test_a_film_of_too_many_frames_is_refused(tmp_path: Path) -> None:
    watched = watched_carts([1000], horizon=1000, steps=1000)
    with pytest.raises(SlacklineError, match=r"1001 frames; .* at most 600: raise every"):
        write_film(watched, Timing(1, 20.0), tmp_path / "w.gif")
    assert list(tmp_path.iterdir()) == []


def test_what_is_outside_the_window_is_not_drawn() -> None:
    window = (0.0, 0.0, 2.0, 1.0)
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    assert is_seen(square, window)
    assert is_seen(square * 10 - 5, window)
    assert not is_seen(square + np.array([[2.5, 0]]), window)
    assert not is_seen(square - np.array([[0, 1.5]]), window)


def test_unusable_targets_are_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder.gif").mkdir()
    for path, problem in {
        "w.avi": "unknown kind of film '.avi'; .*known: .gif, .webp, .apng",
        "w": "unknown kind of film 'w'",
        "folder.gif": "is a folder",
        "file/w.gif": "cannot be written",
        "file/deeper/w.gif": "cannot be written",
    }.items():
        with pytest.raises(SlacklineError, match=problem):
            check_target(tmp_path / path)
    check_target(tmp_path / "not" / "there" / "yet.webp")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.gif"]
