"""Trained lines that come with the package, named like `pretrained:cartpole`.

Each is a run folder (run.json and subspace.safetensors) of one seed; `index.json` says of each how
it was trained and what it shows. `benchmarks/pretrained.py` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slackline.errors import unknown
from slackline.io.files import as_path, read_json

PREFIX = "pretrained:"
FOLDER = Path(__file__).parents[1] / "data" / "pretrained"
INDEX = FOLDER / "index.json"


@dataclass(frozen=True)
class Pretrained:
    """A trained line of the package, and the change on which it shows adapting."""

    name: str
    suite: str
    method: str
    seed: int
    """Of all seeds trained, the one with the highest training return; no changed environment was
    looked at."""
    seeds: int
    """How many were trained."""
    command: str
    """What trained them."""
    training_return: float
    """On the unchanged environment: mean over the z's that were measured."""
    change: str
    """The variation that the numbers below are of."""
    adapt: str
    """What adapted all of the trained seeds to it, for the numbers below."""
    helped: int
    """On how many of the trained seeds adapting helped."""
    hurt: int
    """On how many it hurt; on the rest the episodes show no difference."""
    default: float
    """Mean return of the default z on the change, over all trained seeds."""
    adapted: float
    """The same of the chosen z."""
    shows: str
    """What the change is, in words."""

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


def pretrained() -> dict[str, Pretrained]:
    """All of them by name."""
    index: dict[str, Any] = read_json(INDEX)
    return {name: Pretrained(name=name, **fields) for name, fields in index.items()}


def is_pretrained(path: str | Path) -> bool:
    return isinstance(path, str | Path) and str(path).startswith(PREFIX)


def located(path: str | Path) -> Path:
    """The run folder that `pretrained:NAME` stands for; any other path as it is."""
    if not is_pretrained(path):
        return as_path(path)
    name, known = str(path).removeprefix(PREFIX), pretrained()
    if name not in known:
        raise unknown("pretrained line", name, known)
    return known[name].folder


def folder_beside(path: str | Path) -> Path:
    """The default folder of files about a run or subspace file: beside it, or into the current
    folder if it is the package's."""
    if is_pretrained(path):
        return Path()
    path = Path(path)
    return path if path.is_dir() else path.parent
