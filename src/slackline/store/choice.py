"""Tuned hyper-parameters: what `slackline tune` writes and `slackline train --hyper` reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from slackline.errors import SlacklineError
from slackline.io.files import check_format, read_json, write_json
from slackline.learn.hyper import Hyper, hyper_from_json
from slackline.store.run import provenance
from slackline.suites.suite import TrainTask

FORMAT = "slackline-hyper"
SCHEMA = 1


@dataclass(frozen=True)
class Combination:
    """One combination of the grid and the returns of its single policies in training."""

    changed: dict[str, float]
    hyper: Hyper
    scores: tuple[float, ...]
    """Mean deterministic return at the end of training, by seed."""
    training_return: float
    """Mean return while training: higher is faster."""

    @property
    def score(self) -> float:
        return float(np.mean(self.scores))


def save_choice(
    path: Path, task: TrainTask, ranking: list[Combination], *, seeds: int, steps: int
) -> None:
    """Write the winner (and the whole ranking) where `train --hyper FILE` reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        path,
        {
            "format": FORMAT,
            "schema": SCHEMA,
            "suite": task.name,
            "hyper": asdict(ranking[0].hyper),
            "seeds": seeds,
            "steps": steps,
            "ranking": [
                c.changed
                | {"score": _finite(c.score), "training_return": _finite(c.training_return)}
                for c in ranking
            ],
            "provenance": provenance(),
        },
    )


def _finite(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None


def load_choice(path: Path, suite: str) -> Hyper:
    """The hyper-parameters of a file that `slackline tune` wrote for this suite."""
    values = read_json(path)
    check_format(path, values.get("format"), values.get("schema"), expected=FORMAT, newest=SCHEMA)
    if values.get("suite") != suite:
        raise SlacklineError(f"{path}: was tuned for {values.get('suite')}, not for {suite}")
    try:
        hyper = hyper_from_json(values["hyper"])
        hyper.check()
    except (KeyError, TypeError, SlacklineError) as error:
        raise SlacklineError(f"{path}: has no usable hyper-parameters ({error})") from None
    return hyper
