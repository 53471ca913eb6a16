"""What goes wrong first with an environment of one's own, and what the command line says then."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from commands import refused, told

from slackline.envs import envpool, gymnasium
from slackline.envs.advice import advice

TINY = ["--hyper.num-envs", "2", "--hyper.num-steps", "16", "--hyper.minibatches", "2"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Pendulum-v1", "gym:Pendulum-v1"),
        ("pendulum-v1", "gym:Pendulum-v1"),
        ("ant-v5", "gym:Ant-v5"),
        ("Pendulum-v1?g=5.0", "gym:Pendulum-v1?g=5.0"),
    ],
)
@pytest.mark.parametrize("verb", ["train", "tune", "bench"])
def test_an_id_alone_is_answered_by_its_word(
    verb: str, name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, verb, name)
    assert said == f"error: unknown suite {name!r}; did you mean {meant}?"


def test_ids_of_envpool_are_known_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Library:
        @staticmethod
        def list_all_envs() -> list[str]:
            return ["Pong-v5"]

    monkeypatch.setattr(envpool, "library", Library)
    assert "did you mean envpool:Pong-v5?" in refused(capsys, "train", "Pong-v5")
    assert "(known: cartpole, " in refused(capsys, "train", "Nowhere-v0")


def test_without_gymnasium_ids_lead_to_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.setattr("slackline.suites.resolve.words.find_spec", lambda _: None)
    assert "did you mean gym:Swing-v0?" in refused(capsys, "train", "Swing-v0")
    said = refused(capsys, "train", "gym:Swing-v0")
    assert said.endswith("pip install 'slackline-rl[gymnasium]'")


class DependencyNotInstalled(Exception):  # noqa: N818
    """As Gymnasium's."""


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            DependencyNotInstalled(
                'MuJoCo is not installed, run `pip install "gymnasium[mujoco]"`'
            ),
            "needs a package that is not installed: pip install 'gymnasium[mujoco]'",
        ),
        (
            DependencyNotInstalled(
                "Box2D is not installed, you can install it by run `pip install swig` followed by "
                '`pip install "gymnasium[box2d]"`'
            ),
            "not installed: pip install swig && pip install 'gymnasium[box2d]'",
        ),
        (
            ModuleNotFoundError("No module named 'mujoco'", name="mujoco"),
            "needs the Python module mujoco, which is not installed: pip install "
            "'gymnasium[mujoco]'",
        ),
        (
            ModuleNotFoundError("No module named 'robot_arm.sim'", name="robot_arm.sim"),
            "needs the Python module robot_arm, which is not installed",
        ),
        (ValueError("Namespace ALE not found."), "pip install ale-py, and name the environment as"),
        (RuntimeError("an OpenGL platform library has not been loaded"), "MUJOCO_GL=egl"),
        (RuntimeError("the robot fell over"), "cannot be made (RuntimeError: the robot fell over)"),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    error: Exception,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def make(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(gymnasium.library(), "make", make)
    said = refused(capsys, "train", "gym:Lander-v9")
    assert said.startswith("error: gym:Lander-v9: ")
    assert problem in said


def test_modules_that_a_users_module_needs_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_needy.py").write_text("import no_such_simulator.core\n")
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, "train", "my_needy:make")
    assert said.endswith(
        "my_needy:make: needs the Python module no_such_simulator, which is not installed"
    )
    assert "cannot import my_nowhere.sim" in refused(capsys, "train", "my_nowhere.sim:make")


@pytest.mark.parametrize(
    ("word", "sign"),
    [
        ("host_probes:OldGym", "its reset() takes no seed"),
        ("host_probes:HalfPorted", "its step() returns 4 values"),
    ],
)
def test_the_old_gym_api_is_named(
    word: str, sign: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "train", word, *TINY, "--out", str(tmp_path / "run"))
    assert f"{word}: follows the old Gym API: {sign}. " in said
    assert "(observation, reward, terminated, truncated, info)" in said
    assert "shimmy" in said


def test_a_users_own_mistake_is_not_taken_for_the_old_api() -> None:
    values = (1, 2, 3, 4)
    with pytest.raises(ValueError, match="expected 5, got 4") as raised:
        _, _, _, _, _ = values  # type: ignore[misc]
    assert advice(raised.value) == ""


SHY = """
import gymnasium as gym
import host_probes


class Shy(host_probes.HostAim):
    made = 0

    def __init__(self, target=2.0, lives={lives}):
        super().__init__(target)
        Shy.made += 1
        if Shy.made > lives:
            raise RuntimeError("no motor")
"""


def test_a_run_that_failed_at_once_does_not_block_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spaces are read from a first one, which this environment makes; then it fails."""
    monkeypatch.chdir(tmp_path)
    Path("my_shy.py").write_text(SHY.format(lives=1))
    train = ["train", "my_shy:Shy", "--steps", "64", *TINY, "--out", "run"]
    assert "raised RuntimeError: no motor" in refused(capsys, *train)
    assert "is not trained to the end yet" in refused(capsys, "adapt", "run")
    sys.modules["my_shy"].Shy.made = -99
    assert "kept in run" in told(capsys, *train, "--hyper.epochs", "1")
    assert "already holds a run" in refused(capsys, *train)
