"""A run's run.json as plain data: read without JAX, suites or hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slackline.errors import SlacklineError
from slackline.io.files import check_format, read_json

FORMAT = "slackline-run"
SCHEMA = 2
"""Runs that an earlier reader would misread have it: those with suites of the user's own, which it
would import. The rest say 1."""
RECORD = "run.json"
SUBSPACE = "subspace.safetensors"


def read_record(folder: Path) -> dict[str, Any]:
    """The whole run.json of a run folder; its format is checked, its fields are not."""
    if not folder.is_dir():
        raise SlacklineError(f"{folder}: no such run folder")
    path = folder / RECORD
    if not path.exists() and not path.is_symlink():
        raise SlacklineError(f"{folder}: is not a slackline run (it has no {RECORD})")
    values = read_json(path)
    check_format(path, values.get("format"), values.get("schema"), expected=FORMAT, newest=SCHEMA)
    for name in ("config", "provenance"):
        if not isinstance(values.get(name), dict):
            raise SlacklineError(f"{path}: field {name!r} is missing or not an object")
    return values


def spec_in(record: dict[str, Any], suite: str, path: Path) -> dict[str, Any] | None:
    """What a record keeps of the user's suite that it was trained on; None if nothing."""
    spec, others = record["config"].get("spec"), record.get("suites", {})
    found = spec if spec is not None or not isinstance(others, dict) else others.get(suite)
    if not isinstance(found, dict | None):
        raise SlacklineError(f"{path}: its suite's spec is not an object")
    return found


def insist_on_own(path: Path, suite: str | None, trained_on: str) -> None:
    """Refuse a file that a run on another suite wrote; early files do not say which."""
    if suite not in (None, trained_on):
        raise SlacklineError(
            f"{path}: was saved by a run on {suite}, and this one is on {trained_on}"
        )


def insist_on_seeds(path: Path, seeds: Any, trained: Sequence[int]) -> None:
    """Refuse a file that a run with other seeds wrote; early checkpoints do not say which."""
    if seeds is not None and seeds != list(trained):
        raise SlacklineError(
            f"{path}: was saved by a run with seeds {seeds}, and this one has {list(trained)}"
        )
