"""A run folder whose writer is stopped at any call to the file system goes on as if it never was.

The training of the first test is arithmetic, so every call has its turn; the second is a slice of
`make kill`: real commands, stopped at a few calls.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from slackline.io.tensors import write_tensors
from slackline.store.run import RunFolder
from slackline.suites import builtin
from slackline.training import configure, prepare

ITERATIONS = 4
KILL = Path(__file__).parents[2] / "benchmarks" / "kill.py"


@pytest.fixture(scope="module")
def kill() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kill", KILL)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(out: Path, config: Any) -> None:
    """Write what a training writes, in the same order."""
    folder = RunFolder(out)
    with folder.writing():
        prepare(folder, config, resume=True)
        if folder.finished():
            return
        state = {"x": np.ones(3, np.float32)}
        found = folder.load_checkpoint(state)
        state, iteration = (found[0], found[1]) if found else (state, 0)
        folder.rewind_progress(iteration)
        while iteration < ITERATIONS:
            iteration += 1
            state = {"x": state["x"] * np.float32(1.1)}
            folder.append_progress({"iteration": iteration, "steps": iteration, "return": [1.0]})
            folder.save_checkpoint(state, iteration, 0.0)
        write_tensors(folder.subspace_file, state, {})
        folder.finish(0.0)


def test_stopped_at_any_call_it_ends_the_same(kill: ModuleType, tmp_path: Path) -> None:
    config = configure(builtin("cartpole"), "lop", seeds=(1, 2))
    with kill.standing_clock():
        insist_on_the_same(kill, config, tmp_path)


def insist_on_the_same(kill: ModuleType, config: Any, tmp_path: Path) -> None:
    with kill.disk() as counted:
        train(tmp_path / "whole", config)
    whole = kill.contents(tmp_path / "whole")
    assert RunFolder(tmp_path / "whole").finished()
    assert len(whole) == 4, "no lock, nothing half-written"
    assert counted.calls > 50
    for call in range(1, counted.calls + 1):
        out = tmp_path / str(call)
        with kill.disk(call):
            train(out, config)
            raise AssertionError(f"it outlived call {call}")
        train(out, config)
        assert kill.differences(kill.contents(out), whole) == [], f"stopped at call {call}"


def test_commands_that_are_stopped_and_given_again_end_the_same() -> None:
    quick = os.environ | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    words = [sys.executable, str(KILL), "--trials", "20", "--seed", "5"]
    done = subprocess.run(
        words, env=quick, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert [line.split()[:3] for line in told] == [
        ["5", "times", f"{verb},"] for verb in ("train", "bench", "adapt", "report")
    ]
    assert all(line.endswith(": 0 differ") for line in told)
