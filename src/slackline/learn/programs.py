"""Which program trains on which environments, and the loop that advances it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import jax

from slackline.learn.host import HostProgram
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.learn.program import Program, Progress


class Trainer(Protocol):
    """Initialises and advances all copies of a learner, in JAX or outside."""

    def init(self) -> TrainState: ...

    def shapes(self) -> TrainState:
        """The train state's shapes and types, without computing it."""
        ...

    def place(self, state: TrainState) -> TrainState:
        """A state from elsewhere (a file), laid out on the devices."""
        ...

    def advance(self, state: TrainState, iterations: int) -> tuple[TrainState, Progress]: ...

    def keep(self) -> Mapping[str, Any]:
        """What a checkpoint must hold besides the state: arrays by name, of environments outside
        JAX."""
        ...

    def recall(self, kept: Mapping[str, Any], path: Path) -> None:
        """Go on with what a checkpoint, `path`, holds of the environments."""
        ...

    def close(self) -> None:
        """Close the environments."""
        ...


STRIDES = 200
"""A training reports its progress this many times."""


def strides(
    program: Trainer, state: TrainState, done: int, iterations: int, pause: int = 0
) -> Iterator[tuple[TrainState, int, Progress]]:
    """Train until `iterations` are done; after every stride yield (state, iterations done,
    progress of the stride). One stride ends at `pause`."""
    stride = math.ceil(iterations / STRIDES)
    while done < iterations:
        now = min(stride, *(end - done for end in (pause, iterations) if end > done))
        state, progress = program.advance(state, now)
        jax.block_until_ready(state)
        done += now
        yield state, done, progress


def trainer_of(
    learner: Learner,
    hyper: Hyper,
    seeds: Sequence[int],
    members: int = 1,
    budget: float = math.inf,
    hyper_axis: int | None = None,
) -> Trainer:
    """One compiled program for environments in JAX, a loop around a pool for those outside.
    Training distinguishes the two only here."""
    kind = Program if learner.env.in_jax else HostProgram
    return kind(learner, hyper, seeds, members, budget, hyper_axis)
