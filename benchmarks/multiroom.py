"""How fast our MultiRoom is against the Farama package's, stepping alone: steps per second.

    taskset -c 0 python benchmarks/multiroom.py [--quick] [--out FILE]

Both take random actions in the mazes of the suite, start anew where an episode ends and make every
observation. Ours run as one batch, either all in the training maze (`one`, as in training) or each
in any of the seven (`any`, as in adaptation). They take turns; the best time of each counts, in
processor time, so that other programs on the machine disturb it little. `taskset` keeps XLA to the
one core that Python has.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from timing import keep

import slackline as sl
from slackline.envs.minigrid import multi_room_env, quiet_minigrid
from slackline.rollout.compiled import where_done
from slackline.suites.suite import TRAIN

SUITE = sl.suite("minigrid")
KINDS = [(seed, 2, 4) for seed in range(4)] + [(seed, 4, 5) for seed in (1, 2, 3)]
"""(seed, rooms, size) of the suite's mazes."""


def python_steps() -> Callable[[int], Any]:
    """The real environments in turn, with random actions."""
    with quiet_minigrid():
        made = [
            (s, multi_room_env()(minNumRooms=n, maxNumRooms=n, maxRoomSize=z)) for s, n, z in KINDS
        ]
    generator = np.random.default_rng(0)

    def run(num_steps: int) -> None:
        for seed, env in made:
            env.reset(seed=seed)
            for action in generator.integers(7, size=num_steps // len(made)).tolist():
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset(seed=seed)

    return run


def our_steps(num_envs: int, everywhere: bool) -> Callable[[int], Any]:
    """A batch of ours, with random actions; the sum of all observations is kept."""
    env = SUITE.jax_env
    variations = [TRAIN, *SUITE.variations] if everywhere else [TRAIN]
    stacked = SUITE.params_of(variations)
    own = jax.tree.map(lambda leaf: leaf[np.arange(num_envs) % len(variations)], stacked)
    params, axis = (own, 0) if everywhere else (env.default_params(), None)
    limit = jnp.broadcast_to(env.time_limit(params, SUITE.horizon), num_envs)
    reset = jax.vmap(env.reset, in_axes=(None, axis), axis_size=num_envs)
    step = jax.vmap(env.step, in_axes=(None, 0, 0, axis))

    @jax.jit
    def run(params: Any, num_steps: jax.Array) -> Any:
        def act(i: jax.Array, carry: Any) -> Any:
            elapsed, state, total = carry
            key = jax.random.fold_in(jax.random.key(0), i)
            action = jax.random.bits(key, (num_envs,), jnp.uint8).astype(jnp.int32) % 7
            observation, state, reward, terminated = step(key, state, action, params)
            over = terminated | (elapsed + 1 >= limit)
            fresh = (jnp.zeros_like(elapsed), reset(key, params)[1])
            elapsed, state = where_done(over, fresh, (elapsed + 1, state))
            return elapsed, state, total + observation + reward[:, None]

        observation, state = reset(jax.random.key(0), params)
        first = (jnp.zeros(num_envs, jnp.int32), state, jnp.zeros_like(observation))
        return jax.lax.fori_loop(0, num_steps, act, first)

    return lambda num_steps: run(params, jnp.int32(num_steps // num_envs))


def seconds(work: Callable[[], Any]) -> float:
    """Of processor time, summed over threads."""
    begun = time.process_time()
    jax.block_until_ready(work())
    return time.process_time() - begun


class Contender:
    """Something that takes a number of steps; its first call is its compilation."""

    def __init__(self, run: Callable[[int], Any], num_steps: int, budget: float):
        self.run, self.best = run, float("inf")
        self.compile_seconds = seconds(lambda: run(num_steps))
        pace = min(seconds(lambda: run(num_steps)) for _ in range(2)) / num_steps
        self.num_steps = max(num_steps, int(budget / pace))

    def time(self) -> None:
        self.best = min(self.best, seconds(lambda: self.run(self.num_steps)) / self.num_steps)

    @property
    def speed(self) -> float:
        return 1.0 / self.best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short strides: a smoke test")
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 320, 1024, 4096])
    parser.add_argument("--out", type=Path, help="also write JSON here")
    arguments = parser.parse_args()
    budget, rounds = (0.1, 3) if arguments.quick else (0.5, 10)
    field = {"python": Contender(python_steps(), 700, budget)}
    for num in arguments.batches:
        for mazes in ("one", "any"):
            run = our_steps(num, everywhere=mazes == "any")
            field[f"{num} envs, {mazes} maze"] = Contender(run, 20 * num, budget)
    for _ in range(rounds):
        for contender in field.values():
            contender.time()
    print(f"{'':24}{'steps/s':>14}{'ratio':>10}{'compile s':>12}")
    results = {}
    for name, contender in field.items():
        ratio = contender.speed / field["python"].speed
        results[name] = {"steps_per_second": contender.speed, "ratio": ratio}
        compiling = f"{contender.compile_seconds:12.1f}" if name != "python" else ""
        print(f"{name:24}{contender.speed:>14,.0f}{ratio:>10,.0f}{compiling}")
    keep(results, arguments.out)


if __name__ == "__main__":
    main()
