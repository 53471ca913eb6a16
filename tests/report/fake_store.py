"""Small stores of made-up results, written by the real writers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from slackline.methods.catalogue import method as find_method
from slackline.store.run import RunConfig, RunFolder
from slackline.store.scores import SCHEMA, merge_scores
from slackline.suites import suite as find_suite
from slackline.suites.suite import TRAIN

SUITE = find_suite("cartpole")
VARIATIONS = tuple(v.name for v in SUITE.variations)
SELECT_EPISODES, SCORE_EPISODES = 4, 5


@dataclass
class Store:
    """A folder of runs, and the episodes that went into it."""

    path: Path
    fresh: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """Fresh returns by (method, K): (seed, variation, episode); Train, if there, comes first."""
    chosen: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """(seed, variation)"""

    def add(
        self,
        method: str,
        *,
        seeds: int = 3,
        shots: tuple[int, ...] = (10,),
        variations: tuple[str, ...] = (TRAIN.name, *VARIATIONS),
        level: float = 100.0,
        command: list[str] | None = None,
    ) -> RunFolder:
        """A finished run with its progress and scores."""
        config = RunConfig(
            suite=SUITE.name,
            method=method,
            options=find_method(method).options,
            hyper=SUITE.hyper,
            seeds=tuple(range(seeds)),
            steps=10_240,
        )
        run = RunFolder(self.path / f"{SUITE.name}-{method}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", command or ["slackline", "bench", "cartpole"])
            run.create(config)
        for line in progress(seeds):
            run.append_progress(line)
        run.finish(75.0)
        for k in shots:
            merge_scores(run.scores_file, self.episodes(method, k, seeds, variations, level))
        return run

    def episodes(
        self, method: str, shots: int, seeds: int, variations: tuple[str, ...], level: float
    ) -> pl.DataFrame:
        """Random returns; each seed keeps the candidate with the best mean."""
        generator = np.random.default_rng([len(method), shots, seeds])
        zs = find_method(method).latent.candidates(shots)
        shape = (seeds, len(variations), len(zs), SELECT_EPISODES)
        tried = generator.normal(level, 20.0, shape).astype(np.float32)
        chosen = tried.mean(axis=-1).argmax(axis=-1)
        fresh = generator.normal(level, 20.0, (*shape[:2], SCORE_EPISODES)).astype(np.float32)
        self.fresh[method, shots], self.chosen[method, shots] = fresh, chosen
        head = {"suite": SUITE.name, "method": method, "shots": shots}
        rows = []
        for s, v, k, m in np.ndindex(shape):
            row = {"seed": s, "variation": variations[v], "candidate": k, "z": zs[k].tolist()}
            rows.append(head | row | {"phase": "select", "episode": m, "return": tried[s, v, k, m]})
        for s, v, m in np.ndindex(fresh.shape):
            k = int(chosen[s, v])
            row = {"seed": s, "variation": variations[v], "candidate": k, "z": zs[k].tolist()}
            rows.append(head | row | {"phase": "score", "episode": m, "return": fresh[s, v, m]})
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
