"""How close to the bounds training and evaluating a robot comes, with the paper's preset.

env_only   bare stepping with random actions, by block size; its best block is the ceiling
rollout    the training code's own collecting: acting, stepping, resetting, keeping
bound      env_only's time for the steps of an iteration, plus the bare matrix products of its
           update (policy and critic, forward and backward), sharing devices as training does
evaluate   16 variations × 10 candidates as one program, and a fresh episode of each winner
adapt      the same with the suite's protocol: as many fresh episodes as it has

Everything is compared with bare stepping of our physics and of Brax's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from timing import Contender, seconds, take_turns

import slackline as sl
from slackline.envs.brax import quiet_brax
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, one_by_one
from slackline.learn.program import (
    BLOCK,
    STATE,
    WHOLE,
    Program,
    compiled,
    layout_of,
)
from slackline.networks import MLP, init_mlp
from slackline.subspace import Subspace
from slackline.suites.suite import Suite

BLOCKS = (32, 64, 128, 256, 512)
BRAX_BLOCKS = (64, 128, 256)


def repeated(run: Callable[..., Any], state: Any) -> Callable[[int], Any]:
    """Feed a program's state back to it, `iterations` times a call."""

    def advance(iterations: int) -> Any:
        nonlocal state
        state = run(state, jnp.int32(iterations))
        return state

    return advance


def loop(body: Callable[[Any], Any]) -> Callable[[Any, jax.Array], Any]:
    def many(state: Any, iterations: jax.Array) -> Any:
        return jax.lax.fori_loop(0, iterations, lambda _, state: body(state), state)

    return many


def bare(
    reset: Callable[[Any], Any], step: Callable[..., Any], size: int, hyper: Hyper, budget: float
) -> Contender:
    """An iteration's steps of physics with random actions: no policy, nothing kept."""
    layout = layout_of(1, hyper.num_blocks)

    def begin(keys: jax.Array) -> Any:
        def block(key: jax.Array) -> Any:
            return key, jax.vmap(reset)(jax.random.split(key, hyper.envs_per_block))

        return jax.lax.map(block, keys[0])

    def rollout(blocks: Any) -> Any:
        def advance(carry: Any, _: None) -> tuple[Any, None]:
            key, state = carry
            key, act_key = jax.random.split(key)
            action = jax.random.uniform(act_key, (hyper.envs_per_block, size), minval=-1.0)
            return (key, jax.vmap(step)(state, action)), None

        return jax.lax.map(lambda b: jax.lax.scan(advance, b, None, hyper.num_steps)[0], blocks)

    keys = jax.random.split(jax.random.key(0), (1, hyper.num_blocks))
    split = PartitionSpec("block")
    state = compiled(begin, layout, (BLOCK,), split)(keys)
    run = compiled(loop(rollout), layout, (split, WHOLE), split, run_long=True)
    return Contender(repeated(run, state), hyper.steps_per_iteration, budget)


def env_only(suite: Suite, hyper: Hyper, budget: float) -> Contender:
    """Our physics."""
    env = suite.jax_env
    params, size = env.default_params(), env.action.size  # type: ignore[union-attr]

    def step(state: Any, action: jax.Array) -> Any:
        return env.step(jax.random.key(0), state, action, params)[1]

    return bare(lambda key: env.reset(key, params)[1], step, size, hyper, budget)


def brax_only(suite: Suite, hyper: Hyper, budget: float) -> Contender:
    """Brax's own engine, stepped alike: what the aims were set against."""
    with quiet_brax():
        from brax.envs import get_environment

        env: Any = get_environment(suite.name, backend="spring")

    def reset(key: jax.Array) -> Any:
        return env.reset(key).pipeline_state

    return bare(reset, env.pipeline_step, env.action_size, hyper, budget)


def rollout(suite: Suite, method: str, hyper: Hyper, budget: float) -> Contender:
    """`collect` as training runs it, and nothing learned from it."""
    layout = layout_of(1, hyper.num_blocks)
    learner = Learner(suite.jax_env, suite.horizon, sl.method(method), layout.axis)

    def iterate(state: Any) -> Any:
        key, collect_key = jax.random.split(state.key)

        def one(block: Any) -> Any:
            key, running = block
            running, steps, _ = learner.collect(key, running, state, hyper)
            return running, jax.tree.map(lambda x: x[-1], steps)  # what is kept was written

        keys = learner.keys_of_blocks(collect_key, hyper)
        running, _ = one_by_one(one, (keys, state.running))
        return state._replace(running=running, key=key)

    each = layout.each(lambda state, n: loop(iterate)(state, n), (0, None))
    state = Program(Learner(suite.jax_env, suite.horizon, sl.method(method)), hyper, [0]).init()
    run = compiled(each, layout, (STATE, WHOLE), STATE, run_long=True)
    return Contender(repeated(run, state), hyper.steps_per_iteration, budget)


def training(suite: Suite, method: str, hyper: Hyper, budget: float) -> Contender:
    program = Program(Learner(suite.jax_env, suite.horizon, sl.method(method)), hyper, [0])
    return Contender(
        repeated(lambda state, n: program.advance(state, int(n))[0], program.init()),
        hyper.steps_per_iteration,
        budget,
    )


