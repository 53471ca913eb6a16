"""Run folders that are damaged or hostile: one line that names the file, or the right content.

A short slice runs with the other tests, always the same; SLACKLINE_FUZZ=5000 (`make fuzz`) tries so
many examples of each test, new ones every time. What once failed is in an `example`.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import slackline as sl
from slackline.errors import SlacklineError
from slackline.io.files import read_json, write_json
from slackline.io.tensors import read_tensors, write_tensors
from slackline.report.results import load_results
from slackline.store.run import RunFolder
from slackline.store.scores import merge_scores, read_scores

EARLIER = Path(__file__).parents[1] / "store" / "earlier" / "word"
"""A run without checksums, so that damage gets as far as the parsers."""
EXAMPLES = int(os.environ.get("SLACKLINE_FUZZ", "0"))

fuzzed = settings(
    max_examples=EXAMPLES or 25,
    derandomize=not EXAMPLES,
    database=None,
    deadline=10_000,  # milliseconds: nothing hangs
    suppress_health_check=[HealthCheck.too_slow],
)

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**400, -(10**18), 2**63, 2**31, 1e308, 1e-320]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["", "cartpole", "lop", "os:system", "../..", "a\nb", "\x1b[2J", "\ud800", "é" * 999]
    ),
)
JSON = st.recursive(
    ODD, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3)
)


def holds(attempt: Callable[[], Any]) -> bool:
    """Whether it succeeds; refusing is one line, and anything else fails the test."""
    try:
        attempt()
    except SlacklineError as error:
        if "\n" in str(error) or not str(error):
            raise AssertionError(f"not one line: {error!r}") from error
        return False
    return True


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
        holds(attempt)


@fuzzed
@given(st.sampled_from(PLACES), JSON, st.booleans())
@example(("config", "options", "concentration"), 10**400, False)
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
