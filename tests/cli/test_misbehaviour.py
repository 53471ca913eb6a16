"""Environments that misbehave: each a line that names the environment, the step and what to do; the
program always ends, and leaves no process behind."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from commands import refused
from host_probes import FAULTS, Quiet, Simulated, Unruly, pool_of

import slackline as sl
from slackline import cli
from slackline.envs.host import EnvironmentFailed, WatchedPool, Worker
from slackline.errors import SlacklineError

TESTS = Path(__file__).parents[1]
TINY = ["--hyper.num-envs", "2", "--hyper.num-steps", "8", "--hyper.minibatches", "1"]
TINY += ["--hyper.epochs", "1", "--steps", "64", "--method", "single"]


def named(**options: Any) -> str:
    """The word for an environment with options."""
    return "host_probes:Unruly?" + "&".join(f"{name}={value}" for name, value in options.items())


def play(pool: WatchedPool, steps: int) -> None:
    pool.reset()
    for _ in range(steps):
        pool.step(np.zeros(2, int))


@pytest.fixture(autouse=True)
def _be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKLINE_TIMEOUT", "1.5")


@pytest.mark.parametrize("place", ["made", "reset", "step"])
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("hangs", "took longer than 1.5 s and was given up (the variable SLACKLINE_TIMEOUT sets"),
        ("raises", "RuntimeError: the robot fell over"),
        ("exits", "SystemExit: 3"),
        ("interrupts", "KeyboardInterrupt: "),
    ],
)
def test_wherever_it_fails_one_line_says_so(
    place: str, fault: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    said = refused(capsys, "train", named(place=place, fault=fault), *TINY, "--out", out)
    when = {"made": "being made " if fault == "hangs" else "cannot be made (", "reset": "a reset "}
    assert said.startswith(f'error: host_probes:Unruly?place="{place}"&fault="{fault}": ')
    assert when.get(place, "step 4 ") in said
    assert says in said
    assert said.endswith("(--traceback shows where)")


def test_all_of_the_users_error_is_shown_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SLACKLINE_TRACEBACK", "1")
    for fault, line in (("raises", "raise RuntimeError"), ("hangs", "time.sleep(30.0)")):
        words = ["train", named(place="reset", fault=fault), *TINY, "--out", str(tmp_path / fault)]
        assert cli.run(words) == 2
        said = capsys.readouterr().err
        assert "host_probes.py" in said
        assert line in said
        assert said.splitlines()[-1].startswith("error: host_probes:Unruly")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("nan", "an observation that is not finite (nan at entry 0 of environment 0); an episode"),
        ("infinite", "an observation that is not finite (-inf at entry 1 of environment 0)"),
        ("shape", "returned an observation of shape (3,); its observation_space says (2,)"),
        ("ragged", "returned an observation whose rows have different lengths"),
        ("words", "returned an observation of <U1; its observation_space says float32"),
        ("complex", "returned an observation of complex128; its observation_space says float32"),
        ("nothing", "raised ValueError: "),
        ("reward nan", "a reward that is not finite (nan of environment 0, as float32)"),
        ("reward infinite", "a reward that is not finite (inf of environment 0"),
        ("reward huge", "a reward that is not finite (1e+39 of environment 0, as float32)"),
        ("reward nothing", "a reward that is not finite (nan of environment 0"),
        ("reward word", "raised ValueError: could not convert string to float: 'good'"),
        ("reward array", "raised ValueError: "),
        ("done array", "raised ValueError: "),
        ("info", "raised TypeError: its info is of type int, not a dict"),
        ("too few", "raised ValueError: not enough values to unpack (expected 5, got 3)"),
        ("no tuple", "raised TypeError: cannot unpack non-iterable NoneType"),
    ],
)
def test_what_a_step_must_not_return_is_named(fault: str, says: str) -> None:
    """Two environments, whose third step is wrong."""
    assert fault in FAULTS
    pool = pool_of(sl.gymnasium(Unruly, place="step", fault=fault), num=2)
    pool.reset()
    for _ in range(2):
        pool.step(np.zeros(2, int))
    with pytest.raises(EnvironmentFailed) as failure:
        pool.step(np.zeros(2, int))
    said = str(failure.value)
    assert said.startswith(f'host_probes:Unruly?place="step"&fault="{fault}": step 4 ')
    assert says in said
    assert "\n" not in said
    pool.close()


@pytest.mark.parametrize("place", ["reset", "step", "made"])
@pytest.mark.parametrize("fault", ["other actions", "other observations"])
def test_a_space_that_changes_is_named(place: str, fault: str) -> None:
    """In the first reset, in a step (and noticed when the next episode begins), or in some of those
    that are made."""
    env = sl.gymnasium(Unruly, place=place, fault=fault)
    if place == "made":
        pool_of(env, num=2).close()  # the same in all of them
        return
    pool = pool_of(env, num=2)
    with pytest.raises(EnvironmentFailed, match=rf"changed the {fault[6:-1]}_space from .* to "):
        play(pool, 8)
    pool.close()


def test_environments_that_are_made_differently_are_named() -> None:
    """The one that spaces are read from has others than those that are played."""
    sizes = iter([2, 3, 3])

    def make() -> Any:
        env = Unruly()
        size = next(sizes)
        env.observation_space = gym.spaces.Box(-1.0, 1.0, (size,), np.float32)
        return env

    with pytest.raises(EnvironmentFailed, match=r"make: being made changed its spaces: now they"):
        pool_of(sl.gymnasium(make), num=2)


def test_an_environment_that_cannot_be_closed_costs_no_more_than_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Once after its spaces were read, once after the training, which is complete."""
    out = str(tmp_path / "run")
    assert cli.run(["train", named(place="close", fault="hangs"), *TINY, "--out", out]) == 0
    assert f"kept in {out}" in capsys.readouterr().out
    assert [": being closed took longer than 1.5 s" in said for said in caplog.messages] == [
        True,
        True,
    ]