def products(network: MLP, rows: int) -> Callable[[Any], Any]:
    """The matrix products of one forward and one backward pass, and nothing else."""
    weights = [layer.weight[0] for layer in network.layers]

    def work(x: jax.Array) -> jax.Array:
        seen, back = [], x[:, :1]
        for weight in weights:
            seen.append(x)
            x = x @ weight
        back, total = x, jnp.zeros(())
        for i, (weight, x) in reversed(list(enumerate(zip(weights, seen, strict=True)))):
            total += jnp.sum((x.T @ back)[:1, :1])  # keeps the product from being left out
            if i:
                back = back @ weight.T
        return total

    def both(total: jax.Array) -> jax.Array:
        x = jnp.full((rows, weights[0].shape[0]), 1e-3) + 1e-9 * total
        return 1e-9 * work(x)

    return both


def update_bound(suite: Suite, method: str, hyper: Hyper, budget: float) -> Contender:
    """Epochs × minibatches of the bare products of policy and critic, shared out as training is."""
    layout, chosen = layout_of(1, hyper.num_blocks), sl.method(method)
    rows = hyper.steps_per_iteration // hyper.minibatches // layout.blocks
    size, outputs = suite.jax_env.observation_size, suite.jax_env.action.size  # type: ignore[union-attr]
    critic = init_mlp(jax.random.key(0), (size + chosen.latent.size, *hyper.critic_hidden, 1))
    policy = init_mlp(jax.random.key(1), (size, *hyper.hidden, outputs))
    parts = [products(network, rows) for network in (policy, critic)]

    def iterate(total: jax.Array) -> jax.Array:
        def minibatch(_: Any, total: jax.Array) -> jax.Array:
            return sum((part(total) for part in parts), jnp.zeros(()))

        return jax.lax.fori_loop(0, hyper.epochs * hyper.minibatches, minibatch, total)

    def many(totals: jax.Array, iterations: jax.Array) -> jax.Array:
        return loop(iterate)(totals[0], iterations)[None]

    split = PartitionSpec("block")
    run = compiled(many, layout, (split, WHOLE), split, run_long=True)
    return Contender(repeated(run, jnp.zeros(layout.blocks)), hyper.steps_per_iteration, budget)


def untrained(suite: Suite) -> Subspace:
    hyper = replace(suite.presets["fast"], num_envs=64, num_steps=8)
    return sl.train(suite.name, "lop", steps=hyper.steps_per_iteration, hyper=hyper)


def evaluation(suite: Suite, line: Subspace, score_episodes: int, rounds: int) -> dict[str, float]:
    """Whole episodes of a line on the sixteen variations, ten candidates each."""
    variations = suite.variations[:16]
    adapt = partial(sl.adapt_many, [line], variations, 10, 1, score_episodes)
    compiling = seconds(adapt)
    best = min(seconds(adapt) for _ in range(rounds))
    steps = suite.horizon * len(variations) * (10 + score_episodes)
    return {"seconds": best, "compile_seconds": compiling, "steps_per_second": steps / best}


def measure(name: str, budget: float, rounds: int) -> dict[str, Any]:
    suite = sl.suite(name)
    hyper = suite.hyper
    ours = {b: env_only(suite, replace(hyper, block=b), budget) for b in BLOCKS}
    brax = {b: brax_only(suite, replace(hyper, block=b), budget) for b in BRAX_BLOCKS}
    collecting = rollout(suite, "single", hyper, budget)
    single, lop = (training(suite, method, hyper, budget) for method in ("single", "lop"))
    matmul = update_bound(suite, "single", hyper, budget)
    take_turns([*ours.values(), *brax.values(), collecting, single, lop, matmul], rounds)
    line, fresh = untrained(suite), suite.protocol.score_episodes
    evaluate, adapt = (evaluation(suite, line, episodes, rounds) for episodes in (1, fresh))

    def ratios(ceilings: dict[int, Contender]) -> dict[str, float]:
        best = min(ceilings.values(), key=lambda contender: contender.seconds_each)
        bound = best.seconds_each + matmul.seconds_each
        return {
            "rollout_over_env_only": collecting.speed / best.speed,
            "training_over_bound": bound / single.seconds_each,
            "evaluate_over_env_only": evaluate["steps_per_second"] / best.speed,
            "adapt_over_env_only": adapt["steps_per_second"] / best.speed,
        }

    return {
        "env_only": {str(block): contender.result() for block, contender in ours.items()},
        "brax_env_only": {str(block): contender.result() for block, contender in brax.items()},
        "rollout": collecting.result(),
        "single": single.result(),
        "lop": lop.result(),
        "update_matmul_seconds": matmul.seconds_each,
        "evaluate": evaluate,
        "adapt": adapt,
        "lop_cost_over_single": lop.seconds_each / single.seconds_each,
        "ratios": {"to_our_physics": ratios(ours), "to_brax": ratios(brax)},
    }
