"""Why are most of MiniGrid's test mazes reached by nobody? A table with a row for each maze.

    python benchmarks/mazes.py [--seeds 10] [--steps 1000000]

Its columns: how often uniformly random actions reach the goal within the time limit; the return of
a single policy trained in that very maze (is it too hard for a network without memory?); of one
trained in the suite's own maze and acting greedily, as it is scored; and how often that one reaches
the goal if its actions are sampled instead (is it stuck?). The last two once more with ten times
the entropy bonus, so that it has seen more of its maze.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import slackline as sl
from slackline.envs.minigrid import MultiRoom, MultiRoomParams
from slackline.runtime import set_up_jax
from slackline.suites.minigrid import SUITE
from slackline.suites.suite import TRAIN
from slackline.types import Array

EPISODES = 200


@dataclass(frozen=True, eq=False)
class OneMaze(MultiRoom):
    """MultiRoom whose standard maze is this one."""

    maze: MultiRoomParams

    def default_params(self) -> MultiRoomParams:
        return self.maze


def reaches(maze: MultiRoomParams, line: sl.Line | None, seed: int) -> float:
    """Share of episodes with sampled actions (of nobody: uniform ones) that reach the goal."""
    env, limit = MultiRoom(), int(maze.max_steps)
    network = None if line is None else jax.tree.map(lambda x: jnp.asarray(x), line.acting)

    def episode(key: Array) -> Array:
        def step(carry: tuple, key: Array) -> tuple:
            observation, state, reached = carry
            logits = jnp.zeros(7) if network is None else network(observation)
            action = jax.random.categorical(key, logits)
            observation, state, _, arrived = env.step(key, state, action, maze)
            return (observation, state, reached | arrived), None

        start = (*env.reset(key, maze), jnp.zeros((), bool))
        return jax.lax.scan(step, start, jax.random.split(key, limit))[0][2]

    keys = jax.random.split(jax.random.key(seed), EPISODES)
    return float(jnp.mean(jax.jit(jax.vmap(episode))(keys)))


def greedy(lines: list[sl.Line], name: str) -> float:
    return float(np.mean([line.adapt(name).score for line in lines]))


def main(seeds: int = 10, steps: int = 1_000_000) -> None:
    """Train, play, print."""
    set_up_jax(None)
    explore = replace(SUITE.hyper, entropy=10 * SUITE.hyper.entropy)
    own, curious = (
        sl.train_seeds("minigrid", "single", seeds=seeds, steps=steps, hyper=hyper)
        for hyper in (SUITE.hyper, explore)
    )
    columns = (
        "random",
        "trained there",
        "greedy",
        "sampled",
        "greedy, entropy × 10",
        "sampled, × 10",
    )
    table = Table(title=f"MiniGrid, Single, {seeds} seeds × {steps:,} steps")
    for name in ("maze", *columns):
        table.add_column(name, justify="left" if name == "maze" else "right")
    for variation in (TRAIN, *SUITE.variations):
        maze = variation.apply(MultiRoom().default_params())
        there = replace(SUITE, name=f"minigrid-{variation.name}", env=OneMaze(maze))
        trained = sl.train_seeds(there, "single", seeds=seeds, steps=steps)
        found = [reaches(maze, None, 0), greedy(trained, TRAIN.name)]
        for lines in (own, curious):
            found += [
                greedy(lines, variation.name),
                float(np.mean([reaches(maze, line, 1) for line in lines])),
            ]
        table.add_row(variation.name, *(f"{x:.3f}" for x in found))
    Console(width=120).print(table)


if __name__ == "__main__":
    tyro.cli(main)
