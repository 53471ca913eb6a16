"""`slackline watch`, end to end on a tiny run."""

from __future__ import annotations

import builtins
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import refused

from slackline import cli
from slackline.envs.cartpole import CartPole
from slackline.io.files import read_json

Image = pytest.importorskip("PIL.Image")

TINY = ["--hyper.num-envs", "4", "--hyper.num-steps", "4"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watch") / "run"
    words = ["train", "cartpole", "--method", "lop", "--seeds", "2", "--steps", "320", *TINY]
    words += ["--out", str(folder)]
    assert cli.run(words) == 0
    return folder


KEPT = {
    "halfcheetah": "results/halfcheetah/halfcheetah-lop",
    "ant": "src/slackline/data/pretrained/ant",
}
"""Robots' lines whose weights are in the repository."""


def kept_line(robot: str, folder: Path) -> None:
    """One of the trained lines that the repository has."""
    kept = Path(__file__).parents[2] / KEPT[robot]
    for name in ("run.json", "subspace.safetensors"):
        shutil.copy(kept / name, folder)


@pytest.mark.parametrize(
    ("robot", "variation"), [("halfcheetah", "BigShins"), ("ant", "TinyGravity")]
)
def test_a_robot_is_filmed(
    robot: str, variation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_line(robot, tmp_path)
    words = ["--variation", variation, "--shots", "5", "--steps", "40", "--every", "10"]
    assert cli.run(["watch", str(tmp_path), *words]) == 0
    assert "0.25" in capsys.readouterr().out
    with Image.open(tmp_path / f"watch-{variation}.gif") as film:
        assert film.n_frames == 5
    with Image.open(tmp_path / f"watch-{variation}.png") as strip:
        assert min(strip.size) > 300


UNDER_4_GB = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (2**32, 2**32))
from slackline import cli
sys.exit(cli.run(sys.argv[1:]))
"""


def test_a_robot_is_filmed_as_users_compile_it(tmp_path: Path) -> None:
    """The tests' own XLA flags save compilation time, and once hid that it took all memory."""
    kept_line("halfcheetah", tmp_path)
    words = ["watch", str(tmp_path), "--variation", "BigShins", "--steps", "20", "--every", "10"]
    plain = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", UNDER_4_GB, *words],
        env={**plain, "SLACKLINE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "watch-BigShins.gif").exists()


def test_a_film_a_strip_and_a_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", str(run), "--variation", "LongPole", "--shots", "3", "--every", "4"]
    capsys.readouterr()
    assert cli.run(words) == 0
    printed = capsys.readouterr().out
    film, strip = run / "watch-LongPole.gif", run / "watch-LongPole.png"
    for word in (
        f"film: {film}",
        f"strip: {strip}",
        "0.00",
        "0.50",
        "1.00",
        "return",
        "length = 1",
    ):
        assert word in printed
    lengths = [int(line.split("│")[4]) for line in printed.splitlines() if line.startswith("│")]
    assert len(lengths) == 3
    longest = max(lengths)
    with Image.open(film) as image:
        assert image.is_animated
        assert image.n_frames == longest // 4 + 1 + (longest % 4 > 0)
        assert image.info["duration"] == 80
        assert 800 < image.width < 1200
        assert 200 < image.height < 700
    with Image.open(strip) as image:
        image.load()
        assert image.size[0] == 1600
    assert 5_000 < film.stat().st_size < 1_000_000
    assert 20_000 < strip.stat().st_size < 1_000_000


def test_given_zs_a_seed_and_other_formats(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["watch", str(run), "--z", "0.25", "0.3,0.7", "--seed", "1", "--steps", "4"]
    for kind in ("webp", "apng"):
        out = tmp_path / kind / f"two.{kind}"
        capsys.readouterr()
        assert cli.run([*words, "--every", "2", "--fps", "5", "--out", str(out)]) == 0
        printed = capsys.readouterr().out
        assert all(word in printed for word in ("0.25", "0.30", "seed 1", "CartPole, Train"))
        with Image.open(out) as image:
            assert image.n_frames == 3
        assert (out.parent / "two.png").exists()


def test_the_same_command_draws_the_same_film(run: Path, tmp_path: Path) -> None:
    words = ["watch", str(run), "--shots", "2", "--steps", "3", "--out"]
    for name in ("a", "b"):
        assert cli.run([*words, str(tmp_path / f"{name}.gif")]) == 0
    for kind in (".gif", ".png"):
        assert (tmp_path / f"a{kind}").read_bytes() == (tmp_path / f"b{kind}").read_bytes()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--variation LongPol", "did you mean LongPole"),
        ("--shots 0", "shots is 0; it must be a whole number from 1 to 16"),
        ("--shots 17", "shots is 17"),
        ("--shots many", "--shots: not a whole number"),
        ("--steps 0", "steps is 0; it must be a whole number from 1 to 200"),
        ("--steps 201", "steps is 201; it must be a whole number from 1 to 200"),
        ("--every 0", "every is 0"),
        ("--fps 0", "fps is 0; it must be a finite number, at least 1, at most 50"),
        ("--fps nan", "fps is nan"),
        ("--z 1.5", "z is 1.5; it must be 2 non-negative numbers with sum 1"),
        ("--z half", "z is 'half'; it must be 2 non-negative numbers"),
        ("--z 0.5,0.6", "z is [0.5, 0.6]"),
        ("--z 0.5 --shots 2", "--z and --shots exclude each other"),
        ("--seed 7", "unknown seed of"),
        ("--out w.mp4", "unknown kind of film '.mp4'"),
        ("--out /dev/null/w.gif", "/dev/null/w.gif: cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(
    run: Path,
    words: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in run.iterdir()}
    assert problem in refused(capsys, "watch", str(run), *words.split())
    assert list(tmp_path.iterdir()) == []
    assert {path.name for path in run.iterdir()} == before


def test_runs_that_cannot_be_watched_are_told(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no such run folder" in refused(capsys, "watch", str(tmp_path / "nowhere"))
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    values = read_json(copy / "run.json")  # without its checksum
    (copy / "run.json").write_text(json.dumps(values | {"finished": False}))
    assert "is not trained to the end yet" in refused(capsys, "watch", str(copy))
    monkeypatch.setattr(CartPole, "view", lambda _: None)
    assert "CartPole has no view() to watch it by" in refused(capsys, "watch", str(run))


def test_without_matplotlib_it_says_what_to_install(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert "figures need matplotlib: pip install" in refused(capsys, "watch", str(run))


@pytest.mark.parametrize(
    ("variation", "name"),
    [("BigShins", "BigShins"), ("DefectiveSensor 5%", "DefectiveSensor-5"), ("../x y", "..-x-y")],
)
def test_variations_make_plain_file_names(variation: str, name: str) -> None:
    from slackline.analyses.strips import file_name

    assert file_name(variation) == name
