"""The learner on problems with known values and best actions, and its determinism.

All probes of one (algorithm, method) run as one compiled program, since compiling costs most.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from probes import DISCOUNT, PROBES, Aim, Idle, Table, Tabular
from scipy import optimize, stats

from slackline.algorithms import ALGORITHMS
from slackline.algorithms.actor_critic import Losses
from slackline.envs.api import Env
from slackline.envs.cartpole import CartPole
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.methods.catalogue import CATALOGUE, method
from slackline.methods.method import Method
from slackline.networks.mlp import NormedMLP
from slackline.parallel.blocks import shuffle
from slackline.types import Array

jit = partial(
    jax.jit,
    compiler_options={
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
    },
)
"""Compiles three times faster; the programs here are tiny."""

HORIZON = 5
SEEDS = 2
SHOTS = 5

A2C = Hyper(
    algorithm="a2c",
    policy_lr=1e-2,
    critic_lr=1e-2,
    discriminator_lr=1e-2,
    discount=DISCOUNT,
    gae_lambda=0.9,
    entropy=0.0,
    action_std=0.2,
    num_envs=16,
    num_steps=8,
    hidden=(16,),
    critic_hidden=(16,),
    discriminator_hidden=(16,),
)
HYPERS = {"a2c": A2C, "ppo": replace(A2C, algorithm="ppo", epochs=4, minibatches=4)}
ITERATIONS = {"a2c": 400, "ppo": 100}


# An ensemble trains as single policies do.
METHODS = [name for name, m in CATALOGUE.items() if m.member is m]
DISCRETE = [name for name in METHODS if not CATALOGUE[name].continuous_only]


def probed(name: str) -> Method:
    """The method as it is probed: what its discriminator says is small beside the reward."""
    learns = name in ("diayn_r", "diayn_r_l2", "lc")
    return CATALOGUE[name].with_options(beta=0.02) if learns else CATALOGUE[name]


class Learned(NamedTuple):
    """Critic and policy at SHOTS z's: (..., K, observation) and (..., K, observation, output)."""

    values: np.ndarray
    outputs: np.ndarray
    losses: Losses


def trained(learner: Learner, hyper: Hyper, key: Array, iterations: int) -> tuple[TrainState, Any]:
    def body(_: Any, carry: tuple[TrainState, Any]) -> tuple[TrainState, Any]:
        state, _, losses = learner.iteration(carry[0], hyper)
        return state, losses

    state = learner.init(key, hyper)
    losses = jax.tree.map(jnp.zeros_like, jax.eval_shape(learner.iteration, state, hyper)[2])
    return jax.lax.fori_loop(0, iterations, body, (state, losses))


def learn(env: Env, chosen: Method, hyper: Hyper, iterations: int, key: Array) -> Learned:
    """Train, then ask critic and policy about every one-hot observation."""
    learner = Learner(env, HORIZON, chosen)
    state, losses = trained(learner, hyper, key, iterations)
    with jax.ensure_compile_time_eval():
        zs = jnp.asarray(chosen.latent.candidates(SHOTS))
    seen = jnp.eye(env.observation_size)

    def at(z: Array) -> tuple[Array, Array]:
        each = jnp.broadcast_to(z, (seen.shape[0], z.shape[0]))
        return learner.outputs_and_value(state.networks, seen, each)

    outputs, values = jax.vmap(at)(zs)
    return Learned(values, outputs, losses)  # type: ignore[arg-type]


@cache
def learned_probes(algorithm: str, name: str) -> Learned:
    """Every probe and seed: leading axes (probe, seed)."""
    tables = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[p.table for p in PROBES.values()])
    keys = jax.random.split(jax.random.key(0), SEEDS)

    def one(table: Table, key: Array) -> Learned:
        hyper = HYPERS[algorithm]
        return learn(Tabular(table), probed(name), hyper, ITERATIONS[algorithm], key)

    every = jit(jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None)))
    return jax.tree.map(np.asarray, every(tables, keys))


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("algorithm", HYPERS)
def test_reaches_the_known_value_and_policy(algorithm: str, name: str, probe: str) -> None:
    learned = learned_probes(algorithm, name)
    index = list(PROBES).index(probe)
    known = PROBES[probe]
    for state, value in enumerate(known.values):
        if value is not None:
            found = learned.values[index, ..., state]
            np.testing.assert_allclose(found, value, atol=0.15, err_msg=f"state {state}")
    for state, action in enumerate(known.actions):
        if action is not None:
            logits = learned.outputs[index, ..., state, :]
            probability = np.asarray(jax.nn.softmax(logits))[..., action]
            assert probability.min() > 0.9, f"state {state}"


@pytest.mark.parametrize("algorithm", HYPERS)
def test_cosine_penalty_is_minimised_along_the_way(algorithm: str) -> None:
    assert learned_probes(algorithm, "lop").losses.penalty.max() < 0.01


