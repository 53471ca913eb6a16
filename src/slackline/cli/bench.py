"""slackline bench"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from slackline.cli.options import Count, Devices, MethodOptions, Switch, parse_as
from slackline.cli.progress import training_bar
from slackline.cli.report import publish
from slackline.cli.train import naming, outcome
from slackline.errors import SlacklineError, require_count, unknown
from slackline.methods.catalogue import DEFAULT
from slackline.methods.catalogue import method as find_method
from slackline.progress import waiting
from slackline.runtime import set_up_jax
from slackline.store.run import RunFolder
from slackline.suites.resolve import suite as find_suite

if TYPE_CHECKING:
    from slackline.bench.cells import Cell


@dataclass
class Bench:
    """Train and adapt several methods, print the table beside the paper's, write the page.

    Each method on each suite is a run folder below the output folder. Finished ones are skipped and
    interrupted ones go on, so the same command can be given again at any time.
    """

    suites: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SUITE...")]
    """One or several suites (`slackline list` names them), or suite files of your own (.toml)."""
    methods: tuple[str, ...] = ("single", DEFAULT)
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
    methods_options: tyro.conf.OmitArgPrefixes[MethodOptions] = field(default_factory=MethodOptions)
    out: Path = Path("runs/bench")
    """Folder to keep the runs and the page in."""
    devices: Devices = None
    """CPU devices to spread the seeds over, or the blocks of one. Default: all cores."""
    dry_run: Switch = False
    """Only print the command of every cell."""

    def run(self) -> None:
        from slackline.bench.cells import bench_folder

        set_up_jax(self.devices)
        cells = self.cells()
        if self.dry_run:
            for cell in cells:
                print(self.command_of(cell))
            return
        with bench_folder(self.out):
            self.run_cells(cells)

    def run_cells(self, cells: list[Cell]) -> None:
        """Train and adapt what is not finished yet, then write the page."""
        from slackline.bench.cells import run_cell

        for cell in cells:
            title = f"{cell.config.method} on {cell.config.suite}"
            with training_bar(title, cell.suite.digits) as on_tick:
                run_cell(cell, on_tick)
            print(outcome(RunFolder(cell.path)))
        with waiting("writing the page"):
            page = publish(self.out, self.out / "report.html")
        print(f"page: {page}")

    def command_of(self, cell: Cell) -> str:
        """The two commands that would make a cell by hand."""
        given = self.options_of(cell.config.method).items()
        how, out = cell.adapting, str(cell.path)
        train = {
            "--method": cell.config.method,
            "--seeds": self.seeds,
            "--first-seed": self.first_seed,
            "--steps": cell.config.steps,
            "--preset": self.preset,
        }
        adapt = {
            "--shots": how.shots,
            "--episodes": how.episodes,
            "--score-episodes": how.score_episodes,
        }
        options = [word for k, v in given for word in ("--option", f"{k}={v}")]
        trained = ["train", cell.config.suite, *flags(train), *options, "--out", out]
        adapted = ["adapt", out, *flags(adapt), *naming(cell.suite)]
        return " && ".join(shlex.join(["slackline", *words]) for words in (trained, adapted))

    def options_of(self, name: str) -> dict[str, Any]:
        """Those of the given options that a method has; one that none has is an error."""
        given = self.methods_options.given()
        known = {option for method in self.methods for option in find_method(method).options}
        for option in given:
            if option not in known:
                raise unknown("option of these methods", option, sorted(known))
        return {k: v for k, v in given.items() if k in find_method(name).options}

    def cells(self) -> list[Cell]:
        from slackline.adapt.kshot import Adapting
        from slackline.bench.cells import plan
        from slackline.training import configure

        require_count("seeds", self.seeds, high=10_000)
        if not self.suites or not self.methods:
            raise SlacklineError("name at least one suite and one method")
        seeds = tuple(range(self.first_seed, self.first_seed + self.seeds))
        cells: list[Cell] = []
        for name in dict.fromkeys(self.suites):
            suite = find_suite(name)
            adapting = Adapting.of(suite.protocol, self.shots, self.episodes, self.score_episodes)
            configs = [
                configure(
                    suite,
                    method,
                    seeds=seeds,
                    steps=self.steps,
                    preset=self.preset,
                    **self.options_of(method),
                )
                for method in dict.fromkeys(self.methods)
            ]
            cells += plan(suite, configs, adapting, self.out)
        return cells


def parse(argv: list[str]) -> Bench:
    return parse_as("bench", Bench, argv)


def flags(values: dict[str, Any]) -> list[str]:
    """The words of options and their values."""
    return [str(word) for pair in values.items() for word in pair]
