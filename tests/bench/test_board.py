"""Where a grid stands, and what it costs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from slackline.bench.board import Board
from slackline.bench.costs import ADAPTING, TRAINING, expected, measured, shipped, spoken
from slackline.bench.engines.base import Began, Ended, Ticked, TriedAgain
from slackline.bench.grid import Product
from slackline.cli.grid_view import view
from slackline.progress import Tick
from slackline.store.run import RunFolder
from slackline.suites import builtin


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_board_counts_and_reckons() -> None:
    clock = Clock()
    board = Board({"a": 10.0, "b": 10.0, "c": 20.0, "d": None}, clock=clock)
    assert board.seconds_left() == pytest.approx(10 + 10 + 20 + 40 / 3)
    board.tell(Began("a"))
    board.tell(Ticked("a", Tick(50, 100, 1, 3.0, 1.0)))
    board.tell(Ticked("a", Tick(70, 100, 1, 3.0, 2.0)))
    assert board.running["a"].share == 0.7
    assert board.running["a"].speed == 20.0
    clock.now = 20.0
    board.tell(Ended("a"))  # twice as long as was expected, so the others will be, too
    board.tell(Began("b"))
    assert (board.done, board.waiting) == (["a"], 2)
    average = (20 + 20 + 40 + 20) / 4
    assert board.seconds_left() == pytest.approx(20 + 40 + average)
    clock.now = 25.0
    board.tell(TriedAgain("b", "no luck"))
    assert board.running["b"].attempts == 2
    assert board.seconds_left() == pytest.approx(15 + 40 + average)
    board.tell(Ended("b", "no luck"))
    assert board.failed == {"b": "no luck"}
    assert board.seconds_left() == pytest.approx(40 + average)


def test_what_two_workers_share_takes_half_as_long() -> None:
    assert Board({"a": 10.0, "b": 30.0}, at_once=2).seconds_left() == 20.0
    assert Board({"a": 10.0}, at_once=2).seconds_left() == 10.0
    assert Board({"a": None}).seconds_left() is None


def test_a_cost_is_steps_by_measured_speed() -> None:
    product = Product(("cartpole",), ("lop", "cop"), seeds=2, steps=10_240, shots=(5,), episodes=3)
    lop, cop = product.cells(builtin, Path("out"))
    here = {"cartpole/paper/lop": {TRAINING: 1024.0, ADAPTING: 200.0}}
    steps = 2 * 7 * (5 * 3 + 100) * 200
    cost = expected(lop, here)
    assert cost is not None
    assert cost.seconds == pytest.approx(2 * 10_240 / 1024 + steps / 200)
    assert cost.of_this_machine
    assert expected(cop, here) == cost, "of a method that was not measured: the slowest other"
    (other,) = Product(("acrobot",), ("lop",)).cells(builtin, Path("out"))
    known = expected(other, here)
    assert known is not None
    assert not known.of_this_machine


def test_speeds_are_of_runs_that_are_kept(tmp_path: Path) -> None:
    product = Product(("cartpole",), ("lop",), seeds=2, steps=10_240)
    (cell,) = product.cells(builtin, tmp_path)
    run = RunFolder(cell.path)
    run.create(cell.config)
    assert measured([run]) == {}
    run.finish(seconds=4.0)
    run.note_adapting_speed(300, 1.5)
    assert measured([run]) == {"cartpole/paper/lop": {TRAINING: 5120.0, ADAPTING: 200.0}}


def test_the_shipped_speeds_are_those_of_the_kept_results() -> None:
    results = Path(__file__).parents[2] / "results"
    runs = [RunFolder(file.parent) for file in sorted(results.rglob("run.json"))]
    assert shipped() == measured(runs), "python benchmarks/speeds.py results --write"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (80, "80 s"),
        (90, "1.5 min"),
        (3000, "50 min"),
        (9000, "2.5 h"),
        (4e5, "4.6 days"),
    ],
)
def test_times_are_as_people_say_them(seconds: float, words: str) -> None:
    assert spoken(seconds) == words


def test_the_view_shows_the_whole_grid() -> None:
    board = Board({"ant-lop": 100.0, "ant-fan": 100.0, "ant-lc": 100.0}, clock=Clock())
    for event in (
        Began("ant-lop"),
        Ticked("ant-lop", Tick(30, 100, 2, 1234.5, 1.0)),
        Ticked("ant-lop", Tick(40, 100, 2, 1234.5, 2.0)),
        TriedAgain("ant-lop", "no luck"),
        Began("ant-fan"),
        Ended("ant-fan", "no luck"),
        Began("ant-lc"),
    ):
        board.tell(event)
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(view(board, skipped=5))
    text = console.export_text()
    for word in ("ant-lop", "40%", "20 steps/s", "return 1234", "attempt 2", "compiling"):
        assert word in text
    assert "5 of 8 cells done, 2 running, 1 failed, about 3.3 min left" in text
