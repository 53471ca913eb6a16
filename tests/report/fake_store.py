"""Small stores of made-up results, written by the real writers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from slackline.methods.catalogue import method as find_method
from slackline.store.run import RunConfig, RunFolder
from slackline.store.scores import SCHEMA, merge_scores
from slackline.suites.resolve import suite as find_suite
from slackline.suites.suite import TRAIN

SUITE = find_suite("cartpole")
VARIATIONS = tuple(v.name for v in SUITE.variations)
SELECT_EPISODES, SCORE_EPISODES = 4, 5


@dataclass
class Store:
    """A folder of runs, and the episodes that went into it."""

    path: Path
    fresh: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """Fresh returns by (folder, K): (seed, variation, episode); Train, if there, comes first."""
    tried: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """Selection returns: (seed, variation, candidate, episode)."""
    chosen: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """(seed, variation)"""

    def add(
        self,
        method: str,
        *,
        folder: str = "",
        suite: str = SUITE.name,
        options: dict[str, Any] | None = None,
        hyper: dict[str, Any] | None = None,
        first_seed: int = 0,
        seeds: int = 3,
        steps: int = 10_240,
        shots: tuple[int, ...] = (10,),
        variations: tuple[str, ...] | None = None,
        select_episodes: int = SELECT_EPISODES,
        level: float = 100.0,
        command: list[str] | None = None,
        from_single: int = 0,
    ) -> RunFolder:
        """A finished run with its progress and scores, in a folder named after the method."""
        found = find_suite(suite)
        config = RunConfig(
            suite=suite,
            method=method,
            options=find_method(method, **(options or {})).options,
            hyper=replace(found.hyper, **(hyper or {})),
            seeds=tuple(range(first_seed, first_seed + seeds)),
            steps=steps,
            from_single=from_single,
        )
        run = RunFolder(self.path / (folder or f"{suite}-{method}"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", command or ["slackline", "bench", "cartpole"])
            run.create(config)
        for line in progress(seeds):
            run.append_progress(line)
        run.finish(75.0)
        if variations is None:
            variations = (TRAIN.name, *(v.name for v in found.variations))
        for k in shots:
            rows = self.episodes(config, folder or method, k, variations, select_episodes, level)
            merge_scores(run.scores_file, rows)
        return run

    def episodes(
        self,
        config: RunConfig,
        name: str,
        shots: int,
        variations: tuple[str, ...],
        select_episodes: int,
        level: float,
    ) -> pl.DataFrame:
        """Random returns; each seed keeps the candidate with the best mean."""
        seeds, method = config.seeds, config.method
        folder = () if name == method else name.encode()
        generator = np.random.default_rng([len(method), shots, len(seeds), *folder])
        zs = config.resolved_method.latent.candidates(shots)
        shape = (len(seeds), len(variations), len(zs), select_episodes)
        tried = generator.normal(level, 20.0, shape).astype(np.float32)
        chosen = tried.mean(axis=-1).argmax(axis=-1)
        fresh = generator.normal(level, 20.0, (*shape[:2], SCORE_EPISODES)).astype(np.float32)
        self.fresh[name, shots], self.tried[name, shots] = fresh, tried
        self.chosen[name, shots] = chosen
        head = {"suite": config.suite, "method": method, "shots": shots, "adapter": "grid"}
        rows = []
        for s, v, k, m in np.ndindex(shape):
            row = {"seed": seeds[s], "variation": variations[v], "candidate": k, "episode": m}
            row |= {"z": zs[k].tolist(), "phase": "select", "return": tried[s, v, k, m]}
            rows.append(head | row)
        for s, v, m in np.ndindex(fresh.shape):
            k = int(chosen[s, v])
            row = {"seed": seeds[s], "variation": variations[v], "candidate": k, "episode": m}
            row |= {"z": zs[k].tolist(), "phase": "score", "return": fresh[s, v, m]}
            rows.append(head | row)
        return pl.DataFrame(rows, schema=SCHEMA)


def progress(seeds: int) -> list[dict]:
    """A rising curve; at first no seed has ended an episode, then all but the last."""
    lines = []
    for i in range(20):
        returns: list[float | None] = [10.0 + 5.0 * i + s for s in range(seeds)]
        if i < 3:
            returns[-1] = None
        if i == 0:
            returns = [None] * seeds
        lines.append({"iteration": i + 1, "steps": 512 * (i + 1), "seconds": i, "return": returns})
    return lines
