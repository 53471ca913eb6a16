"""What is exported, and to which kind of file. A new kind is a file here and a line in `KINDS`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slackline.envs.api import action_to_json
from slackline.errors import SlacklineError, imported, spelt
from slackline.io.files import as_path, write_output
from slackline.networks.impala import Network
from slackline.subspace import Subspace

KINDS = {"onnx": ".onnx", "c": ".h"}
"""Kinds of files and how their names end; `slackline.export.KIND` writes each."""


@dataclass(frozen=True)
class Exported:
    """One policy, or a whole line."""

    subspace: Subspace
    z: np.ndarray | None
    """The z of the one policy; None: the whole line, with z as an input."""
    name: str
    """Of the file, without its ending."""

    @property
    def network(self) -> Network:
        """On raw observations: the plain network at z, or all anchors."""
        if self.z is None:
            return self.subspace.acting_on_numpy
        return self.subspace.network_at(self.z if self.z.size else None)

    @property
    def facts(self) -> dict[str, str]:
        """What a reader of the file should know, as text."""
        subspace, method = self.subspace, self.subspace.method
        z_is = f"input: {method.latent.describe}" if self.z is None else json.dumps(self.z.tolist())
        return {
            "suite": subspace.suite,
            "method": method.name,
            "options": json.dumps(method.options),
            "seed": str(subspace.seed),
            "observation": json.dumps(subspace.observation_shape),
            "action": json.dumps(action_to_json(subspace.action)),
            "z": z_is,
            "z_range": method.latent.describe,
            "written_by": f"slackline-rl {_version()}",
        }


def export(
    subspace: Subspace,
    path: str | Path,
    z: Any = None,
    *,
    as_line: bool = False,
    to: str | None = None,
) -> Path:
    """Write the policy at z, or with `as_line` the whole line with z as an input.

    `to` is "onnx" or "c"; left out, the path's ending says it.
    """
    path = as_path(path)
    kind = _kind(path) if to is None else to
    if not isinstance(kind, str) or kind not in KINDS:
        raise SlacklineError(f"to is {spelt(to)}; it must be {' or '.join(KINDS)}")
    write: Callable[[Exported], bytes] = imported(f"slackline.export.{kind}").written
    exported = Exported(subspace, _chosen(subspace, z, as_line), path.stem)
    return write_output(path, write(exported))


def _kind(path: Path) -> str:
    for kind, suffix in KINDS.items():
        if path.suffix == suffix:
            return kind
    raise SlacklineError(f"path is {str(path)!r}; it must end in {' or '.join(KINDS.values())}")


def _chosen(subspace: Subspace, z: Any, as_line: bool) -> np.ndarray | None:
    """The z to export; None for the whole line."""
    method = subspace.method
    if not as_line:
        if z is None and method.latent.size:
            raise SlacklineError(f"z is missing; it must be {method.latent.describe}, or as-line")
        return method.latent.parse(z)
    if z is not None:
        raise SlacklineError("z and as-line exclude each other; give one of them")
    if not method.latent.size:
        raise SlacklineError(
            f"{method.name} is one policy and has no line of them; leave as-line out"
        )
    return None


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("slackline-rl")
    except PackageNotFoundError:  # a copy of the source, as on a robot
        return "(unknown version)"
