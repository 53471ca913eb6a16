"""Films of environments outside JAX, which draw themselves, as the command line makes them."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import refused, told
from host_probes import Lit

import slackline as sl
from slackline import cli
from slackline.envs.camera import MAX_SIDE, Camera, shrunk
from slackline.errors import SlacklineError
from slackline.suites.resolve import environment
from slackline.suites.suite import TRAIN
from slackline.watch.filmed import film_episodes

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

FILE = """
env = "host_probes:Lit"
steps = 32

[[variation]]
name = "Longer"
options = { longer = 3 }

[[variation]]
name = "Elsewhere"
env = "host_probes:Lit?longer=1"

[hyper]
num_envs = 2
num_steps = 8
minibatches = 2
hidden = [4]
critic_hidden = [4]
"""
BOTH = ["--env", "host_probes:Lit", "--env", "host_probes:Lit?longer=1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lit")
    (folder / "lit.toml").write_text(FILE)
    assert cli.run(["train", str(folder / "lit.toml"), "--out", str(folder / "run")]) == 0
    return folder / "run"


def brightness(shots: np.ndarray) -> list[int]:
    return [int(shot.picture()[5, 5, 0]) for shot in shots]


def test_a_film_a_strip_and_a_table(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", str(trained), "--shots", "3"]
    line = refused(capsys, *words).split("if you trust it: ")[1]
    assert line == shlex.join(["slackline", *words, *BOTH]), "nothing that a file names is made"
    said = told(capsys, *shlex.split(line)[1:])
    assert "lit, Train" in said
    assert said.count("│ 4 ") + said.count("   4 │") == 3, "each policy took all four steps"
    with Image.open(trained / "watch-Train.gif") as film:
        assert film.n_frames == 5
        assert film.info["duration"] == 50, "at the environment's own twenty a second"
    with Image.open(trained / "watch-Train.png") as strip:
        assert min(strip.size) > 300


@pytest.mark.parametrize(
    ("flags", "frames", "file"),
    [
        (["--variation", "Longer", *BOTH], 8, "watch-Longer.gif"),
        (["--variation", "Elsewhere", *BOTH], 6, "watch-Elsewhere.gif"),
        (["--variation", "Longer", "--suite", "lit.toml"], 8, "watch-Longer.gif"),
        (["--kwargs", "longer=2", *BOTH], 7, "watch-longer-2.gif"),
        (["--to", "host_probes:Lit", "--kwargs", "longer=4"], 9, None),
        (["--to", "host_probes:lit_always"], 5, None),
        (["--to", "host_probes:lit_vector"], 5, None),
    ],
)
def test_changed_environments_are_filmed(
    flags: list[str],
    frames: int,
    file: str | None,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, out = tmp_path / "run", tmp_path / "film.gif"
    monkeypatch.chdir(trained.parent)
    shutil.copytree(trained, run)
    where = ["--out", str(out)] if file is None else []
    assert cli.run(["watch", str(run), *flags, *where, "--shots", "2", "--every", "1"]) == 0
    with Image.open(out if file is None else run / file) as film:
        assert film.n_frames == frames


def test_what_cannot_be_watched_is_told(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(trained)
    said = refused(capsys, "watch", run, "--kwargs", "longer=1", "--variation", "Train", *BOTH)
    assert "exclude each other" in said
    assert "unknown variation" in refused(capsys, "watch", run, "--variation", "Lnger", *BOTH)
    assert "was trained on" in refused(capsys, "watch", run, "--env", "host_probes:HostAim")
    before = sorted(trained.iterdir())
    said = refused(capsys, "watch", run, "--to", "host_probes:HostAim?seen=2.0")
    assert "its action is" in said
    assert sorted(trained.iterdir()) == before


class Undrawn(Lit):
    """Its render() does what `how` says."""

    how = "none"

    def __init__(self) -> None:
        super().__init__()

    def render(self) -> Any:
        drawn = {"none": None, "floats": np.zeros((4, 4, 3)), "words": "@"}
        if self.how == "raises":
            raise NotImplementedError
        return drawn[self.how]


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("none", "its render() returned None"),
        ("floats", "its render() returned float64 of shape (4, 4, 3)"),
        ("words", "its render() returned <U1 of shape ()"),
        ("raises", "its render() raised NotImplementedError: no message"),
    ],
)
def test_an_environment_that_cannot_draw_itself_is_told(
    how: str,
    problem: str,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Undrawn, "how", how)
    monkeypatch.setattr("host_probes.Undrawn", Undrawn, raising=False)
    said = refused(capsys, "watch", str(trained), "--to", "host_probes:Undrawn")
    assert f"host_probes:Undrawn: cannot be filmed: {problem}. A film needs" in said
    assert 'render_mode="rgb_array"' in said


@pytest.mark.parametrize(
    ("word", "last"),
    [
        ("host_probes:Lit", 40),
        ("host_probes:lit_vector?mode=NextStep", 40),
        ("host_probes:lit_vector?mode=Disabled", 40),
        ("host_probes:lit_vector?mode=SameStep", 30),  # its end is gone before anybody sees it
    ],
)
def test_every_step_is_seen_and_so_is_the_end(word: str, last: int) -> None:
    line = sl.train(environment(word), steps=32, hyper=tiny())
    zs = line.method.latent.candidates(2)
    episodes, fps = film_episodes(line, TRAIN, zs, 100)
    assert fps == 20.0
    for k in range(2):
        assert brightness(episodes.states[:, k]) == [0, 10, 20, 30, last]
        assert {int(shot.picture()[0, 0, 0]) for shot in episodes.states[:, k]} == {1}
    np.testing.assert_array_equal(episodes.lengths, [4, 4])
    assert episodes.terminated.all()
    assert episodes.rewards.shape == (4, 2)
    plain = line.at(zs[1])
    seen = [np.full(1, t, np.float32) for t in range(1, 4)]
    np.testing.assert_allclose(
        episodes.rewards[1:, 1], [float(plain(x)[0]) for x in seen], atol=1e-5
    )


def tiny() -> sl.Hyper:
    return sl.Hyper(
        num_envs=2, num_steps=8, minibatches=2, algorithm="ppo", hidden=(4,), critic_hidden=(4,)
    )


def test_pictures_are_taken_of_so_many_steps_only() -> None:
    camera = Camera("lamp", limit=2)
    camera.start(lambda: [np.zeros((2, 2, 3), np.uint8)])
    for _ in range(5):
        camera.step(lambda: [np.ones((2, 2, 4), np.uint8)], [1.0])
    assert len(camera.shots) == 3
    assert len(camera.rewards) == 5
    assert camera.shots[2][0].picture().shape == (2, 2, 3), "without transparency"
    with pytest.raises(SlacklineError, match="lamp: cannot be filmed: its render"):
        Camera("lamp", 1).start(lambda: None)


def test_large_pictures_are_shrunk_to_means() -> None:
    large = np.zeros((4, 2 * MAX_SIDE + 1, 3), np.uint8)
    large[:, 0] = 90
    small = shrunk(large[:, :-1])
    assert small.shape == (2, MAX_SIDE, 3)
    assert small[0, 0, 0] == 45
    assert shrunk(large).shape == (1, (2 * MAX_SIDE + 1) // 3, 3)