@pytest.mark.filterwarnings("ignore:.*ERROR")
@pytest.mark.parametrize(
    ("place", "fault", "says"),
    [
        ("step", "hangs", "step 4 took longer than 1.5 s"),
        ("reset", "hangs", "a reset took longer"),
        ("close", "hangs", None),
        ("step", "dies", r"step 4 ended its process \(SIGKILL\); its code or a library"),
        ("step", "leaves", r"step 4 ended its process \(exit code 0\)"),
    ],
)
def test_no_process_of_an_environments_outlives_it(
    place: str, fault: str, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACKLINE_TIMEOUT", "300")  # to start processes on a busy machine
    before = set(multiprocessing.active_children())
    env = sl.gymnasium(Quiet, workers="async", place=place, fault=fault)
    pool = pool_of(env, num=2)
    processes = set(multiprocessing.active_children()) - before
    assert len(processes) == 2
    pool._watch._timeout = 1.5
    if says is None:
        pool.reset()
    else:
        with pytest.raises(EnvironmentFailed, match=says):
            play(pool, 3)
    pool.close()
    for process in processes:
        process.join(timeout=5.0)
        assert process.exitcode is not None


ORPHANS = """
import os, sys, time
import numpy as np
sys.path.insert(0, {tests!r})
from host_probes import Quiet, pool_of
import multiprocessing
import slackline as sl

if __name__ == "__main__":
    pool = pool_of(sl.gymnasium(Quiet, workers="async", place="step", fault="hangs", at=1), num=2)
    pool.reset()
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    pool.step(np.zeros(2, int))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command as a user gives it, in a process of its own."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    quick = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", "slackline.cli", *words],
        cwd=cwd,
        env=os.environ | quick | variables,
        capture_output=True,
        text=True,
        timeout=300,  # or it never ends
        check=False,
    )


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks /proc who is alive")
def test_processes_end_with_their_parent_however_it_ends(tmp_path: Path) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS.format(tests=str(TESTS)))
    patient = os.environ | {"SLACKLINE_TIMEOUT": "300"}
    child = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=patient
    )
    assert child.stdout is not None
    processes = list(map(int, child.stdout.readline().split()))
    assert len(processes) == 2
    assert all(map(alive, processes))
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    for _ in range(100):
        if not any(map(alive, processes)):
            return
        time.sleep(0.1)
    raise AssertionError("there are orphans")


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        ("crashes", -signal.SIGSEGV, "a reset ended the whole program: its code or a library"),
        ("leaves", 0, "a reset ended the whole program"),
        ("holds", -signal.SIGKILL, "a reset holds the whole program for longer than"),
    ],
)
def test_what_takes_the_program_down_is_named(
    fault: str, code: int, says: str, tmp_path: Path
) -> None:
    done = run("train", named(place="reset", fault=fault), *TINY, cwd=tmp_path)
    assert done.returncode == code
    for _ in range(50):  # it is another process that says so, if only a moment later
        if says in done.stderr:
            break
        time.sleep(0.1)
    assert re.search(rf'^error: host_probes:Unruly\?place="reset"&fault="{fault}": ', done.stderr)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def simulators(folder: Path) -> list[int]:
    return list(map(int, (folder / "simulators").read_text().split()))


def insist_that_none_is_left(pids: list[int]) -> None:
    assert len(pids) >= 3, "one to read the spaces, two to train"
    deadline = time.monotonic() + 20.0
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, "there are orphans"
        time.sleep(0.1)


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks /proc who is alive")
@pytest.mark.parametrize("fault", ["hangs", "raises", "crashes", "holds"])
def test_no_simulator_outlives_a_command(fault: str, tmp_path: Path) -> None:
    word = named(place="step", fault=fault).replace("Unruly", "Simulated")
    done = run("train", word, *TINY, cwd=tmp_path)
    assert done.returncode != 0
    insist_that_none_is_left(simulators(tmp_path))


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks /proc who is alive")
def test_no_simulator_of_what_hangs_is_left_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of others in the same process are left alone."""
    monkeypatch.chdir(tmp_path)
    other = subprocess.Popen(["sleep", "300"])
    pool = pool_of(sl.gymnasium(Simulated, place="step", fault="hangs"), num=2)
    with pytest.raises(EnvironmentFailed, match=r"took longer than 1\.5 s"):
        play(pool, 3)
    insist_that_none_is_left(simulators(tmp_path))
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.parametrize("place", ["reset", "step"])
def test_what_hangs_is_told_once(place: str, tmp_path: Path) -> None:
    done = run("train", named(place=place, fault="hangs"), *TINY, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "took longer than 1.5 s and was given up" in line


def test_what_it_prints_is_not_the_commands_output(tmp_path: Path) -> None:
    """And a thread that it leaves behind does not keep the command from ending."""
    (tmp_path / "chatty.py").write_text(
        "print('hello from its module')\nfrom host_probes import Unruly\n"
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9999.0,)).start()\n"
    )
    word = 'chatty:Unruly?place="reset"&fault="prints"'
    done = run("train", word, *TINY, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0
    first, second = done.stdout.splitlines()
    assert first.startswith("trained single on chatty:Unruly")
    assert second.startswith("next: slackline adapt run --env ")
    for greeting in ("hello from its module", "hello from the robot", "hello from its library"):
        assert greeting in done.stderr


def test_from_python_its_prints_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert not Worker.prints_to_stderr
    pool = pool_of(sl.gymnasium(Unruly, place="reset", fault="prints"), num=1)
    pool.reset()
    pool.close()
    assert "hello from the robot" in capsys.readouterr().out


def test_describing_names_what_is_wrong_in_python_too() -> None:
    with pytest.raises(SlacklineError, match=r"Unruly.*: being made took longer than 1.5 s"):
        sl.gymnasium(Unruly, place="made", fault="hangs")
