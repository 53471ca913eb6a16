"""slackline tune"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from slackline.cli.options import Count, Devices
from slackline.cli.parsing import parse_as
from slackline.cli.progress import training_bar
from slackline.errors import SlacklineError
from slackline.runtime import set_up_jax
from slackline.shown import command
from slackline.store.run import folder_name
from slackline.suites.resolve import suite as find_suite


@dataclass
class Tune:
    """Choose hyper-parameters on the training environment, as the paper does.

    Trains a single policy for every combination of the grid, all in one compiled program, ranks
    them by their final return on the training environment, and writes the best where
    `slackline train SUITE --hyper FILE` reads it. No test environment is ever looked at.
    """

    suite: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SUITE")]
    """What to tune for: a suite (`slackline list` names them), or an environment of your own, as
    gym:ID, envpool:ID, module:function or a suite file (.toml)."""
    grid: tuple[str, ...] = ("lr=3e-4,1e-3,3e-3", "entropy=1e-3,1e-2", "gae_lambda=0.7,0.95,1")
    """Values to try, NAME=VALUE,VALUE,…; lr is both learning rates, other names are those of
    --hyper.NAME (`slackline train --help`)."""
    seeds: int = 3
    """Seeds for each combination."""
    steps: Count = None
    """Environment steps per seed."""
    out: Path | None = None
    """Where to write the choice. Default: runs/SUITE-hyper.json."""
    devices: Devices = None
    """CPU devices to spread the trainings over."""

    def run(self) -> None:
        from slackline.report.table import show
        from slackline.report.tables import tuning_table
        from slackline.store.choice import save_choice
        from slackline.tuning import tune

        set_up_jax(self.devices)
        suite = find_suite(self.suite)
        task = suite.train_task
        out = self.out or Path("runs") / f"{folder_name(self.suite, 'hyper')}.json"
        if out.exists():
            raise SlacklineError(f"{out}: exists already; choose another file with --out")
        grid = parse_grid(self.grid)
        steps = task.steps if self.steps is None else self.steps
        with training_bar(f"tuning on {task.name}") as on_tick:
            ranking = tune(task, grid, seeds=self.seeds, steps=steps, on_tick=on_tick)
        show(tuning_table(suite, ranking, seeds=self.seeds, steps=steps))
        save_choice(out, task, ranking, seeds=self.seeds, steps=steps)
        print(f"next: {command('train', self.suite, '--hyper', out)}")


def parse_grid(words: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    """["lr=1e-3,3e-3"] -> {"lr": (1e-3, 3e-3)}"""
    grid = {}
    for word in words:
        name, _, values = word.partition("=")
        try:
            grid[name.strip()] = tuple(float(value) for value in values.split(","))
        except ValueError:
            raise SlacklineError(
                f"grid is {word!r}; it must look like entropy=0.001,0.01"
            ) from None
    return grid


def parse(argv: list[str]) -> Tune:
    return parse_as("tune", Tune, argv)
