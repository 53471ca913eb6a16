"""Training on Gymnasium environments: ours, Stable-Baselines3, and what the environments allow.

    python benchmarks/hosts.py [--quick] [--envs 8 64] [--only Pendulum-v1] [--out FILE]

PPO with 64-64 networks, 2048 steps an iteration, 8 minibatches, 4 epochs, one seed. All take turns
in one run, the best time of each counts. The limit is the same vector of environments stepped with
random actions and nothing else. Stable-Baselines3 is left out where it is not installed.
"""

from __future__ import annotations

import argparse
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
    learner = Learner(sl.gymnasium(name), 1000, method("single"))
    program = HostProgram(learner, replace(hyper, overlap=overlap), (0,))
    state = program.init()

    def advance(iterations: int) -> Any:
        nonlocal state
        state, _ = program.advance(state, iterations)
        return jax.block_until_ready(state)

    return advance


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument("--envs", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--only", nargs="+", default=list(IDS), metavar="ID")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    found = {}
    for name in options.only:
        for num_envs in options.envs:
            speeds = compared(name, num_envs, options.quick)
            found[f"{name}, {num_envs} environments"] = speeds
            words = ", ".join(f"{who} {speed:,.0f}" for who, speed in speeds.items())
            print(f"{name}, {num_envs} environments: {words} steps/s", flush=True)
    keep(found, options.out)


if __name__ == "__main__":
    main()
