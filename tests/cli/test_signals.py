"""Signals and closed pipes: a line, an exit code as shells expect it, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slackline.io.lock import LOCK

WORK = """
import hashlib, sys, time
from pathlib import Path
from slackline import cli
from slackline.cli.signals import unsaved_work
from slackline.io.lock import locked

def work(argv):
    with locked(Path("run")):
        unsaved_work("unsaved" in argv)
        print("working", flush=True)
        if "asleep" in argv:
            time.sleep(60)
        else:  # for minutes, without a moment for Python, as when a program is compiled
            hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

def run(argv, alone):
    try:
        work(argv)
    except KeyboardInterrupt as error:
        return cli.complain("interrupted", 128 + error.signum)
cli.run = run
cli.main(sys.argv[1:])
"""


def working(tmp_path: Path, how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, "train", how],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    assert os.listdir(tmp_path / "run") == [LOCK]
    time.sleep(0.3)  # from having said so to doing it
    return process


@pytest.mark.parametrize("how", ["asleep", "compiling"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_signal_ends_it_soon_with_its_own_code(tmp_path: Path, name: str, how: str) -> None:
    number = getattr(signal, name)
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as under nohup, and stays so")
    with working(tmp_path, how) as process:
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert said.startswith("interrupted")
    assert said.count("\n") == 1
    assert os.listdir(tmp_path / "run") == [], "the lock is given back"


def test_unsaved_work_is_for_the_second_signal_to_end(tmp_path: Path) -> None:
    with working(tmp_path, "unsaved") as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(1.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 143
    assert said == "interrupted; run the same command with --resume to go on\n"


SHELL = [
    ("slackline list | true", "141 0"),  # gone before anything is written
    ("slackline --version | cat", "0 0"),
    ("slackline list > /dev/full | cat", "2 0"),
    ("slackline bogus 2> /dev/full | cat", "2 0"),
    ("slackline list >&- | cat", "0 0"),
]


@pytest.mark.parametrize(("line", "codes"), SHELL)
def test_closed_and_full_outputs(tmp_path: Path, line: str, codes: str) -> None:
    if not Path("/dev/full").exists() or not Path("/bin/bash").exists():
        pytest.skip("needs bash and /dev/full")
    line = line.replace("slackline", f"{sys.executable} -m slackline.cli")
    script = f'{line} > out; echo "${{PIPESTATUS[@]}}"'
    words = ["/bin/bash", "-c", script]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == codes
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def failing(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    code = """
import sys
from slackline import cli
def run(argv, alone):
    raise RuntimeError("two\\nlines")
cli.run = run
cli.main(sys.argv[1:])
"""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env=os.environ | env,
        capture_output=True,
        text=True,
    )


def test_a_bug_is_one_line_unless_a_traceback_is_asked_for() -> None:
    done = failing("list")
    assert done.returncode == 1
    assert done.stderr == "error: RuntimeError: two lines (--traceback shows where)\n"
    for asked in (failing("list", "--traceback"), failing("list", SLACKLINE_TRACEBACK="1")):
        assert asked.returncode == 1
        assert "Traceback" in asked.stderr


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.4])
def test_ctrl_c_while_jax_traces_and_compiles(tmp_path: Path, moment: float) -> None:
    words = "train cartpole --method lop --steps 30M --devices 1 --out run"
    with subprocess.Popen(
        [sys.executable, "-m", "slackline.cli", *words.split()],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (tmp_path / "run" / "run.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(moment)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5.0  # a second, on a machine that does nothing else
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("interrupted")
