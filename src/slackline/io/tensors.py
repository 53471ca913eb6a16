"""Named tensors in safetensors files, and pytrees as named tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from slackline.arrays import jax
from slackline.errors import Damaged, SlacklineError, in_one_line
from slackline.io.checksum import BLANK, is_sealed, sealed
from slackline.io.files import CHECKSUM, insist_on_whole, read_regular, write_atomic

MAX_TENSORS = 4 * 2**30
"""Bytes of a file."""

AS_THEY_ARE: Mapping[str, str] = {}


def write_tensors(
    path: Path,
    tensors: dict[str, np.ndarray],
    header: dict[str, Any],
    *,
    previous: Path | None = None,
) -> None:
    """A safetensors file whose metadata carries `header` as JSON, and a checksum of the file.

    The file that was there becomes `previous`.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    text = json.dumps({CHECKSUM: BLANK, **header}, allow_nan=False)
    content = sealed(save(arrays, metadata={"slackline": text}))
    write_atomic(path, content, previous=previous)


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(tensors, header) of a file that `write_tensors` made."""
    content = read_regular(path, MAX_TENSORS)
    insist_on_whole(path, content)
    try:
        tensors, header = load(content), _header(content)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = in_one_line(error)
        raise Damaged(f"{path}: is corrupt or not a safetensors file ({reason})") from None
    if not isinstance(header, dict):
        raise SlacklineError(f"{path}: was not written by slackline (no slackline header)")
    if header.pop(CHECKSUM, None) is not None and not is_sealed(content):
        raise Damaged(f"{path}: is corrupt (its checksum is not one)")
    for name, array in tensors.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise Damaged(f"{path}: tensor {name!r} holds NaN or infinite values")
    return tensors, header


def _header(content: bytes) -> Any:
    """What `write_tensors` was given as a header; None in files of others."""
    end = 8 + int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8:end]).get("__metadata__") or {}
    return json.loads(metadata.get("slackline", "null"))


def to_tensors(tree: Any, names: Mapping[str, str] = AS_THEY_ARE) -> dict[str, np.ndarray]:
    """A pytree as named arrays; PRNG keys become their raw words.

    `names` says what fields are called in the file, where they are not called as in the code.
    """

    def raw(leaf: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)

    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {_name(path, names): raw(leaf) for path, leaf in leaves}


def from_tensors(
    like: Any, tensors: dict[str, np.ndarray], path: Path, names: Mapping[str, str] = AS_THEY_ARE
) -> Any:
    """Rebuild a pytree shaped like `like` (arrays or ShapeDtypeStructs), checking every leaf."""
    named = [(_name(p, names), leaf) for p, leaf in jax.tree_util.tree_leaves_with_path(like)]
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


def _name(path: Any, names: Mapping[str, str]) -> str:
    parts = (jax.tree_util.keystr((part,), simple=True) for part in path)
    return ".".join(names.get(part, part) for part in parts)


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
