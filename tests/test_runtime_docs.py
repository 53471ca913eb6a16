"""What docs/runtime.md shows runs as it is printed."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import told
from documents import blocks

HERE = Path(__file__).parent
TEXT = (HERE.parent / "docs" / "runtime.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a run and a file; both see three or four numbers."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(HERE / "store" / "earlier" / "word", "runs/line")
    shutil.copy(HERE / "subspace" / "earlier" / "lop-two-seeds.safetensors", "line.safetensors")


def test_python() -> None:
    pytest.importorskip("onnx")
    names = {"observation": np.zeros(4), "run_episode": lambda policy: float(policy(np.ones(4)))}
    code = blocks(TEXT, "python")
    assert len(code) == 4
    exec("\n".join(code), names)
    assert Path("policy.onnx").exists()
    assert Path("line.onnx").exists()


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    lines = [line for block in blocks(TEXT, "sh") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("slackline export")]
    assert len(commands) == 3
    for command in commands:
        told(capsys, *command[1:])
    for name in ("policy.onnx", "line.onnx", "policy.h"):
        assert (Path("runs/line") / name).exists()
        assert f"runs/line/{name}" in TEXT
    assert "policy_act(" in Path("runs/line/policy.h").read_text()


def test_the_robots_packages_are_those_of_the_project() -> None:
    project = (HERE.parent / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = (line for line in TEXT.splitlines() if line.startswith("pip install 'numpy"))
    for requirement in shlex.split(line)[2:]:
        assert f'    "{requirement}",' in project
