"""How close to the bounds training and evaluating a robot comes, with the paper's preset.

env_only   bare stepping with random actions, by block size; its best block is the ceiling
rollout    the training code's own collecting: acting, stepping, resetting, keeping; its bound is
           env_only's time plus the bare matrix products of the policy's forward pass
training   one seed whose environments all devices share, and a seed on every device; the bound is
           env_only's time for the steps of an iteration, plus the bare matrix products of its
           update (policy and critic, forward and backward), sharing devices as training does
evaluate   all variations × 10 candidates as one program, and a fresh episode of each winner
adapt      the same with the suite's protocol: as many fresh episodes as it has

Everything is compared with bare stepping of our physics and of Brax's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import timing
from jax.sharding import PartitionSpec
from timing import Contender, take_turns

import slackline as sl
from slackline.envs.brax import quiet_brax
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner
from slackline.learn.program import STATE, Program
from slackline.networks.mlp import MLP, init_mlp
from slackline.parallel.blocks import one_by_one, zeros_as
from slackline.parallel.mesh import BLOCK, WHOLE, compiled, layout_of
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
    """`collect` as training runs it, and nothing learned from it; of what it keeps, the last row is
    handed on, so that nothing is left out."""
    layout = layout_of(1, hyper.num_blocks)
    learner = Learner(suite.jax_env, suite.horizon, sl.method(method), layout.axis)

    def iterate(carry: Any) -> Any:
        state, _ = carry
        key, collect_key = jax.random.split(state.key)

        def one(block: Any) -> Any:
            key, running = block
            running, steps, episodes = learner.collect(key, running, state, hyper)
            return running, (jax.tree.map(lambda x: x[-1], steps), episodes)

        keys = learner.blocks(hyper).keys(collect_key)
        running, kept = one_by_one(one, (keys, state.running))
        return state._replace(running=running, key=key), kept

    def begin(state: Any) -> Any:
        return state, zeros_as(iterate, (state, None))[1]

    each = layout.each(loop(iterate), (0, None))
    state = Program(Learner(suite.jax_env, suite.horizon, sl.method(method)), hyper, [0]).init()
    carry = compiled(layout.each(begin, (0,)), layout, (STATE,), (STATE, BLOCK))(state)
    run = compiled(each, layout, ((STATE, BLOCK), WHOLE), (STATE, BLOCK), run_long=True)
    return Contender(repeated(run, carry), hyper.steps_per_iteration, budget)


def training(suite: Suite, method: str, hyper: Hyper, seeds: int, budget: float) -> Contender:
    learner = Learner(suite.jax_env, suite.horizon, sl.method(method))
    advance = timing.training(Program(learner, hyper, range(seeds)))
    return Contender(advance, seeds * hyper.steps_per_iteration, budget)


def forward(network: MLP, x: jax.Array) -> list[jax.Array]:
    """The matrix products of a forward pass and nothing else: what every layer gets, and the
    output."""
    seen = [x]
    for layer in network.layers:
        seen.append(seen[-1] @ layer.weight[0])
    return seen


def forward_and_backward(network: MLP, x: jax.Array) -> jax.Array:
    """… and those of a backward pass."""
    *inputs, back = forward(network, x)
    total = jnp.zeros(())
    for i, (layer, x) in reversed(list(enumerate(zip(network.layers, inputs, strict=True)))):
        total += jnp.sum((x.T @ back)[:1, :1])  # keeps the product from being left out
        if i:
            back = back @ layer.weight[0].T
    return total


def multiplying(
    work: Callable[[jax.Array], jax.Array], times: int, hyper: Hyper, seeds: int, budget: float
) -> Contender:
    """On every device that training uses, `times` an iteration a work of products; it gets a
    number to start from and returns one."""
    layout = layout_of(seeds, hyper.num_blocks)

    def iterate(total: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, times, lambda _, total: 1e-9 * work(1e-9 * total), total)

    def many(totals: jax.Array, iterations: jax.Array) -> jax.Array:
        return loop(iterate)(totals[0, 0], iterations)[None, None]

    run = compiled(many, layout, (BLOCK, WHOLE), BLOCK, run_long=True)
    nothing = jnp.zeros((layout.seeds, layout.blocks))
    return Contender(repeated(run, nothing), seeds * hyper.steps_per_iteration, budget)


def policy_of(suite: Suite, hyper: Hyper) -> MLP:
    env = suite.jax_env
    sizes = (env.observation_size, *hyper.hidden, env.action.size)  # type: ignore[union-attr]
    return init_mlp(jax.random.key(1), sizes)


def acting_bound(suite: Suite, hyper: Hyper, budget: float) -> Contender:
    """The bare products of acting in every environment, block by block."""
    policy, layout = policy_of(suite, hyper), layout_of(1, hyper.num_blocks)
    shape = (hyper.envs_per_block, suite.jax_env.observation_size)

    def act(start: jax.Array) -> jax.Array:
        return jnp.sum(forward(policy, jnp.full(shape, 1e-3) + start)[-1])

    times = hyper.num_steps * hyper.num_blocks // layout.blocks
    return multiplying(act, times, hyper, 1, budget)


def update_bound(suite: Suite, hyper: Hyper, seeds: int, budget: float) -> Contender:
    """Epochs × minibatches of the bare products of policy and critic, shared out as training is."""
    layout, size = layout_of(seeds, hyper.num_blocks), suite.jax_env.observation_size
    rows = hyper.steps_per_iteration // hyper.minibatches // layout.blocks
    critic = init_mlp(jax.random.key(0), (size, *hyper.critic_hidden, 1))
    networks = policy_of(suite, hyper), critic

    def minibatch(start: jax.Array) -> jax.Array:
        x = jnp.full((rows, size), 1e-3) + start
        return sum((forward_and_backward(network, x) for network in networks), jnp.zeros(()))

    times = hyper.epochs * hyper.minibatches * (seeds // layout.seeds)
    return multiplying(minibatch, times, hyper, seeds, budget)


def untrained(suite: Suite) -> Subspace:
    hyper = replace(suite.presets["fast"], num_envs=64, num_steps=8)
    return sl.train(suite.name, "lop", steps=hyper.steps_per_iteration, hyper=hyper)


def evaluation(suite: Suite, line: Subspace, score_episodes: int, budget: float) -> Contender:
    """Whole episodes of a line on every variation, ten candidates each; an Ant may fall early, and
    is counted as if it had not."""
    variations = suite.variations

    def adapt(times: int) -> None:
        for _ in range(times):
            sl.adapt_many([line], variations, 10, 1, score_episodes)

    steps = suite.horizon * len(variations) * (10 + score_episodes)
    return Contender(adapt, steps, budget)


def measure(name: str, budget: float, rounds: int) -> dict[str, Any]:
    suite = sl.suite(name)
    hyper, each = suite.hyper, jax.local_device_count()
    ours = {b: env_only(suite, replace(hyper, block=b), budget) for b in BLOCKS}
    brax = {b: brax_only(suite, replace(hyper, block=b), budget) for b in BRAX_BLOCKS}
    collecting, acting = rollout(suite, "single", hyper, budget), acting_bound(suite, hyper, budget)
    ways = {"one_seed": 1, "a_seed_each": each}
    single, lop = (
        {way: training(suite, method, hyper, seeds, budget) for way, seeds in ways.items()}
        for method in ("single", "lop")
    )
    update = {way: update_bound(suite, hyper, seeds, budget) for way, seeds in ways.items()}
    line, fresh = untrained(suite), suite.protocol.score_episodes
    evaluate, adapt = (evaluation(suite, line, episodes, budget) for episodes in (1, fresh))
    contenders = [ours, brax, single, lop, update]
    all_of_them = [one for several in contenders for one in several.values()]
    take_turns([*all_of_them, collecting, acting, evaluate, adapt], rounds)

    def ratios(ceilings: dict[int, Contender]) -> dict[str, Any]:
        best = max(contender.speed for contender in ceilings.values())

        def of_bound(measured: Contender, products: Contender) -> float:
            return (1 / best + 1 / products.speed) * measured.speed

        return {
            "rollout_over_env_only": collecting.speed / best,
            "rollout_over_bound": of_bound(collecting, acting),
            "training_over_bound": {way: of_bound(single[way], update[way]) for way in ways},
            "evaluate_over_env_only": evaluate.speed / best,
            "adapt_over_env_only": adapt.speed / best,
        }

    def results(contenders: dict[Any, Contender]) -> dict[str, Any]:
        return {str(name): contender.result() for name, contender in contenders.items()}

    return {
        "env_only": results(ours),
        "brax_env_only": results(brax),
        "rollout": collecting.result(),
        "acting_products": acting.result(),
        "single": results(single),
        "lop": results(lop),
        "update_products": results(update),
        "evaluate": evaluate.result(),
        "adapt": adapt.result(),
        "lop_cost_over_single": {way: single[way].speed / lop[way].speed for way in ways},
        "ratios": {"to_our_physics": ratios(ours), "to_brax": ratios(brax)},
    }
