"""Atomic writes and suspicious reads.

A file is written under a temporary name, flushed to the disk and renamed, so that a reader finds
the old file or the new one and never half of one. Reading trusts nothing: a file that is truncated,
foreign, of a newer schema, a symbolic link, or full of NaN is refused by name.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from slackline.errors import SlacklineError

TEMPORARY = ".partial"
"""Suffix of files being written; leftovers of a killed process are ours to overwrite."""


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, or leave it as it was."""
    temporary = path.with_name(path.name + TEMPORARY)
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_output(path: Path, text: str) -> Path:
    """Write a file that a user asked for by name, making its folder if need be."""
    if path.is_dir():
        raise SlacklineError(f"{path}: is a folder; the output needs a file name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())
    except OSError as error:
        raise SlacklineError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def refuse_irregular(path: Path) -> None:
    """Insist on an ordinary file."""
    if path.is_symlink():
        raise SlacklineError(f"{path}: is a symbolic link; slackline reads only ordinary files")
    if not path.is_file():
        raise SlacklineError(f"{path}: no such file")


def read_json(path: Path) -> dict[str, Any]:
    """Parse a JSON object."""
    refuse_irregular(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SlacklineError(f"{path}: is not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise SlacklineError(f"{path}: holds a JSON {type(value).__name__}, not an object")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    write_atomic(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def check_format(path: Path, found: object, schema: object, *, expected: str, newest: int) -> None:
    """Insist on our own file kind, in a schema this version knows."""
    if found != expected:
        raise SlacklineError(f"{path}: is not a {expected} file (its format is {found!r})")
    if not isinstance(schema, int) or schema < 1:
        raise SlacklineError(f"{path}: has no valid schema number ({schema!r})")
    if schema > newest:
        raise SlacklineError(
            f"{path}: has schema {schema}, newer than {newest}, the newest this slackline reads; "
            "upgrade slackline-rl"
        )


def write_tensors(path: Path, tensors: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """A safetensors file whose metadata carries `header` as JSON."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomic(path, save(arrays, metadata={"slackline": json.dumps(header, allow_nan=False)}))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(tensors, header) of a file that `write_tensors` made."""
    refuse_irregular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("slackline", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise SlacklineError(f"{path}: is corrupt or not a safetensors file ({error})") from None
    if not isinstance(header, dict):
        raise SlacklineError(f"{path}: was not written by slackline (no slackline header)")
    for name, array in tensors.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise SlacklineError(f"{path}: tensor {name!r} holds NaN or infinite values")
    return tensors, header


def to_tensors(tree: Any) -> dict[str, np.ndarray]:
    """A pytree as named arrays; PRNG keys become their raw words."""

    def raw(leaf: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)

    return {_name(path): raw(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def from_tensors(like: Any, tensors: dict[str, np.ndarray], path: Path) -> Any:
    """Rebuild a pytree shaped like `like` (arrays or ShapeDtypeStructs), checking every leaf."""
    named = [(_name(p), leaf) for p, leaf in jax.tree_util.tree_leaves_with_path(like)]
    missing = {name for name, _ in named} ^ set(tensors)
    if missing:
        raise SlacklineError(f"{path}: tensor {min(missing)!r} is missing or does not belong here")

    def restore(name: str, leaf: Any) -> Any:
        raw = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
        array = tensors[name]
        if array.shape != raw.shape or array.dtype != raw.dtype:
            raise SlacklineError(
                f"{path}: tensor {name!r} is {array.dtype}{list(array.shape)}, "
                f"expected {raw.dtype}{list(raw.shape)}"
            )
        return jax.random.wrap_key_data(jax.numpy.asarray(array)) if _is_key(leaf) else array

    return jax.tree.unflatten(jax.tree.structure(like), [restore(n, leaf) for n, leaf in named])


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
