"""The grid from the command line: what is refused before any time is spent, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import refused, told

from slackline import cli
from slackline.bench.jobs import Job
from slackline.io.lock import locked
from slackline.store.run import RunFolder

TINY = ["--seeds", "1", "--steps", "1k", "--shots", "2", "--episodes", "1", "--score-episodes", "2"]


def test_cells_that_fail_are_listed_with_their_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def fail(job: Job, *_: object) -> None:
        tried.append(job.name)
        raise ValueError("no luck\nat all")

    monkeypatch.setattr("slackline.cli.worker.run_job", fail)
    out = tmp_path / "b"
    words = ["bench", "cartpole", "--engine", "inline", "--retries", "1", "--out", str(out)]
    assert cli.run(words) == 3
    assert tried == ["cartpole-single"] * 2 + ["cartpole-senses"] * 2
    said = capsys.readouterr().err
    assert said.startswith(
        "error: 2 of 2 cells failed, each tried 2 times: cartpole-single: no luck"
    )
    assert said.count("\n") == 1
    log = out / "logs" / "cartpole-senses.log"
    assert f"(log: {log})" in said
    assert log.read_text().count("ValueError: no luck") == 2


def test_a_grid_at_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory").store
    words = ["bench", "cartpole", "--methods", "single", *TINY, "--engine", "inline"]
    try:
        said = told(capsys, *words, "--out", "memory://grid/b")
        assert "kept in memory://grid/b/cartpole-single" in said
        assert "page: memory://grid/b/report.html" in said
        names = {name.removeprefix("/grid/b/") for name in files}
        assert names == {
            "report.html",
            *(f"cartpole-single/{name}" for name in ("run.json", "progress.jsonl")),
            *(f"cartpole-single/{name}.safetensors" for name in ("checkpoint", "subspace")),
            "cartpole-single/scores.parquet",
        }
        scores = files["/grid/b/cartpole-single/scores.parquet"].getvalue()
        assert "finished" in told(capsys, *words, "--out", "memory://grid/b", "--dry-run")
        told(capsys, *words, "--out", "memory://grid/b")
        assert files["/grid/b/cartpole-single/scores.parquet"].getvalue() == scores
        words[words.index("1k")] = "2k"
        problem = refused(capsys, *words, "--out", "memory://grid/b")
        assert "steps is 1000 there, 2000 here" in problem
    finally:
        files.clear()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("cartpole --engine spark", "unknown engine 'spark'"),
        ("cartpole --workers 0", "workers is 0"),
        ("cartpole --retries -1", "retries is -1"),
        ("cartpole --scale 0", "scale is 0"),
        ("cartpole --scale nan", "scale is nan"),
        ("cartpole --betas one", "'one' is not a number"),
        ("cartpole --methods single --betas 0.1", "unknown option of these methods 'beta'"),
        ("paper.toml --seeds 3", "--seeds was given, and paper.toml says itself what is trained"),
        ("paper.toml --beta 3", "a method's option was given"),
        ("paper.toml cartpole", "is a whole grid; name it alone"),
        ("missing.toml", "missing.toml: cannot be read"),
        ("cartpole --out nosuch://bucket/b", "nosuch://bucket/b: cannot be opened"),
        ("cartpole --out /proc/nothing/b", "/proc/nothing"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert problem in refused(capsys, "bench", *words.split())
    assert list(tmp_path.iterdir()) == []


def test_another_benchmark_in_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(tmp_path):
        said = refused(capsys, "bench", "cartpole", "--out", str(tmp_path))
    assert "is being written by" in said


WITHOUT_BRAX = """
import sys
sys.modules["brax"] = None
from slackline import cli
sys.exit(cli.run(sys.argv[1:]))
"""


def test_a_suite_whose_extra_is_missing(tmp_path: Path) -> None:
    """In a process of its own: in this one another test may have made the robot already."""
    out = tmp_path / "b"
    words = ["bench", "cartpole", "ant-positional", "--steps", "20480", "--seeds", "1"]
    command = [sys.executable, "-c", WITHOUT_BRAX, *words, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'slackline-rl[brax]'" in done.stderr
    assert not out.exists()


def test_ray_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    out = tmp_path / "b"
    said = refused(capsys, "bench", "cartpole", "--engine", "ray", "--out", str(out))
    assert "pip install 'slackline-rl[ray]'" in said
    assert not out.exists()


def test_betas_and_blocks_are_folders_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "bench cartpole --methods lop --betas 0.1 1 --seeds 2 --seeds-per-cell 1 --dry-run"
    *lines, total = told(capsys, *words.split(), "--out", str(tmp_path / "b")).splitlines()
    assert total.startswith("# 4 cells, 4 to run: about ")
    assert [line.rpartition("# ")[2].partition(":")[0] for line in lines] == [
        f"cartpole-lop-beta{beta}-seeds{seed}-{seed}" for beta in ("0.1", "1") for seed in (0, 1)
    ]
    assert all("--first-seed" in line for line in lines)
    assert "--option beta=0.1" in lines[0]
    assert not RunFolder(tmp_path / "b").path.exists()
