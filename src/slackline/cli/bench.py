"""slackline bench"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from slackline.cli.options import Count, Devices, parse_as, set_up_jax
from slackline.cli.progress import training_bar, waiting
from slackline.cli.report import publish
from slackline.cli.train import outcome
from slackline.errors import SlacklineError, require_count
from slackline.store.run import RunFolder
from slackline.suites import suite as find_suite


@dataclass
class Bench:
    """Train and adapt several methods, print the table beside the paper's, write the page.

    Each method on each suite is a run folder below the output folder. Finished ones are skipped and
    interrupted ones go on, so the same command can be given again at any time.
    """

    suites: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SUITE...")]
    """One or several suites (`slackline list` names them)."""
    methods: tuple[str, ...] = ("single", "lop")
    """The methods to compare (`slackline list` names them)."""
    seeds: int = 10
    """How many seeds of each, all in one compiled program."""
    first_seed: int = 0
    """The seeds are first_seed, first_seed + 1, …"""
    steps: Count = None
    """Environment steps per seed (8e6 and 8M will do)."""
    shots: Count = None
    """K: how many values of z adaptation tries."""
    episodes: Count = None
    """Episodes for each of them."""
    score_episodes: Count = None
    """Fresh episodes for the final score."""
    preset: str = "paper"
    """Which hyper-parameters to use; `slackline list` names the presets of each suite."""
    out: Path = Path("runs/bench")
    """Folder to keep the runs and the page in."""
    devices: Devices = None
    """CPU devices to spread the seeds over."""
    dry_run: bool = False
    """Only print the command of every cell."""

    def run(self) -> None:
        from slackline.bench.cells import run_cell

        set_up_jax(self.devices)
        cells = self.cells()
        if self.dry_run:
            for cell in cells:
                print(
                    f"slackline train {cell.config.suite} --method {cell.config.method} "
                    f"--seeds {self.seeds} --first-seed {self.first_seed} "
                    f"--steps {cell.config.steps} --out {cell.path}"
                )
            return
        for cell in cells:
            with training_bar(f"{cell.config.method} on {cell.config.suite}") as on_tick:
                run_cell(cell, on_tick)
            print(outcome(RunFolder(cell.path)))
        with waiting("writing the page"):
            page = publish(self.out, self.out / "report.html")
        print(f"page: {page}")

    def cells(self) -> list:
        from slackline.adapt.kshot import Adapting
        from slackline.bench.cells import Cell, plan
        from slackline.training import configure

        require_count("seeds", self.seeds, high=10_000)
        if not self.suites or not self.methods:
            raise SlacklineError("name at least one suite and one method")
        seeds = tuple(range(self.first_seed, self.first_seed + self.seeds))
        cells: list[Cell] = []
        for name in dict.fromkeys(self.suites):
            adapting = Adapting.of(
                find_suite(name).protocol, self.shots, self.episodes, self.score_episodes
            )
            hyper = find_suite(name).preset(self.preset)
            configs = [
                configure(name, method, seeds=seeds, steps=self.steps, hyper=hyper)
                for method in dict.fromkeys(self.methods)
            ]
            cells += plan(configs, adapting, self.out)
        return cells


def parse(argv: list[str]) -> Bench:
    return parse_as("bench", Bench, argv)
