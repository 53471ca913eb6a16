"""A line whose return is known at every z, as an analysis sees it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from probes import AIM_SUITE

from slackline.analyses.analysis import Subject
from slackline.api import Line
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.mlp import MLP, Layer
from slackline.subspace import Subspace

ENDS = (-2.0, 2.0)


class Known(Subject):
    """A run that is in no folder."""

    def __init__(self, subspaces: list[Subspace]):
        run: Any = SimpleNamespace(path=Path(subspaces[0].method.name))
        super().__init__(run, AIM_SUITE, subspaces[0].method.title)
        config = SimpleNamespace(
            seeds=tuple(s.seed for s in subspaces),
            resolved_method=subspaces[0].method,
            suite="aim",
        )
        self.__dict__.update(subspaces=subspaces, config=config)


def acting_alike(method: str, biases: tuple[float, ...], seed: int = 0) -> Line:
    """Policies that act the same whatever they see: 1 + 2 tanh of a point between the biases."""
    bias = np.array(biases, np.float32)[:, None]
    policy = MLP((Layer(np.zeros((len(biases), 1, 1), np.float32), bias),))  # type: ignore[arg-type]
    action = AIM_SUITE.jax_env.action
    return Line("aim", CATALOGUE[method], seed, action, policy, policy, home=AIM_SUITE)


def line(num_seeds: int = 2) -> Known:
    return Known([acting_alike("lop", ENDS, seed) for seed in range(num_seeds)])


def single(bias: float = 0.5, num_seeds: int = 2) -> Known:
    return Known([acting_alike("single", (bias,), seed) for seed in range(num_seeds)])


def return_of(first: np.ndarray, target: Any) -> np.ndarray:
    """Of z = (first, 1 − first)."""
    action = 1.0 + 2.0 * np.tanh(first * ENDS[0] + (1.0 - first) * ENDS[1])
    return -((action - target) ** 2)