def best_aim(std: float) -> tuple[float, float]:
    """(action, return) of the best mean where it acts with noise before squashing."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)

    def loss(mean: float) -> float:
        action = 1.0 + 2.0 * np.tanh(mean + std * nodes)
        return float(weights @ (action - 2.0) ** 2 / weights.sum())

    found = optimize.minimize_scalar(loss, bounds=(0.0, 2.0))
    return 1.0 + 2.0 * float(np.tanh(found.x)), -loss(found.x)


@pytest.mark.parametrize("algorithm", HYPERS)
@pytest.mark.parametrize("name", METHODS)
def test_continuous_action_finds_its_target(algorithm: str, name: str) -> None:
    """The target is 2 between bounds −1 and 3."""
    env = Aim()
    hyper = replace(HYPERS[algorithm], num_envs=64, policy_lr=3e-3)
    iterations = {"ppo": 150, "a2c": 600}[algorithm]
    run = jit(jax.vmap(partial(learn, env, probed(name), hyper, iterations)))
    learned = run(jax.random.split(jax.random.key(1), SEEDS))
    best, value = best_aim(hyper.action_std)
    action = Learner(env, HORIZON, probed(name)).distribution.to_env(learned.outputs)
    np.testing.assert_allclose(action, best, atol=0.15)
    np.testing.assert_allclose(learned.values, value, atol=0.05)


def test_diayn_bonus_drives_skills_to_different_states() -> None:
    """Nothing is rewarded but being told apart: each of two skills takes its own action."""
    table = PROBES["credit"].table
    silent = table._replace(reward=np.zeros_like(table.reward), final=np.ones_like(table.final))
    chosen = method("diayn_r", skills=2)
    hyper = replace(HYPERS["ppo"], discount=0.0)

    @jit
    @jax.vmap
    def run(key: Array) -> tuple[Array, Array]:
        learner = Learner(Tabular(silent), HORIZON, chosen)
        state, _ = trained(learner, hyper, key, 200)
        start = jnp.stack([jax.nn.one_hot(0, 3)] * 2)
        skills = jnp.eye(2)
        outputs, values = learner.outputs_and_value(state.networks, start, skills)
        return jax.nn.softmax(outputs), values

    probability, value = run(jax.random.split(jax.random.key(0), 4))
    apart = np.abs(probability[:, 0, 0] - probability[:, 1, 0])
    assert apart.min() > 0.9
    np.testing.assert_allclose(value, np.log(2.0), atol=0.15)


def test_lc_loss_drives_actions_apart() -> None:
    """Nothing is rewarded: the gradient through the action alone makes it tell z."""
    chosen = method("lc", beta=1.0)
    learned = jit(jax.vmap(partial(learn, Idle(), chosen, HYPERS["ppo"], 200)))(
        jax.random.split(jax.random.key(0), SEEDS)
    )
    action = np.asarray(Learner(Idle(), HORIZON, chosen).distribution.to_env(learned.outputs))
    assert np.abs(action[:, 0] - action[:, -1]).min() > 1.0


TINY = replace(Hyper(), num_envs=4, num_steps=4, hidden=(4,), critic_hidden=(4,))
LINE = Learner(CartPole(), 50, CATALOGUE["lop"])


def parameters(state: TrainState) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state.networks)]


def test_same_seed_twice_is_bit_identical() -> None:
    """Compiled anew each time."""

    def once(seed: int) -> list[np.ndarray]:
        run = jit(lambda key: trained(LINE, TINY, key, 20)[0])
        return parameters(run(jax.random.key(seed)))

    first, again, other = once(3), once(3), once(4)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != c).any() for a, c in zip(first, other, strict=True))


def test_seed_among_others_is_the_seed_alone() -> None:
    def run(key: Array) -> TrainState:
        return trained(LINE, TINY, key, 20)[0]

    keys = jax.random.split(jax.random.key(0), 3)
    together, by_itself = parameters(jit(jax.vmap(run))(keys)), jit(run)
    for i in range(3):
        alone = parameters(by_itself(keys[i]))
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-3, atol=1e-4)


def test_float_hyper_parameters_can_be_vmapped() -> None:
    """Each learning rate of a grid trains as it does alone."""
    rates = jnp.array([1e-4, 1e-2])

    def run(rate: Array) -> TrainState:
        hyper = replace(TINY, policy_lr=rate, entropy=rate)
        return trained(LINE, hyper, jax.random.key(0), 10)[0]

    both, one = parameters(jit(jax.vmap(run))(rates)), jit(run)
    for i, rate in enumerate(rates):
        for a, b in zip(both, parameters(one(rate)), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-3, atol=1e-4)
    slow, fast = (
        np.concatenate([leaf[i].ravel() for leaf in jax.tree.leaves(both)]) for i in (0, 1)
    )
    assert np.abs(slow - fast).max() > 1e-3


def test_critic_of_a_line_knows_z() -> None:
    """Two z's with one observation get two values."""
    state = LINE.init(jax.random.key(0), TINY)
    seen = jnp.ones((2, 4))
    values = LINE.outputs_and_value(state.networks, seen, jnp.eye(2))[1]
    assert values[0] != values[1]


