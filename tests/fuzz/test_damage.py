"""Run folders that are damaged or hostile: one line that names the file, or the right content.

A short slice runs with the other tests, always the same; SLACKLINE_FUZZ=2000 (`make fuzz`) tries so
many examples of each test, new ones every time. What once failed is in an `example`.
"""

from __future__ import annotations

import copy
import importlib
import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import JSON, NEVER_IMPORTED, fuzzed, harmless, holds

import slackline as sl
from slackline.io.files import read_json, write_json
from slackline.io.tensors import read_tensors, write_tensors
from slackline.report.results import load_results
from slackline.store.run import RunFolder
from slackline.store.scores import merge_scores, read_scores
from slackline.training import configure

EARLIER = Path(__file__).parents[1] / "store" / "earlier" / "word"
"""A run without checksums, so that damage gets as far as the parsers."""


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value within a JSON value."""
    found = [at] if at else []
    if isinstance(value, dict | list):
        below = value.items() if isinstance(value, dict) else enumerate(value)
        found += [path for key, each in below for path in places(each, (*at, key))]
    return found


RECORD = json.loads((EARLIER / "run.json").read_text())
PLACES = places(RECORD)


def read_all(out: Path) -> None:
    """Whatever can be read without the environment."""
    run = RunFolder(out)
    for attempt in (
        run.config,
        run.suite,
        run.subspaces,
        run.read_progress,
        lambda: read_scores(run.scores_file),
        lambda: sl.load(out),
        lambda: load_results(out),
    ):
        with harmless():
            holds(attempt)


@fuzzed
@given(st.sampled_from(PLACES), JSON, st.booleans())
@example(("config", "options", "concentration"), 10**400, False)
@example(("config", "suite"), f"{NEVER_IMPORTED}:make", False)
def test_any_field_of_a_record_may_be_anything(
    place: tuple[Any, ...], value: Any, deleted: bool
) -> None:
    record = copy.deepcopy(RECORD)
    parent: Any = record
    for key in place[:-1]:
        parent = parent[key]
    if deleted:
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        shutil.copytree(EARLIER, out)
        (out / "run.json").write_text(json.dumps(record), encoding="utf-8")
        read_all(out)


DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "zero"]),
        st.floats(0.0, 1.0, exclude_max=True),
        st.binary(min_size=1, max_size=9),
    ),
    min_size=1,
    max_size=4,
)
FILES = ["run.json", "subspace.safetensors", "scores.parquet", "progress.jsonl"]


def damaged(content: bytes, damage: list[tuple[str, float, bytes]]) -> bytes:
    for how, where, extra in damage:
        at = int(where * len(content))
        if how == "cut":
            content = content[:at]
        elif how == "insert":
            content = content[:at] + extra + content[at:]
        elif how == "zero":
            content = content[:at] + bytes(len(content[at : at + 16])) + content[at + 16 :]
        elif content:
            content = content[:at] + bytes([content[at] ^ (1 << extra[0] % 8)]) + content[at + 1 :]
    return content


@fuzzed
@given(st.sampled_from(FILES), DAMAGE)
def test_damage_to_files_without_checksums_never_ends_in_a_traceback(
    name: str, damage: list[tuple[str, float, bytes]]
) -> None:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        shutil.copytree(EARLIER, out)
        (out / name).write_bytes(damaged((out / name).read_bytes(), damage))
        read_all(out)


@pytest.fixture(scope="module")
def sealed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as this version would have written it."""
    out = tmp_path_factory.mktemp("sealed") / "run"
    shutil.copytree(EARLIER, out)
    run = RunFolder(out)
    write_json(run.run_file, read_json(run.run_file), checksum=True)
    write_tensors(run.subspace_file, *read_tensors(run.subspace_file))
    table = pl.read_parquet(run.scores_file)
    run.scores_file.unlink()
    merge_scores(run.scores_file, table)
    lines = run.read_progress()
    run.progress_file.unlink()
    for line in lines:
        run.append_progress(line)
    assert run.without_checksum() == []
    return out


def contents(out: Path, name: str) -> Any:
    """What a file says, in a form that can be compared."""
    run = RunFolder(out)
    if name == "run.json":
        return run.read()
    if name == "scores.parquet":
        return read_scores(run.scores_file).to_dicts()
    if name == "progress.jsonl":
        return run.read_progress()
    tensors, header = read_tensors(run.subspace_file)
    return header, {key: np.asarray(array).tolist() for key, array in tensors.items()}


@fuzzed
@given(st.sampled_from(FILES), DAMAGE)
@example("progress.jsonl", [("flip", 0.9609375, b"\x00")])  # the name of the checksum's field
def test_damage_to_files_with_checksums_is_noticed_or_changes_nothing(
    sealed_run: Path, name: str, damage: list[tuple[str, float, bytes]]
) -> None:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        shutil.copytree(sealed_run, out)
        (out / name).write_bytes(damaged((out / name).read_bytes(), damage))
        found: list[Any] = []
        if holds(lambda: found.append(contents(out, name))):
            whole = contents(sealed_run, name)
            if name == "progress.jsonl":  # a log that was cut short is a shorter log
                whole = whole[: len(found[0])]
            assert found == [whole]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints, of environments outside JAX."""
    run = RunFolder(tmp_path_factory.mktemp("checkpoints") / "run")
    run.create(configure(sl.suite("cartpole"), "lop", seeds=(1,)))
    for iteration in (1, 2):
        state = {"x": np.full(3, iteration, np.float32)}
        run.save_checkpoint(state, iteration, 0.5, environments={"z": state["x"], "left": ENDS})
    return run.path


ENDS = np.arange(4)


@fuzzed
@given(
    st.sampled_from(["checkpoint.safetensors", "previous.safetensors"]),
    DAMAGE,
    st.sampled_from(["", "subspace.safetensors", "run.json"]),
)
def test_a_damaged_checkpoint_is_refused_or_gives_way_to_the_one_before(
    checkpoints: Path, name: str, damage: list[tuple[str, float, bytes]], swapped: str
) -> None:
    """Also one that was swapped for a file of another run."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        shutil.copytree(checkpoints, out)
        whole = (EARLIER / swapped if swapped else out / name).read_bytes()
        (out / name).write_bytes(damaged(whole, damage))
        found: list[Any] = []
        like = {"x": np.zeros(3, np.float32)}
        if holds(lambda: found.append(RunFolder(out).load_checkpoint(like))):
            last = found[0]
            assert last.iteration in ((2,) if name.startswith("previous") else (1, 2))
            np.testing.assert_array_equal(last.state["x"], np.full(3, last.iteration))
            np.testing.assert_array_equal(last.environments["z"], last.state["x"])
            np.testing.assert_array_equal(last.environments["left"], ENDS)


def test_harm_would_be_noticed(tmp_path: Path) -> None:
    """The oracle itself: each of these is what opening a run must not do."""
    inside, outside = tmp_path / "a", Path.home() / "slackline-harm"

    def imports() -> None:
        with pytest.raises(ImportError):
            importlib.import_module(NEVER_IMPORTED)

    def starts() -> None:
        subprocess.run(["true"], check=True)

    def writes(path: Path = outside) -> None:
        try:
            path.write_text("harm")
        finally:
            path.unlink(missing_ok=True)

    for harm in (imports, starts, writes):
        with pytest.raises(AssertionError), harmless():
            harm()
    with harmless():
        writes(inside)
