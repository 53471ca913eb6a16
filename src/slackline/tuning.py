"""Choosing hyper-parameters as the paper does: a grid over the single policy, on the training
environment only.

Everything here works on a `TrainTask`, which has no variations: tuning cannot look at a test
environment because it is never given one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from slackline.adapt.host import SLOTS, acting
from slackline.envs.host import HostEnv
from slackline.errors import SlacklineError, require_count, unknown
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.learn.normalise import Moments
from slackline.learn.programs import strides, trainer_of
from slackline.methods.catalogue import method
from slackline.networks.distributions import distribution_of
from slackline.networks.mlp import MLP
from slackline.parallel.mesh import SEED, compiled, layout_of
from slackline.rollout import CompiledRunner, HostJobs, HostRunner, Jobs
from slackline.store.choice import Combination
from slackline.suites.suite import TrainTask
from slackline.training import OnTick, Tick
from slackline.types import Array

EVALUATION_EPISODES = 100
HOST_EVALUATION_EPISODES = 20
"""On environments outside JAX, where every episode takes its time."""
EVALUATION_STREAM = 2**31 - 1
"""Folded into a seed's key; small numbers would give the keys that training splits off it."""
MAX_CELLS = 4096

Grid = dict[str, tuple[float, ...]]
"""Values to try, by the name of a float field of Hyper; "lr" is both learning rates."""


def cells(base: Hyper, grid: Grid) -> list[tuple[dict[str, float], Hyper]]:
    """Every combination of the grid's values, as checked hyper-parameters."""
    floats = {f.name for f in fields(Hyper) if f.type == "float"}
    for name in grid:
        if name not in floats | {"lr"}:
            raise unknown("hyper-parameter to tune", name, sorted(floats | {"lr"}))
        if not grid[name]:
            raise SlacklineError(f"the grid has no value for {name}")
    found = []
    for values in itertools.product(*grid.values()):
        changed = dict(zip(grid, values, strict=True))
        settings = dict(changed)
        if "lr" in settings:
            settings["policy_lr"] = settings["critic_lr"] = settings.pop("lr")
        arguments: dict[str, Any] = settings
        hyper = replace(base, **arguments)
        hyper.check()
        found.append((changed, hyper))
    require_count("number of combinations in the grid", len(found), high=MAX_CELLS)
    return found


def tune(
    task: TrainTask,
    grid: Grid,
    *,
    seeds: int = 3,
    steps: int | None = None,
    on_tick: OnTick | None = None,
) -> list[Combination]:
    """Train a single policy for every cell × seed in one program; best first."""
    steps = task.steps if steps is None else steps
    require_count("seeds", seeds, high=1000)
    require_count("steps", steps, low=task.hyper.steps_per_iteration, high=10**12)
    combinations = cells(task.hyper, grid)
    learner = Learner(task.env, task.horizon, method("single"))
    copies = [(hyper, seed) for _, hyper in combinations for seed in range(seeds)]
    each, numbers = zip(*copies, strict=True)
    hypers: Hyper = jax.tree.map(lambda *values: jnp.array(values, jnp.float32), *each)
    iterations = -(-steps // task.hyper.steps_per_iteration)
    program = trainer_of(learner, hypers, numbers, budget=iterations, hyper_axis=0)
    begun, start = time.monotonic(), program.init()
    count, total = np.zeros(len(copies)), np.zeros(len(copies))
    trained = start
    try:
        for trained, done, progress in strides(program, start, 0, iterations):  # noqa: B007
            count += np.asarray(progress.episodes.count)
            total += np.asarray(progress.episodes.return_sum)
            if on_tick is not None:
                size, mean = task.hyper.steps_per_iteration, total.sum() / max(count.sum(), 1)
                spent = time.monotonic() - begun
                on_tick(Tick(done * size, iterations * size, len(copies), float(mean), spent))
    finally:
        program.close()
    scores = (_scores_in_jax if task.env.in_jax else _scores_on_host)(task, trained, numbers)

    by_cell = scores.reshape(len(combinations), seeds)
    counts, totals = (x.reshape(by_cell.shape).sum(axis=1) for x in (count, total))
    choices = [
        Combination(changed, hyper, tuple(map(float, row)), float(total / max(count, 1)))
        for (changed, hyper), row, total, count in zip(
            combinations, by_cell, totals, counts, strict=True
        )
    ]
    # A diverged cell scores NaN and comes last; equals are ordered by how fast they learned.
    return sorted(choices, key=lambda c: (np.nan_to_num(c.score, nan=-np.inf), c.training_return))[
        ::-1
    ]


def _scores_in_jax(task: TrainTask, trained: TrainState, seeds: Sequence[int]) -> np.ndarray:
    """Of every copy, (C,)."""
    layout = layout_of(len(seeds), task.hyper.num_blocks)
    evaluate = layout.each(partial(_evaluate, task), (0, 0, 0))
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    scored = compiled(evaluate, layout, (SEED, SEED, SEED), SEED)
    return np.asarray(scored(trained.networks.policy, trained.moments, keys))


def _scores_on_host(task: TrainTask, trained: TrainState, seeds: Sequence[int]) -> np.ndarray:
    """Of every copy, (C,); NaN where training diverged. Equal seeds play equal episodes."""
    assert isinstance(task.env, HostEnv)
    single, num = method("single"), HOST_EVALUATION_EPISODES
    policies: Any = trained.networks.policy
    if trained.moments:
        policies = jax.vmap(lambda policy, moments: moments.frozen().folded_into(policy))(
            policies, trained.moments
        )
    rows = [np.isfinite(x).reshape(len(seeds), -1).all(axis=1) for x in jax.tree.leaves(policies)]
    sound = np.all(rows, axis=0)
    policies = jax.tree.map(jnp.nan_to_num, policies)
    slots = max(1, min(num, SLOTS // len(seeds)))
    drawn = [
        np.random.SeedSequence([seed, EVALUATION_STREAM]).generate_state(slots) >> 1
        for seed in seeds
    ]
    z = np.broadcast_to(single.latent.candidates(1), (len(seeds), num, single.latent.size))
    jobs = HostJobs(task.env.default_params(), z, np.stack(drawn))
    act = partial(acting(single, task.env.action), policies)
    returns = HostRunner(task.env, task.horizon).episodes(act, jobs).returns
    return np.where(sound, returns.mean(axis=1), np.nan)


def _evaluate(task: TrainTask, policy: MLP, moments: Moments | tuple[()], key: Array) -> Array:
    """Mean deterministic return of the trained policy on fresh training episodes."""
    keys = jax.random.split(jax.random.fold_in(key, EVALUATION_STREAM), EVALUATION_EPISODES)
    env = task.env.for_jax(task.name)
    distribution, params = distribution_of(env.action), env.default_params()
    acting = moments.frozen().folded_into(policy) if moments else policy

    def act(observation: Array, _: Array) -> Array:
        return distribution.greedy(acting(observation))

    everywhere = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (EVALUATION_EPISODES, *jnp.shape(x))), params
    )
    no_z = jnp.zeros((EVALUATION_EPISODES, 0))
    runner = CompiledRunner(env, task.horizon)
    return jnp.mean(runner.episodes(act, Jobs(everywhere, no_z, keys)).returns)
