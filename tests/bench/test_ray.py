"""Cells on a Ray cluster of several nodes, started on this machine, to which everything happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import refused
from polars.testing import assert_frame_equal

from slackline.store.run import RunFolder
from slackline.store.scores import read_scores

GRID = (
    *("bench", "cartpole", "--methods", "single", "lop", "--seeds", "3", "--seeds-per-cell", "1"),
    *("--steps", "300k", "--shots", "5", "--episodes", "2", "--score-episodes", "4"),
    *("--devices", "1"),
)
CELLS = [f"cartpole-{m}-seeds{s}-{s}" for m in ("single", "lop") for s in range(3)]
PATIENCE = 600.0
"""Seconds for anything to happen."""


def test_a_cluster_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    words = ["bench", "cartpole", "--engine", "ray", "--out", str(tmp_path / "b"), "--address"]
    assert "no Ray cluster answers there" in refused(capsys, *words, "127.0.0.1:9")
    assert "it must be HOST:PORT" in refused(capsys, *words, "ray://head:10001")
    assert not (tmp_path / "b").exists()


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without a core to run cells on, and two nodes with one each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield found
    found.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_whatever_happens_every_cell_ends_once(cluster: Any, tmp_path: Path) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    words = ["--engine", "ray", "--address", cluster.address, "--out", "there"]
    driver = slackline(*words, cwd=tmp_path)
    until(lambda: running_cells() != [], driver)
    os.kill(running_cells()[0], signal.SIGKILL)  # a worker
    until(lambda: kept(tmp_path / "there") != [], driver)
    cluster.remove_node(nodes.pop(), allow_graceful=False)
    cluster.add_node(num_cpus=1)
    until(lambda: finished(tmp_path / "there") != [], driver)
    driver.kill()
    driver.wait()
    before = {name: score_bytes(tmp_path / "there", name) for name in finished(tmp_path / "there")}
    again = slackline(*words, cwd=tmp_path)
    said, problems = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, problems
    here = slackline("--out", "here", cwd=tmp_path)
    expected, problems = here.communicate(timeout=PATIENCE)
    assert here.returncode == 0, problems
    assert finished(tmp_path / "there") == sorted(CELLS)
    for name in CELLS:
        assert said.count(f"kept in there/{name}\n") == 1
        one, other = (
            read_scores(tmp_path / d / name / "scores.parquet") for d in ("there", "here")
        )
        assert_frame_equal(one, other)
    assert before == {name: score_bytes(tmp_path / "there", name) for name in before}
    assert table(said) == table(expected), "the report is that of the local engine"


def slackline(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "slackline.cli", *GRID, *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(happened: Callable[[], bool], driver: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def running_cells() -> list[int]:
    """The processes below this one that run a cell; Ray names them by what they do."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and b"ray::perform" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has just ended
            continue
    return [pid for pid in found if os.getpid() in above(pid)]


def above(pid: int) -> list[int]:
    """The parent of a process, its parent, and so on."""
    found: list[int] = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def kept(out: Path) -> list[str]:
    """The cells of which something is there."""
    return sorted(file.parent.name for file in out.glob("*/run.json"))


def finished(out: Path) -> list[str]:
    return [name for name in kept(out) if (out / name / "scores.parquet").exists()]


def score_bytes(out: Path, name: str) -> bytes:
    assert RunFolder(out / name).finished()
    return (out / name / "scores.parquet").read_bytes()


def table(said: str) -> str:
    """What was printed from the table on, without the name of the page."""
    return said[said.index("CartPole: return after") : said.index("page: ")]
