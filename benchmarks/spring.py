"""How fast our spring physics is against Brax's own, stepping alone: steps per processor second.

    taskset -c 0 python benchmarks/spring.py [--quick] [--traced] [--out FILE]

Both take the same random actions from the same states, in turns; the best time of each counts.
XLA may spread one program over several threads: `taskset` keeps it to one core, and all times are
processor time, so other programs on the machine disturb it little. Of the system only what
variations change is an argument of our program. With --traced all of it is: less is known while
compiling, so that takes longer and runs slower.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from timing import keep

from slackline.envs import api, spring
from slackline.envs.brax import quiet_brax

with quiet_brax():
    from brax.envs.ant import Ant
    from brax.envs.half_cheetah import Halfcheetah

VARIED = ("gravity", "geom_friction", "geom_size", "link.inertia.mass", "link.inertia.i")


def leaf(sys: Any, path: str) -> Any:
    for name in path.split("."):
        sys = getattr(sys, name)
    return sys


def seconds(work: Callable[[], Any]) -> float:
    """Of processor time, summed over threads: what other programs take does not count."""
    begun = time.process_time()
    jax.block_until_ready(work())
    return time.process_time() - begun


class Contender:
    """A block of environments that takes random actions; its first call is its compilation."""

    def __init__(self, step: Callable[..., Any], sys: Any, start: Any, num_actions: int):
        num = jax.tree.leaves(start)[0].shape[0]

        @jax.jit
        def run(sys: Any, state: Any, num_steps: jax.Array) -> Any:
            def act(i: jax.Array, state: Any) -> Any:
                key = jax.random.fold_in(jax.random.key(0), i)
                action = jax.random.uniform(key, (num, num_actions), minval=-1.0, maxval=1.0)
                return jax.vmap(lambda s, a: step(sys, s, a))(state, action)

            return jax.lax.fori_loop(0, num_steps, act, state)

        self.num, self.best = num, float("inf")
        self.run = lambda num_steps: run(sys, start, jnp.int32(num_steps))
        self.compile_seconds = seconds(lambda: self.run(1))
        self.num_steps = 5

    def settle(self, budget: float) -> None:
        pace = min(seconds(lambda: self.run(self.num_steps)) for _ in range(2)) / self.num_steps
        self.num_steps = max(5, int(budget / pace))

    def time(self) -> None:
        self.best = min(self.best, seconds(lambda: self.run(self.num_steps)) / self.num_steps)

    @property
    def speed(self) -> float:
        return self.num / self.best


def contenders(env: Any, num_envs: int, traced: bool) -> dict[str, Contender]:
    sys, num_frames = env.sys, env._n_frames
    keys = jax.random.split(jax.random.key(1), num_envs)
    theirs = jax.jit(jax.vmap(lambda key: env.reset(key).pipeline_state))(keys)
    ours = jax.jit(jax.vmap(lambda s: spring.init(sys, s.q, s.qd)))(theirs)
    arguments = sys if traced else {path: leaf(sys, path) for path in VARIED}

    def brax_step(_: Any, state: Any, action: jax.Array) -> Any:
        return env.pipeline_step(state, action)

    def our_step(given: Any, state: Any, action: jax.Array) -> Any:
        system = given
        if not traced:
            system = sys.tree_replace(given)
            system = system.replace(gravity=api.mixed(np.zeros(3), (2,), [given["gravity"][2]]))
        return spring.step(system, state, action, num_frames)

    size = sys.act_size()
    return {
        "brax": Contender(brax_step, None, theirs, size),
        "ours": Contender(our_step, arguments, ours, size),
    }


def measure(env: Any, num_envs: int, traced: bool, rounds: int) -> dict[str, float]:
    """Many short strides: on a shared machine some of them run undisturbed."""
    field = contenders(env, num_envs, traced)
    for contender in field.values():
        contender.settle(0.1)
    for _ in range(rounds):
        for contender in field.values():
            contender.time()
    brax, ours = field["brax"], field["ours"]
    return {
        "brax": brax.speed,
        "ours": ours.speed,
        "ratio": ours.speed / brax.speed,
        "brax compile": brax.compile_seconds,
        "ours compile": ours.compile_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short strides: a smoke test")
    parser.add_argument("--traced", action="store_true", help="the whole system as an argument")
    parser.add_argument("--blocks", type=int, nargs="+", default=[32, 64, 128, 256, 512, 1024])
    parser.add_argument("--out", type=Path, help="also write JSON here")
    arguments = parser.parse_args()
    silence: Any = mujoco
    silence.set_mju_user_warning(lambda _: None)  # else it leaves a log behind
    rounds = 3 if arguments.quick else 30
    results: dict[str, dict[int, dict[str, float]]] = {}
    print(f"{'env':12}{'envs':>6}" + "".join(f"{name:>14}" for name in HEADINGS))
    for make in (Halfcheetah, Ant):
        env = make(backend="spring")
        for num_envs in arguments.blocks:
            found = measure(env, num_envs, arguments.traced, rounds)
            results.setdefault(make.__name__, {})[num_envs] = found
            row = "".join(f"{found[name]:>14,.{digits}f}" for name, digits in HEADINGS.items())
            print(f"{make.__name__:12}{num_envs:>6}{row}", flush=True)
    keep(results, arguments.out)


HEADINGS = {"brax": 0, "ours": 0, "ratio": 1, "brax compile": 1, "ours compile": 1}
"""Columns (steps per second, ratios, seconds) and their decimals."""


if __name__ == "__main__":
    main()
