"""How long the page of many runs takes to build from the store alone, and how large it is.

    python benchmarks/page.py              # 1,000 runs of seven suites: under 20 s and 10 MB
    python benchmarks/page.py --runs 100 --suites halfcheetah    # one suite: under 3 MB

The runs are made up (random returns), written by the store's own writers. Keep the machine idle.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import tyro

from slackline.methods.catalogue import method as find_method
from slackline.report.page import write_page
from slackline.report.results import load_results
from slackline.store.run import RunConfig, RunFolder
from slackline.store.scores import SCHEMA, merge_scores
from slackline.suites import builtin
from slackline.suites.suite import TRAIN, Suite

SUITES = ("cartpole", "acrobot", "pendulum", "maze2d", "minigrid", "halfcheetah", "ant")
METHODS = ("single", "ensemble", "lop", "cop", "bop", "diayn_r", "senses")
BETAS = (0.1, 1.0, 10.0)
SEEDS = 5
FRESH = 10
SECONDS, WHOLE, ONE_SUITE = 20.0, 10e6, 3e6
"""What is promised: of 1,000 runs, of the whole paper's page, of one suite's."""


@dataclass
class Benchmark:
    """Make runs, build their page, and say how long that took and how large it is."""

    runs: int = 1000
    suites: tuple[str, ...] = SUITES
    out: Path | None = None
    """Where to leave runs and page; a temporary folder, removed, if it is not given."""

    def run(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = self.out or Path(temporary)
            began = time.perf_counter()
            for config, number in self.configs():
                make_run(builtin(config.suite), config, folder / "runs" / f"{number:04d}")
            made = time.perf_counter() - began
            began = time.perf_counter()
            results = load_results(folder / "runs")
            loaded = time.perf_counter() - began
            page = write_page(results, folder / "report.html")
            seconds, size = time.perf_counter() - began, page.stat().st_size
        limit = ONE_SUITE if len(self.suites) == 1 else WHOLE
        found = {
            "runs": self.runs,
            "suites": len(self.suites),
            "making the runs, s": round(made, 1),
            "loading, s": round(loaded, 1),
            "whole, s": round(seconds, 1),
            "MB": round(size / 1e6, 2),
            "within limits": bool(seconds < SECONDS and size < limit),
        }
        print(json.dumps(found, indent=1))

    def configs(self) -> Iterator[tuple[RunConfig, int]]:
        """Blocks of seeds of every suite, method and β in turn, until there are enough."""
        cells = [
            (suite, method, beta)
            for suite in self.suites
            for method in METHODS
            for beta in (BETAS if "beta" in find_method(method).options else (None,))
        ]
        for number in range(self.runs):
            block, cell = divmod(number, len(cells))
            suite, method, beta = cells[cell]
            options = {} if beta is None else {"beta": beta}
            seeds = tuple(range(SEEDS * block, SEEDS * (block + 1)))
            yield config_of(builtin(suite), method, options, seeds), number


def config_of(
    suite: Suite, method: str, options: dict[str, float], seeds: tuple[int, ...]
) -> RunConfig:
    return RunConfig(
        suite=suite.name,
        method=method,
        options=find_method(method, **options).options,
        hyper=suite.hyper,
        seeds=seeds,
        steps=100 * suite.hyper.steps_per_iteration,
    )


def make_run(suite: Suite, config: RunConfig, path: Path) -> None:
    run = RunFolder(path)
    run.create(config)
    for i in range(100):
        returns = [float(i + seed % 7) for seed in config.seeds]
        steps = (i + 1) * config.hyper.steps_per_iteration
        run.append_progress({"iteration": i, "steps": steps, "seconds": i, "return": returns})
    run.finish(1.0)
    merge_scores(run.scores_file, scores_of(suite, config))


def scores_of(suite: Suite, config: RunConfig, shots: int = 10) -> pl.DataFrame:
    """Ten candidates once each, the best of them ten times more, everywhere."""
    generator = np.random.default_rng(list(config.seeds))
    names = [variation.name for variation in (TRAIN, *suite.variations)]
    zs = config.resolved_method.latent.candidates(shots)
    parts = []
    for seed in config.seeds:
        for name in names:
            tried = generator.normal(100.0, 20.0, len(zs))
            best = int(tried.argmax())
            number = [*range(len(zs)), *[best] * FRESH]
            columns = {
                "suite": suite.name,
                "method": config.method,
                "seed": seed,
                "variation": name,
                "shots": shots,
                "phase": ["select"] * len(zs) + ["score"] * FRESH,
                "candidate": number,
                "z": [zs[k].tolist() for k in number],
                "episode": [*[0] * len(zs), *range(FRESH)],
                "return": [*tried, *generator.normal(100.0, 20.0, FRESH)],
                "adapter": "grid",
                "default_return": None,
            }
            parts.append(pl.DataFrame(columns, schema=SCHEMA))
    return pl.concat(parts)


if __name__ == "__main__":
    tyro.cli(Benchmark).run()
