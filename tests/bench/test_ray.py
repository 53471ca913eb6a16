"""Cells on a Ray cluster of several nodes, started on this machine, to which everything happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from commands import refused
from polars.testing import assert_frame_equal

from slackline.bench.engines import engine
from slackline.bench.engines.base import Began, Ended, Settings
from slackline.bench.jobs import Job
from slackline.errors import SlacklineError
from slackline.progress import OnTick, Tick
from slackline.store.run import RunFolder
from slackline.store.scores import read_scores

GRID = (
    *("bench", "cartpole", "--methods", "single", "lop", "--seeds", "2", "--seeds-per-cell", "1"),
    *("--steps", "100k", "--shots", "5", "--episodes", "2", "--score-episodes", "4"),
    *("--devices", "1"),
)
CELLS = [f"cartpole-{m}-seeds{s}-{s}" for m in ("single", "lop") for s in range(2)]
PATIENCE = 1200.0
"""Seconds for anything to happen."""


def test_a_cluster_that_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    words = ["bench", "cartpole", "--engine", "ray", "--out", str(tmp_path / "b"), "--address"]
    assert "no Ray cluster answers there" in refused(capsys, *words, "127.0.0.1:9")
    assert "it must be HOST:PORT" in refused(capsys, *words, "ray://head:10001")
    assert not (tmp_path / "b").exists()


class FakeRay(ModuleType):
    """What the engine asks of Ray, done at once in this process; tasks are tried again as told."""

    def __init__(self, cpus: list[float]):
        super().__init__("ray")
        self.cpus, self.told = cpus, []

    def init(self, **how: Any) -> None:
        self.told.append(how)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": n}} for n in self.cpus]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def remote(self, **options: Any) -> Callable[..., Any]:
        def made(kind: Any) -> Any:
            if isinstance(kind, type):
                return SimpleNamespace(remote=lambda: FakeActor(kind()))
            tries = 1 + options["max_retries"]
            return SimpleNamespace(remote=lambda *words: FakeTask(kind, words, tries))

        return made

    def wait(self, tasks: list[FakeTask], timeout: float) -> tuple[list[FakeTask], list[FakeTask]]:
        return tasks[:1], tasks[1:]

    def get(self, task: Any, timeout: float | None = None) -> Any:
        return task.get()

    def cancel(self, task: FakeTask, force: bool) -> None:
        self.told.append({"cancelled": json.loads(task.words[0])["name"]})

    def shutdown(self) -> None:
        self.told.append({"shutdown": True})


@dataclass(frozen=True)
class FakeActor:
    actor: Any

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.actor, name)

        def remote(*words: Any) -> Any:
            found = call(*words)
            return SimpleNamespace(get=lambda: found)

        return SimpleNamespace(remote=remote)


@dataclass(frozen=True, eq=False)
class FakeTask:
    function: Callable[..., None]
    words: tuple[Any, ...]
    tries: int

    def get(self) -> None:
        for left in reversed(range(self.tries)):
            try:
                return self.function(*self.words)
            except RuntimeError:
                if not left:
                    raise
        return None


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay(cpus=[4.0, 7.0])
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "ray", found)
    monkeypatch.setitem(sys.modules, "ray.util", ModuleType("ray.util"))
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)  # type: ignore
    worker = SimpleNamespace(perform=pretend)
    monkeypatch.setitem(sys.modules, "pretended_worker", worker)  # type: ignore
    return found


def pretend(job: Job, on_tick: OnTick) -> None:
    """A cell that fails as often as its name says."""
    on_tick(Tick(1, 2, 1, 3.0, 0.5))
    tried = Path(job.out) / f"{job.name}.tried"
    tried.write_text(tried.read_text() + "." if tried.exists() else ".")
    if len(tried.read_text()) <= int(job.name[-1]):
        raise ValueError("no luck")


def test_what_the_engine_makes_of_ray(pretended: FakeRay, tmp_path: Path) -> None:
    out = str(tmp_path)
    settings = Settings(out, "pretended_worker", pretend, devices=1, retries=1)
    found = engine("ray", settings)
    assert found.at_once == 4 + 7
    assert not found.in_place
    names = ["good-0", "flaky-1", "hopeless-9"]
    events = list(found.run([Job(n, "cartpole", {}, (), out, in_place=False) for n in names]))
    ended = [event for event in events if isinstance(event, Ended)]
    assert [event.name for event in ended] == names
    assert [event.problem for event in ended] == [None, None, "ValueError: no luck"]
    assert [event.name for event in events if isinstance(event, Began)] == names
    logs = {file.name: file.read_text() for file in (tmp_path / "logs").iterdir()}
    assert sorted(logs) == ["flaky-1.log", "hopeless-9.log"]
    assert logs["hopeless-9.log"].count("ValueError: no luck") == 2
    assert found.log_of("hopeless-9") == f"{out}/logs/hopeless-9.log"
    assert pretended.told[-1] == {"shutdown": True}


def test_closing_the_engine_cancels_what_is_left(pretended: FakeRay, tmp_path: Path) -> None:
    settings = Settings(str(tmp_path), "pretended_worker", pretend)
    jobs = [Job(n, "cartpole", {}, (), str(tmp_path), in_place=False) for n in ("a-0", "b-0")]
    running = engine("ray", settings).run(jobs)
    while not isinstance(next(running), Ended):
        pass
    running.close()
    assert pretended.told[-2:] == [{"cancelled": "b-0"}, {"shutdown": True}]


def test_cells_that_fit_on_no_machine(pretended: FakeRay) -> None:
    with pytest.raises(SlacklineError, match="a cell needs 8 CPU, and no machine of the Ray clus"):
        engine("ray", Settings("", "", pretend, devices=8))
    with pytest.raises(SlacklineError, match="a cell needs 1 CPU, 1 GPU, and no machine"):
        engine("ray", Settings("", "", pretend, gpus=1))


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
