"""slackline train"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from slackline.cli.options import (
    Count,
    Devices,
    Integer,
    Number,
    Penalty,
    first_word,
    parse_as,
    set_up_jax,
    value_of,
)
from slackline.cli.progress import human, training_bar
from slackline.errors import require_count, require_number
from slackline.learn.hyper import Hyper
from slackline.store.run import RunFolder
from slackline.suites import suite as find_suite


@dataclass
class Train:
    """Train a subspace of policies on a suite's training environment.

    Everything is kept in the output folder. An interrupted training continues exactly where its
    last checkpoint was when the same command is given with --resume.
    """

    suite: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SUITE")]
    """What to train on (`slackline list` names the suites)."""
    method: str = "lop"
    """How to train (`slackline list` names the methods)."""
    seeds: int = 1
    """How many seeds to train, all in one compiled program."""
    first_seed: int = 0
    """The seeds are first_seed, first_seed + 1, …"""
    steps: Count = None
    """Environment steps per seed (8e6 and 8M will do)."""
    out: Path | None = None
    """Folder to keep the run in. Default: runs/SUITE-METHOD."""
    resume: bool = False
    """Continue the run in the output folder (or begin it, if there is none)."""
    beta: Number = None
    """Weight of the method's auxiliary term."""
    penalty: Penalty = None
    """lop, cop, bop: anchors compared tensor by tensor (tensor) or as whole vectors (vector)."""
    anchors: Integer = None
    """cop, bop: how many anchors span the subspace."""
    skills: Integer = None
    """diayn_r: how many skills are learned, and so how many adaptation can try."""
    members: Integer = None
    """ensemble: how many independent policies are trained."""
    checkpoint_seconds: float = 30.0
    """How often the whole training state is saved."""
    devices: Devices = None
    """CPU devices to spread the seeds over."""
    preset: str = "paper"
    """Which hyper-parameters to begin with; `slackline list` names the presets of each suite."""
    hyper: Hyper = field(default_factory=Hyper)
    """Hyper-parameters, one by one; `--hyper FILE` begins with what `slackline tune` wrote."""

    def run(self) -> None:
        from slackline.training import configure, run_training

        set_up_jax(self.devices)
        require_count("seeds", self.seeds, high=10_000)
        require_number("checkpoint_seconds", self.checkpoint_seconds, low=0.0)
        config = configure(
            self.suite,
            self.method,
            seeds=tuple(range(self.first_seed, self.first_seed + self.seeds)),
            steps=self.steps,
            hyper=self.hyper,
            **self.options,
        )
        out = self.out or Path("runs") / f"{self.suite}-{self.method}"
        with training_bar(f"{self.method} on {self.suite}") as on_tick:
            run_training(
                config,
                out,
                resume=self.resume,
                on_tick=on_tick,
                checkpoint_seconds=self.checkpoint_seconds,
            )
        print(outcome(RunFolder(out)))
        print(f"next: slackline adapt {out}")

    @property
    def options(self) -> dict[str, Any]:
        """The method's options that were given."""
        names = ("beta", "penalty", "anchors", "skills", "members")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def outcome(run: RunFolder) -> str:
    """One line about a finished training."""
    config, seconds = run.config(), run.read()["provenance"]["training_seconds"]
    last = run.read_progress()[-1]
    returns = np.array([np.nan if r is None else r for r in last["return"]])
    members = config.resolve()[1].num_members
    copies = len(config.seeds) * members
    total = config.iterations * config.hyper.steps_per_iteration * copies
    each = f" × {members} members" if members > 1 else ""
    return (
        f"trained {config.method} on {config.suite}: {len(config.seeds)} seeds{each} × "
        f"{config.steps:,} steps in {seconds:.1f} s ({human(total / max(seconds, 1e-9))} steps/s), "
        f"last return {np.nanmean(returns):.1f} ± {np.nanstd(returns):.1f}; kept in {run.path}"
    )


def parse(argv: list[str]) -> Train:
    """Suite, preset and file decide the hyper-parameters' defaults, so they are read first."""
    name, preset, file = first_word(argv), value_of("--preset", argv), value_of("--hyper", argv)
    hyper = find_suite(name).preset(preset or "paper") if name else Hyper()
    if file is not None:
        from slackline.tuning import load_choice

        hyper = load_choice(Path(file))
        at = argv.index("--hyper")
        argv = argv[:at] + argv[at + 2 :]
    return parse_as("train", Train, argv, Train(suite=tyro.MISSING, hyper=hyper))
