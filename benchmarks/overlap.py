"""Whether stepping while learning pays: steps per second of a training with and without `overlap`.

    python benchmarks/overlap.py [--quick] [--out FILE]

One seed each on environments outside JAX: real MuJoCo through EnvPool, a Gymnasium environment in
Python, and one whose step waits a millisecond for something that is not the processor (a simulator
on another machine, a robot). Both trainings take turns; the best time of each counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
from timing import Contender, keep, take_turns

import slackline as sl
from slackline.learn.host import HostProgram
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner
from slackline.methods.catalogue import method
from slackline.suites.own import hyper_for


class Remote(gym.Env):
    """Four numbers; only the vector below steps it."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}


def remotes(num_envs: int) -> Any:
    """Vectors whose members wait together, as those of another machine would."""

    class Waiting(gym.vector.SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            time.sleep(1e-3)
            seen = np.zeros((num_envs, 4), np.float32)
            no = np.zeros(num_envs, bool)
            return seen, np.zeros(num_envs), no, no, {}

    return Waiting([Remote] * num_envs)


def trainings() -> dict[str, tuple[Any, Hyper]]:
    cheetah = sl.suite("halfcheetah-mujoco")
    pendulum, remote = sl.gymnasium("Pendulum-v1"), sl.gymnasium(remotes)
    return {
        "HalfCheetah-v5 (EnvPool)": (cheetah.env, cheetah.presets["fast"]),
        "Pendulum-v1 (Gymnasium)": (pendulum, hyper_for(pendulum)),
        "a step that waits 1 ms": (remote, hyper_for(remote)),
    }


def advancer(env: Any, hyper: Hyper) -> Callable[[int], Any]:
    program = HostProgram(Learner(env, 1000, method("lop")), hyper, (0,))
    state = program.init()

    def advance(iterations: int) -> Any:
        nonlocal state
        state, _ = program.advance(state, iterations)
        return jax.block_until_ready(state)

    return advance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    found = {}
    for name, (env, hyper) in trainings().items():
        both = [
            Contender(
                advancer(env, replace(hyper, overlap=overlap)),
                hyper.steps_per_iteration,
                2.0 if options.quick else 8.0,
            )
            for overlap in (False, True)
        ]
        take_turns(both, 2 if options.quick else 4)
        usual, overlapped = (contender.speed for contender in both)
        found[name] = {"usual": usual, "overlapped": overlapped, "ratio": overlapped / usual}
        print(
            f"{name:28} {usual:9,.0f} steps/s, overlapped {overlapped:9,.0f}: "
            f"× {overlapped / usual:.2f}"
        )
    keep(found, options.out)


if __name__ == "__main__":
    main()
