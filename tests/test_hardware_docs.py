"""The scripts of docs/hardware.md as printed: the robot falls and hangs, messages are lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from documents import blocks

import slackline as sl

HERE = Path(__file__).parent
TEXT = (HERE.parent / "docs" / "hardware.md").read_text(encoding="utf-8")
LINE = HERE / "subspace" / "earlier" / "lop-two-seeds.safetensors"
BUDGET, PATIENCE = 8, 0.4

ROBOT = """
import time
from pathlib import Path

import numpy as np

DIARY = Path("diary.txt")


def run_episode(policy):
    '''A pole that falls, and hangs for a while in its third episode.'''
    number = len(DIARY.read_text().split()) if DIARY.exists() else 0
    time.sleep(0.05)
    if number == 2:
        time.sleep(2.0 * PATIENCE)
    random = np.random.default_rng(number)
    angle, speed = random.normal(size=2) * 0.1
    for step in range(100):
        push = 2 * policy([0.0, 0.0, angle, speed]) - 1
        speed += 0.05 * (3.0 * angle + push)
        angle += 0.05 * speed
        if abs(angle) > 0.5:
            break
    with DIARY.open("a") as diary:
        diary.write(f"{step + 1}\\n")
    return step + 1.0
"""


def scripts() -> dict[str, str]:
    """By name, what the document shows."""
    codes = blocks(TEXT, "python")
    named = [(re.match(r"# (\w+\.py)", code), code) for code in codes]
    return {name[1]: code for name, code in named if name}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(LINE, "line.safetensors")
    written = scripts()
    lab = written["lab.py"].replace("BUDGET = 20 ", f"BUDGET = {BUDGET} ")
    lab = lab.replace("PATIENCE = 120.0 ", f"PATIENCE = {PATIENCE} ").replace(
        "TRIES = 5", "TRIES = 30"
    )
    Path("lab.py").write_text(lab)
    Path("robot.py").write_text(written["robot.py"])
    Path("my_robot.py").write_text(ROBOT.replace("PATIENCE", str(PATIENCE)))


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


@contextmanager
def bad_radio(robot: int) -> Iterator[int]:
    """A port that passes datagrams on to the robot's and back, and loses every third of them."""
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    near, far = ends
    near.bind(("127.0.0.1", 0))
    far.bind(("127.0.0.1", 0))
    for end in ends:
        end.settimeout(0.05)
    passed, lab, over = [0], [("", 0)], threading.Event()

    def carry(here: socket.socket, there: socket.socket, outwards: bool) -> None:
        while not over.is_set():
            try:
                data, sender = here.recvfrom(65536)
            except (TimeoutError, ConnectionError):
                continue
            if outwards:
                lab[0] = sender
            passed[0] += 1
            if passed[0] % 3:
                there.sendto(data, ("127.0.0.1", robot) if outwards else lab[0])

    carriers = [
        threading.Thread(target=carry, args=(near, far, True)),
        threading.Thread(target=carry, args=(far, near, False)),
    ]
    for carrier in carriers:
        carrier.start()
    try:
        yield near.getsockname()[1]
    finally:
        over.set()
        for carrier in carriers:
            carrier.join()
        for end in ends:
            end.close()


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A script, ended at the latest when the block is left."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def played() -> list[str]:
    diary = Path("diary.txt")
    return diary.read_text().split() if diary.exists() else []


def wait_for(episodes: int) -> None:
    deadline = time.monotonic() + 30.0
    while len(played()) < episodes:
        assert time.monotonic() < deadline, "the robot stands still"
        time.sleep(0.01)


def test_a_robot_that_fails_in_every_way_is_adapted_to() -> None:
    port = free_port()
    with ExitStack() as stack:
        radio = str(stack.enter_context(bad_radio(port)))
        lab = ["lab.py", "monday", "127.0.0.1", radio]
        with running("robot.py", str(port)):
            with running(*lab):
                wait_for(4)  # among them the one that hung; then the lab's computer dies
            with running(*lab):
                wait_for(6)
        # The robot's computer died, too, and comes back.
        stack.enter_context(running("robot.py", str(port)))
        done = subprocess.run(
            [sys.executable, *lab], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "best z = " in done.stdout
    kept = json.loads(Path("monday.json").read_text())
    assert len(kept["returns"]) == BUDGET
    assert None not in kept["returns"]
    assert BUDGET <= len(played()) <= BUDGET + 1, "only what the robot forgot was run again"
    assert min(map(int, played())) < 100, "it fell, and went on"
    line = sl.load("line.safetensors")
    assert sl.load_adapter("monday.json", line).best().z.shape == (2,)


def test_a_robot_that_is_gone_ends_the_script_and_keeps_the_question() -> None:
    patient = Path("lab.py").read_text()
    Path("lab.py").write_text(patient.replace("TRIES = 30", "TRIES = 1"))
    words = [sys.executable, "lab.py", "tuesday", "127.0.0.1", str(free_port())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "the robot does not answer; start this again when it does" in done.stderr
    kept = json.loads(Path("tuesday.json").read_text())
    assert kept["returns"] == [None]


def test_the_lines_for_a_memory_stick_run_as_printed() -> None:
    line = sl.load("line.safetensors")
    line.adapter(budget=3).save("monday.json")
    shown = [code for code in blocks(TEXT, "python") if code.startswith("adapter = ")]
    assert len(shown) == 2
    for block in shown:
        exec(block, {"sl": sl, "line": line})
    adapter = sl.load_adapter("monday.json", line)
    assert adapter.remaining == 2
    assert adapter.worst == 183.5


def test_the_sketch_of_an_episode_stops_the_motors_whatever_happens() -> None:
    stopped, names = [], {"reset_and_wait": lambda: 0.0, "stop_motors": lambda: stopped.append(1)}
    exec(scripts()["my_robot.py"], names)
    run_episode = names["run_episode"]
    names["move"] = lambda action: (action + 1.0, 2.0, action >= 3.0)  # type: ignore[assignment]
    assert run_episode(lambda seen: seen) == 8.0  # type: ignore[operator]
    names["move"] = lambda _: 1 / 0  # type: ignore[assignment]
    with pytest.raises(ZeroDivisionError):
        run_episode(lambda seen: seen)  # type: ignore[operator]
    assert stopped == [1, 1]


def test_stable_baselines_evaluates_a_policy_of_a_line() -> None:
    """Its `evaluate_policy` asks for no more than `predict`."""
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    gymnasium = pytest.importorskip("gymnasium")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    line = sl.load("line.safetensors")
    env = monitor.Monitor(gymnasium.make("CartPole-v1"))
    mean, _ = evaluation.evaluate_policy(line.at(0.3), env, n_eval_episodes=3)
    assert np.isfinite(mean)
    assert mean >= 1.0
