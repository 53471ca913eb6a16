"""Atomic writes, and reads that trust nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.errors import SlacklineError
from slackline.io import files
from slackline.io.tensors import from_tensors, read_tensors, to_tensors, write_tensors


def test_write_atomic_leaves_the_old_file_when_the_rename_never_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    files.write_atomic(path, b"old")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"


def test_write_atomic_replaces_a_leftover_of_a_killed_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    (tmp_path / f"a.bin{files.TEMPORARY}").write_bytes(b"half of some")
    files.write_atomic(path, b"whole")
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1]", "JSON list"),
        (b"\xff", "not valid"),
    ],
)
def test_read_json_names_the_file_and_the_problem(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(SlacklineError, match=problem) as error:
        files.read_json(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    with pytest.raises(SlacklineError, match="symbolic link"):
        files.read_json(tmp_path / "link.json")


def tree() -> dict[str, object]:
    return {
        "weights": (jnp.arange(6.0).reshape(2, 3), jnp.array([1, 2], jnp.int32)),
        "flag": jnp.array([True, False]),
        "key": jax.random.split(jax.random.key(7), 2),
    }


def test_a_tree_with_prng_keys_survives_the_round_trip_exactly(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    write_tensors(path, to_tensors(tree()), {"format": "x"})
    tensors, header = read_tensors(path)
    restored = from_tensors(jax.eval_shape(tree), tensors, path)
    assert header == {"format": "x"}
    assert jax.tree.structure(restored) == jax.tree.structure(tree())
    drawn = jax.random.uniform(restored["key"][1], (3,))
    np.testing.assert_array_equal(drawn, jax.random.uniform(tree()["key"][1], (3,)))  # type: ignore[index]
    for new, old in zip(to_tensors(restored).values(), to_tensors(tree()).values(), strict=True):
        assert new.dtype == old.dtype
        np.testing.assert_array_equal(new, old)


def damaged(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "foreign":
        path.write_bytes(b"PK\x03\x04" + content)
    elif how == "header":
        path.write_bytes(b"\xff" * 8 + content[8:])


@pytest.mark.parametrize("how", ["truncated", "empty", "foreign", "header"])
def test_a_damaged_tensor_file_is_refused_by_name_and_left_alone(tmp_path: Path, how: str) -> None:
    path = tmp_path / "c.safetensors"
    write_tensors(path, to_tensors(tree()), {"format": "x"})
    damaged(path, how)
    before = path.read_bytes()
    with pytest.raises(SlacklineError, match=r"c\.safetensors: is corrupt"):
        read_tensors(path)
    assert path.read_bytes() == before


def test_tensors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    write_tensors(path, {"w": np.array([1.0, np.nan], np.float32)}, {})
    with pytest.raises(SlacklineError, match="'w' holds NaN"):
        read_tensors(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"flag": None}, "'flag' is missing"),
        ({"extra": np.zeros(1)}, "'extra' is missing or does not belong"),
        ({"flag": np.array([1, 0])}, "'flag' is int64"),
        ({"weights.0": np.zeros((3, 2), np.float32)}, r"float32\[3, 2\], expected float32\[2, 3\]"),
    ],
)
def test_from_tensors_checks_every_leaf(tmp_path: Path, change: dict, problem: str) -> None:
    tensors = {**to_tensors(tree()), **change}
    tensors = {name: array for name, array in tensors.items() if array is not None}
    with pytest.raises(SlacklineError, match=problem):
        from_tensors(jax.eval_shape(tree), tensors, tmp_path / "c")


@pytest.mark.parametrize(
    ("found", "schema", "problem"),
    [
        ("other", 1, "is not a ours file"),
        ("ours", 3, "newer than 2"),
        ("ours", "1", "no valid schema"),
        ("ours", 0, "no valid schema"),
        (None, None, "is not a ours file"),
    ],
)
def test_check_format(found: object, schema: object, problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        files.check_format(Path("f"), found, schema, expected="ours", newest=2)
    files.check_format(Path("f"), "ours", 2, expected="ours", newest=2)


def test_json_never_holds_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(tmp_path / "a.json", {"x": float("nan")})
    assert not (tmp_path / "a.json").exists()
    files.write_json(tmp_path / "a.json", {"x": 1})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1}


class Before(NamedTuple):
    seen: Any


class After(NamedTuple):
    moments: Any


def test_a_field_that_was_renamed_keeps_its_name_in_files(tmp_path: Path) -> None:
    tensors = to_tensors({"state": Before((np.ones(2),))})
    names = {"moments": "seen"}
    like = {"state": After((np.zeros(2),))}
    back = from_tensors(like, tensors, tmp_path / "c", names)
    np.testing.assert_array_equal(back["state"].moments[0], np.ones(2))
    assert set(to_tensors(back, names)) == {"state.seen.0"}
