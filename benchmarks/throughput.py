"""How fast, as ratios in one run. Prints JSON; keep the machine idle while it runs.

    python benchmarks/throughput.py [--suite halfcheetah] [--quick] [--rounds 12] [--out FILE]

On CartPole:

env_only        stepping and resetting environments with random actions: the ceiling
single, lop     training, ten seeds in one program, aggregate environment steps per second
adapt           6 variations × 10 candidates × 10 episodes × 10 seeds, plus the fresh scores
compile         seconds from a cold start to the first result (no compilation cache)

On a robot, against the bounds of stepping and multiplying: see robots.py.
"""

from __future__ import annotations

import argparse
import json
import platform
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import robots
import timing
from timing import Contender, keep, seconds, take_turns

import slackline as sl
from slackline.learn.learner import Learner
from slackline.learn.program import Program
from slackline.parallel.mesh import SEED, WHOLE, compiled, layout_of
from slackline.rollout import CompiledRunner, Running
from slackline.runtime import default_devices
from slackline.training import configure, run_training

SUITE = "cartpole"
SEEDS = 10


def env_only(budget: float) -> Contender:
    """The same environments, resets and time limits as training, and nothing learned."""
    suite, draw_z = sl.suite(SUITE), sl.method("single").latent.sample
    runner, hyper = CompiledRunner(suite.jax_env, suite.horizon), suite.hyper

    def act(draw: jax.Array, observation: jax.Array, _: jax.Array) -> tuple[Any, Any, Any]:
        action = (draw < 0.5).astype(jnp.int32)
        return action, action, jnp.zeros(observation.shape[0])

    def iterate(carry: tuple[Running, jax.Array]) -> tuple[Running, jax.Array]:
        running, key = carry
        key, act_key, collect_key = jax.random.split(key, 3)
        draws = jax.random.uniform(act_key, (hyper.num_steps, hyper.num_envs))
        running, _, _ = runner.steps(collect_key, running, act, draw_z, draws)
        return running, key

    def many(carry: Any, iterations: jax.Array) -> Any:
        return jax.lax.fori_loop(0, iterations, lambda _, c: jax.vmap(iterate)(c), carry)

    def begin(keys: jax.Array) -> Any:
        one = partial(runner.start, draw_z=draw_z, num_envs=hyper.num_envs)
        return jax.vmap(one)(keys), keys

    layout = layout_of(SEEDS)
    state = compiled(begin, layout, (SEED,), SEED)(jax.random.split(jax.random.key(0), SEEDS))
    run = compiled(many, layout, (SEED, WHOLE), SEED, run_long=True)

    return Contender(robots.repeated(run, state), SEEDS * hyper.steps_per_iteration, budget)


def training(method: str, budget: float) -> Contender:
    suite = sl.suite(SUITE)
    learner = Learner(suite.jax_env, suite.horizon, sl.method(method))
    advance = timing.training(Program(learner, suite.hyper, range(SEEDS)))
    return Contender(advance, SEEDS * suite.hyper.steps_per_iteration, budget)


def adaptation() -> dict[str, float]:
    """The paper's protocol on trained policies (untrained ones fall at once and look fast)."""
    suite = sl.suite(SUITE)
    config = configure(suite, "lop", seeds=tuple(range(SEEDS)), steps=3_000_000)
    lines = run_training(config, None, suite=suite)
    adapt = partial(sl.adapt_many, lines, suite.variations, 10, 10, 100)
    compiling = seconds(adapt)
    best = min(seconds(adapt) for _ in range(5))
    found = adapt()
    steps = float(found.returns.sum() + found.scores.sum())  # CartPole: a step is a point
    return {"seconds": best, "compile_seconds": compiling, "steps_per_second": steps / best}


def measure(budget: float, rounds: int) -> dict[str, Any]:
    """Contenders take turns, so that a machine whose speed drifts is fair to all; best of each."""
    contenders = [env_only(budget), training("single", budget), training("lop", budget)]
    take_turns(contenders, rounds)
    ceiling, single, lop = (contender.result() for contender in contenders)
    evaluation = adaptation()
    speed = "steps_per_second"
    return {
        "env_only": ceiling,
        "single": single,
        "lop": lop,
        "adapt": evaluation,
        "ratios": {
            "lop_cost_over_single": single[speed] / lop[speed],
            "single_over_env_only": single[speed] / ceiling[speed],
            "lop_over_env_only": lop[speed] / ceiling[speed],
            "adapt_over_env_only": evaluation[speed] / ceiling[speed],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--suite", choices=[SUITE, "halfcheetah", "ant"], default=SUITE)
    parser.add_argument("--quick", action="store_true", help="short strides: a smoke test")
    parser.add_argument("--rounds", type=int, default=12, help="turns of every contender")
    parser.add_argument("--out", type=Path, help="also write the JSON here")
    arguments = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", default_devices())
    run = measure if arguments.suite == SUITE else partial(robots.measure, arguments.suite)
    result = {
        "machine": f"{platform.machine()}, {jax.local_device_count()} CPU devices",
        "versions": {"jax": jax.__version__, "numpy": np.__version__},
        "suite": arguments.suite,
    } | run(*((0.2, 2) if arguments.quick else (1.0, arguments.rounds)))
    print(json.dumps(result, indent=2))
    keep(result, arguments.out)


if __name__ == "__main__":
    main()
