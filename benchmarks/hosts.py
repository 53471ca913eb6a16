"""Training on Gymnasium environments: ours, Stable-Baselines3, and what the environments allow.

    python benchmarks/hosts.py [--quick] [--envs 8 64] [--only Pendulum-v1] [--out FILE]
    python benchmarks/hosts.py --overlap [--quick] [--out FILE]

PPO with 64-64 networks, 2048 steps an iteration, 8 minibatches, 4 epochs, one seed. All take turns
in one run, the best time of each counts. The limit is the same vector of environments stepped with
random actions and nothing else. Stable-Baselines3 is left out where it is not installed.

With --overlap instead: whether stepping while learning pays, by the steps per second of trainings
with and without it, each on real MuJoCo through EnvPool, on a Gymnasium environment in Python, and
on one whose step waits a millisecond for something that is not the processor (a simulator on
another machine, a robot).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import timing
from timing import Contender, keep, take_turns

import slackline as sl
from slackline.learn.host import HostProgram
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner
from slackline.methods.catalogue import method
from slackline.suites.own import hyper_for

STEPS, MINIBATCHES, EPOCHS = 2048, 8, 4
HIDDEN = (64, 64)
IDS = ("Pendulum-v1", "LunarLander-v3", "HalfCheetah-v5")
Advance = Callable[[int], Any]


def ours(name: str, num_envs: int, overlap: bool) -> Advance:
    hyper = Hyper(
        algorithm="ppo",
        num_envs=num_envs,
        num_steps=STEPS // num_envs,
        minibatches=MINIBATCHES,
        epochs=EPOCHS,
        hidden=HIDDEN,
        critic_hidden=HIDDEN,
    )
    return trained(sl.gymnasium(name), "single", replace(hyper, overlap=overlap))


def trained(env: Any, name: str, hyper: Hyper) -> Advance:
    """A training of one seed."""
    return timing.training(HostProgram(Learner(env, 1000, method(name)), hyper, (0,)))


def theirs(name: str, num_envs: int) -> Advance | None:
    """Stable-Baselines3's PPO on its DummyVecEnv; None where it is not installed."""
    try:
        from stable_baselines3 import PPO  # type: ignore[import-not-found]
        from stable_baselines3.common.env_util import (  # type: ignore[import-not-found]
            make_vec_env,
        )
    except ImportError:
        return None
    model = PPO(
        "MlpPolicy",
        make_vec_env(name, num_envs),
        n_steps=STEPS // num_envs,
        batch_size=STEPS // MINIBATCHES,
        n_epochs=EPOCHS,
        policy_kwargs={"net_arch": list(HIDDEN)},
        device="cpu",
        seed=0,
    )
    return lambda iterations: model.learn(iterations * STEPS, reset_num_timesteps=False)


def limit(name: str, num_envs: int) -> Advance:
    """The environments alone, with actions that were drawn before."""
    vector: Any = gym.vector.SyncVectorEnv([lambda: gym.make(name)] * num_envs)
    vector.reset(seed=0)
    actions = [vector.action_space.sample() for _ in range(STEPS // num_envs)]

    def advance(iterations: int) -> Any:
        for _ in range(iterations):
            for action in actions:
                vector.step(action)
        return np.zeros(0)

    return advance


def compared(name: str, num_envs: int, quick: bool) -> dict[str, float]:
    """Steps per second of each."""
    advances = {
        "ours": ours(name, num_envs, overlap=False),
        "ours, overlapped": ours(name, num_envs, overlap=True),
        "Stable-Baselines3": theirs(name, num_envs),
        "the environments alone": limit(name, num_envs),
    }
    seconds = 1.0 if quick else 8.0
    each = {who: Contender(go, STEPS, seconds) for who, go in advances.items() if go is not None}
    take_turns(list(each.values()), 1 if quick else 4)
    return {who: contender.speed for who, contender in each.items()}


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


def overlapping() -> dict[str, tuple[Any, Hyper]]:
    """Environments whose trainings may overlap, and hyper-parameters."""
    cheetah = sl.suite("halfcheetah-mujoco")
    pendulum, remote = sl.gymnasium("Pendulum-v1"), sl.gymnasium(remotes)
    return {
        "HalfCheetah-v5 (EnvPool)": (cheetah.env, cheetah.presets["fast"]),
        "Pendulum-v1 (Gymnasium)": (pendulum, hyper_for(pendulum)),
        "a step that waits 1 ms": (remote, hyper_for(remote)),
    }


def gain(env: Any, hyper: Hyper, quick: bool) -> dict[str, float]:
    """Steps per second without and with overlap."""
    steps, budget = hyper.steps_per_iteration, 2.0 if quick else 8.0
    both = [
        Contender(trained(env, "lop", replace(hyper, overlap=overlap)), steps, budget)
        for overlap in (False, True)
    ]
    take_turns(both, 2 if quick else 4)
    usual, overlapped = (contender.speed for contender in both)
    return {"usual": usual, "overlapped": overlapped, "ratio": overlapped / usual}


def compare_overlap(quick: bool) -> dict[str, dict[str, float]]:
    found = {}
    for name, (env, hyper) in overlapping().items():
        found[name] = gain(env, hyper, quick)
        usual, overlapped, ratio = found[name].values()
        print(f"{name:28} {usual:9,.0f} steps/s, overlapped {overlapped:9,.0f}: × {ratio:.2f}")
    return found


def compare_with_others(
    names: Sequence[str], sizes: Sequence[int], quick: bool
) -> dict[str, dict[str, float]]:
    found = {}
    for name, num_envs in product(names, sizes):
        speeds = compared(name, num_envs, quick)
        found[f"{name}, {num_envs} environments"] = speeds
        words = ", ".join(f"{who} {speed:,.0f}" for who, speed in speeds.items())
        print(f"{name}, {num_envs} environments: {words} steps/s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument("--envs", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--only", nargs="+", default=list(IDS), metavar="ID")
    parser.add_argument("--overlap", action="store_true", help="with and without overlap alone")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    if options.overlap:
        found = compare_overlap(options.quick)
    else:
        found = compare_with_others(options.only, options.envs, options.quick)
    keep(found, options.out)


if __name__ == "__main__":
    main()
