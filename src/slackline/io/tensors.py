"""Named tensors in safetensors files, and pytrees as named tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from slackline.arrays import jax
from slackline.errors import SlacklineError
from slackline.io.files import refuse_irregular, write_atomic

AS_THEY_ARE: Mapping[str, str] = {}


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
