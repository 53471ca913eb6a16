"""Timing that is fair on a machine whose speed drifts: contenders take turns, best of each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax


def keep(result: Any, file: Path | None) -> None:
    """As JSON, where a file was named."""
    if file is not None:
        file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - begun


def training(program: Any) -> Callable[[int], Any]:
    """Go on with a program's training, `iterations` a call."""
    state = program.init()

    def advance(iterations: int) -> Any:
        nonlocal state
        state, _ = program.advance(state, iterations)
        return state

    return advance


class Contender:
    """Something that advances by iterations; its first call is timed as its compilation."""

    def __init__(self, advance: Callable[[int], Any], steps_each: int, budget: float):
        self.advance, self.steps_each, self.best = advance, steps_each, float("inf")
        self.compile_seconds = seconds(lambda: advance(1))
        trial = 1
        while (spent := seconds(lambda: advance(trial))) < budget / 10:  # noqa: B023
            trial *= 4
        self.iterations = max(1, int(budget * trial / spent))

    def run(self) -> None:
        self.best = min(self.best, seconds(lambda: self.advance(self.iterations)))

    @property
    def seconds_each(self) -> float:
        return self.best / self.iterations

    @property
    def speed(self) -> float:
        return self.steps_each / self.seconds_each

    def result(self) -> dict[str, float]:
        return {"steps_per_second": self.speed, "compile_seconds": self.compile_seconds}


def take_turns(contenders: Sequence[Contender], rounds: int) -> None:
    for _ in range(rounds):
        for contender in contenders:
            contender.run()