@pytest.mark.parametrize("size", [1, 2, 5, 6, 64, 2048, 2**16, 2**16 + 3])
def test_a_shuffle_has_everything_once(size: int) -> None:
    orders = [np.asarray(shuffle(jax.random.key(i), size)) for i in (0, 1)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(size))
    if size > 10:
        assert (orders[0] != orders[1]).mean() > 0.9


def test_all_orders_are_equally_likely() -> None:
    keys = jax.random.split(jax.random.key(3), 24_000)
    orders = np.asarray(jax.vmap(lambda key: shuffle(key, 4))(keys))
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_anchors_start_as_far_apart_as_told(apart: float) -> None:
    learner = Learner(CartPole(), 10, method("lop"))
    policy: Any = learner.init(jax.random.key(0), Hyper(apart=apart)).networks.policy
    for layer in policy.layers:
        first, second = layer.weight
        assert np.array_equal(first, second) == (apart == 0.0)


FAN = Learner(CartPole(), 50, CATALOGUE["fan"])


def stepped(learner: Learner, hyper: Hyper, iterations: int, budget: float) -> list[TrainState]:
    """The train states before and after each iteration."""
    go_on = jit(lambda state: learner.iteration(state, hyper, budget)[0])
    states = [learner.init(jax.random.key(0), hyper)]
    for _ in range(iterations):
        states.append(go_on(states[-1]))
    return states


def cosines(state: TrainState) -> np.ndarray:
    """Between the two anchors, tensor by tensor."""
    pairs = [leaf.reshape(2, -1) for leaf in jax.tree.leaves(state.networks.policy)]
    return np.array([a @ b / jnp.linalg.norm(a) / jnp.linalg.norm(b) for a, b in pairs])


def test_nothing_opens_a_fan_before_its_time_and_it_is_open_at_the_end() -> None:
    hyper = replace(TINY, policy_lr=1e-2, epochs=4, minibatches=4)
    learner = replace(FAN, method=method("fan", damping=0.2, late_damping=0.2, beta=100.0))
    states = stepped(learner, hyper, 40, 40.0)
    penalties = [float(learner.iteration(states[i], hyper, 40.0)[2].penalty) for i in (20, 30)]
    assert penalties[0] == 0.0 < penalties[1]
    assert np.square(cosines(states[-1])).max() < 0.3  # cos² 60° = 0.25


def test_damped_anchors_stay_together_where_free_ones_drift() -> None:
    """Before anything opens, by noise alone."""
    hyper = replace(TINY, policy_lr=1e-2)
    free, damped = (
        cosines(
            stepped(replace(FAN, method=method("fan", damping=damping)), hyper, 40, jnp.inf)[-1]
        )
        for damping in (1.0, 0.0)
    )
    assert damped.min() > 0.98 > free.min()


def test_iterations_are_counted_by_the_optimiser() -> None:
    hyper = replace(TINY, epochs=2, minibatches=4)
    state = stepped(LINE, hyper, 3, 10.0)[-1]
    assert float(ALGORITHMS["a2c"].iterations_done(state.networks, hyper)) == 3.0


def test_learning_rates_fall_linearly_to_their_last_share() -> None:
    hyper = Hyper(policy_lr=1e-2, critic_lr=1e-3, discriminator_lr=4e-3, final_lr=0.2)
    at = hyper.at(jnp.float32(0.5))
    rates = (at.policy_lr, at.critic_lr, at.discriminator_lr)
    np.testing.assert_allclose(rates, (6e-3, 6e-4, 2.4e-3), rtol=1e-6)
    assert Hyper(policy_lr=1e-2).at(jnp.float32(0.7)).policy_lr == jnp.float32(1e-2)


def test_nothing_moves_once_the_learning_rate_is_gone() -> None:
    states = stepped(LINE, replace(TINY, final_lr=0.0), 5, 4.0)
    policies = [jax.flatten_util.ravel_pytree(state.networks.policy)[0] for state in states]
    assert np.abs(policies[1] - policies[0]).max() > 1e-4
    np.testing.assert_array_equal(policies[5], policies[4])


def test_a_small_last_layer_makes_first_actions_alike() -> None:
    """Logits of ±1 become logits of ±0.01, and only the policy's."""
    hyper = replace(TINY, output_scale=0.01)
    plain, small = (LINE.init(jax.random.key(0), h).networks for h in (TINY, hyper))
    for a, b in zip(plain.policy.layers[-1], small.policy.layers[-1], strict=True):  # type: ignore[union-attr]
        np.testing.assert_allclose(0.01 * a, b, rtol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, plain.critic, small.critic)


def test_layer_norm_is_the_policys_alone() -> None:
    networks = LINE.init(jax.random.key(0), replace(TINY, layer_norm=True)).networks
    assert isinstance(networks.policy, NormedMLP)
    assert not isinstance(networks.critic, NormedMLP)
