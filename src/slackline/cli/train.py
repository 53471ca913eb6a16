"""slackline train"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from slackline.cli.options import (
    Count,
    Devices,
    MethodOptions,
    Switch,
    first_word,
    take,
)
from slackline.cli.parsing import parse_as
from slackline.cli.progress import training_bar
from slackline.errors import SlacklineError, require_count, require_number
from slackline.learn.hyper import Hyper
from slackline.methods.catalogue import FAN
from slackline.runtime import set_up_jax
from slackline.shown import command, counted, human
from slackline.store.run import RunFolder, folder_name
from slackline.suites.resolve import suite as find_suite
from slackline.suites.suite import Suite


@dataclass
class Train:
    """Train a subspace of policies on a suite's training environment, or on one of your own.

    Everything is kept in the output folder. An interrupted training continues exactly where its
    last checkpoint was when the same command is given with --resume.
    """

    suite: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SUITE")]
    """What to train on: a suite (`slackline list` names them), or an environment of your own, as
    gym:ID, envpool:ID, module:function or a suite file (.toml)."""
    method: str | None = None
    """How to train (`slackline list` names the methods). Default: vigour where actions are
    continuous and no pictures are seen, else senses; with --from fan."""
    seeds: int = 1
    """How many seeds to train, all in one compiled program."""
    first_seed: int = 0
    """The seeds are first_seed, first_seed + 1, …"""
    steps: Count = None
    """Environment steps per seed (8e6 and 8M will do)."""
    out: Path | None = None
    """Folder to keep the run in. Default: runs/SUITE-METHOD."""
    resume: Switch = False
    """Continue the run in the output folder (or begin it, if there is none)."""
    from_run: Annotated[Path | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Open a single policy into a fan: go on from the state that this run of `--method single`
    kept (or from its last checkpoint), with the same suite, seeds and hyper-parameters. Its steps
    count as done."""
    keep_at: float | None = None
    """Also keep the state after this share of the training, for `--from` (a fan opens at 0.5)."""
    snapshots: int = 0
    """Also keep the policies at so many moments of it, for `slackline analyse anchors`."""
    methods_options: Annotated[
        tyro.conf.OmitArgPrefixes[MethodOptions], tyro.conf.arg(name="method")
    ] = field(default_factory=MethodOptions)
    checkpoint_seconds: float = 30.0
    """How often the whole training state is saved."""
    devices: Devices = None
    """CPU devices to spread the seeds over, or the blocks of one. Default: all cores."""
    preset: str = "paper"
    """Which hyper-parameters to begin with; `slackline list` names the presets of each suite."""
    hyper: Hyper = field(default_factory=Hyper)
    """Hyper-parameters, one by one; `--hyper FILE` begins with what `slackline tune` wrote."""

    def usual_method(self, suite: Suite) -> str:
        """Where none is named: the suite's, or what can begin from a single policy."""
        return suite.recommended if self.from_run is None else FAN

    def run(self) -> None:
        from slackline.training import beginning_from, configure, run_training

        set_up_jax(self.devices)
        require_count("seeds", self.seeds, high=10_000)
        require_number("checkpoint_seconds", self.checkpoint_seconds, low=0.0)
        suite = find_suite(self.suite)
        method = self.method or self.usual_method(suite)
        config = configure(
            suite,
            method,
            seeds=tuple(range(self.first_seed, self.first_seed + self.seeds)),
            steps=self.steps,
            hyper=self.hyper,
            **self.methods_options.given(),
        )
        single = None
        if self.from_run is not None:
            config, single = beginning_from(config, suite, RunFolder(self.from_run))
        out = self.out or Path("runs") / folder_name(self.suite, method)
        with training_bar(f"{method} on {self.suite}", suite.digits) as on_tick:
            run_training(
                config,
                out,
                suite=suite,
                resume=self.resume,
                on_tick=on_tick,
                checkpoint_seconds=self.checkpoint_seconds,
                keep_at=self.keep_at,
                snapshots=self.snapshots,
                single=single,
            )
        print(outcome(RunFolder(out)))
        print(f"next: {command('adapt', out, *naming(suite))}")


def naming(suite: Suite) -> list[str]:
    """The flags that name the user's environments again; none for slackline's own suites."""
    from slackline.suites.recorded import spec_of, words_of

    words = [] if spec_of(suite) is None else words_of(suite)
    return [flag for word in words for flag in ("--env", word)]


def outcome(run: RunFolder, where: str | None = None) -> str:
    """One line about a finished training, which is kept `where`, unless that is its folder."""
    from slackline.bench.stats import summarise

    config, seconds = run.config(), run.read()["provenance"].get("training_seconds", 0.0)
    lines = [[r for r in line["return"] if r is not None] for line in run.read_progress()]
    ended = next(filter(None, reversed(lines)), [])
    digits, last = run.suite().digits, "unknown (no episode ended)"
    if ended:
        last = summarise(np.array(ended)).shown(digits)
    members = config.resolved_method.num_members
    speed = human(config.total_steps / max(seconds, 1e-9))
    each = f" × {members} members" if members > 1 else ""
    return (
        f"trained {config.method} on {config.suite}: {counted(len(config.seeds), 'seed')}{each} × "
        f"{config.steps:,} steps in {seconds:.1f} s ({speed} steps/s), "
        f"last return {last}; kept in {where or run.path}"
    )


def parse(argv: list[str]) -> Train:
    """Suite, preset and file decide the hyper-parameters' defaults, so they are found out first."""
    file, argv = take("--hyper", argv)
    if {"-h", "--help"} & set(argv):
        name = first_word(argv)
        hyper = find_suite(name).hyper if name else Hyper()
    else:
        asked = parse_as("train", Train, argv, Train(suite=tyro.MISSING))
        hyper = beginning(asked, file)
    return parse_as("train", Train, argv, Train(suite=tyro.MISSING, hyper=hyper))


def beginning(asked: Train, file: str | None) -> Hyper:
    """The hyper-parameters to begin with: a file's, a preset's, or the paper's."""
    suite = find_suite(asked.suite)
    if file is None:
        return suite.preset(asked.preset, asked.method or asked.usual_method(suite))
    if asked.preset != "paper":
        raise SlacklineError("--hyper FILE and --preset exclude each other; give one of them")
    from slackline.store.choice import load_choice

    return load_choice(Path(file), suite.name)
