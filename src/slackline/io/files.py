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


def write_output(path: Path, content: str | bytes) -> Path:
    """Write a file that a user asked for by name, making its folder if need be."""
    if path.is_dir():
        raise SlacklineError(f"{path}: is a folder; the output needs a file name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content.encode() if isinstance(content, str) else content)
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
    except (ValueError, RecursionError) as error:  # also numbers or nesting without end
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
