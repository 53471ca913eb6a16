"""slackline export"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from slackline.cli.options import Switch, count, optional
from slackline.cli.parsing import parse_as
from slackline.cli.watch import parse_z
from slackline.store.pretrained import folder_beside


@dataclass
class Export:
    """Write a trained policy for another runtime: an ONNX model, or a C header.

    ONNX needs the package onnx: pip install 'slackline-rl[export]'.
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run folder that `slackline train` made, a subspace file, or pretrained:NAME."""
    to: Literal["onnx", "c"]
    """onnx: batches of observations to actions. c: a header with weights and a loop."""
    z: Annotated[str | None, tyro.conf.arg(metavar="Z")] = None
    """Which policy: one number on a line, centre, an anchor ('#3'), or numbers with commas."""
    as_line: Switch = False
    """The whole line instead, with z as an input beside the observation (onnx only)."""
    seed: Annotated[int | None, optional(count, "INT", "first")] = None
    """Which seed of the run."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The file to write. Default: policy.onnx, line.onnx or policy.h in the run folder."""

    def run(self) -> None:
        from slackline.api import load
        from slackline.export import KINDS

        line = load(self.path, self.seed)
        z = None if self.z is None else parse_z(self.z, line.method.latent)
        name = f"{'line' if self.as_line else 'policy'}{KINDS[self.to]}"
        out = line.export(
            self.out or folder_beside(self.path) / name, z, as_line=self.as_line, to=self.to
        )
        print(f"{self.to}: {out}")


def parse(argv: list[str]) -> Export:
    return parse_as("export", Export, argv)
