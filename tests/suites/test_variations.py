"""Every suite and every variation there is keeps the contract; new ones as soon as listed."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.adapt.kshot import Partly, changing_numbers
from slackline.envs.api import Continuous, Discrete, Env
from slackline.envs.brax import RESET_NOISE
from slackline.envs.impaired import Impaired
from slackline.methods.catalogue import CATALOGUE
from slackline.paper import paper_average, paper_score
from slackline.suites import FURTHER, NAMES
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN, Suite, Variation
from slackline.types import Array

PURE = [name for name in (*NAMES, *FURTHER) if isinstance(suite(name).env, Env)]
CASES = [(name, v.name) for name in PURE for v in suite(name).variations]
MORE = [(name, v.name) for name in PURE for v in suite(name).extras]
AS_TRAINED = {("maze2d", "Maze1")}
"""Variations that are the training environment itself, as in the paper."""

NUM_PLANS, NUM_STEPS = 8, 40


def plans(action: Discrete | Continuous) -> Array:
    """Action sequences (plan, time, ...): one action for a while, then anything."""
    generator = np.random.default_rng(0)
    if isinstance(action, Discrete):
        stubborn = np.arange(NUM_PLANS)[:, None] % action.num_actions
        wiggly = generator.integers(action.num_actions, size=(NUM_PLANS, NUM_STEPS))
        chosen = np.where(np.arange(NUM_STEPS) < NUM_STEPS // 2, stubborn, wiggly)
        return jnp.asarray(chosen, jnp.int32)
    size = (NUM_PLANS, NUM_STEPS, action.size)
    return jnp.asarray(generator.uniform(action.low, action.high, size), jnp.float32)


def stacked(found: Suite, variations: list[Variation]) -> Any:
    each = [v.apply(found.env.default_params()) for v in variations]
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *each)


def changed(found: Suite) -> list[Variation]:
    return [*found.variations, *found.extras]


@cache
def traced(name: str) -> Env:
    """The environment, whose parameters are all traced; of hard changes, as in adapting, only those
    that some variation changes: compiling takes a third of the time."""
    found, env = suite(name), suite(name).jax_env
    if not isinstance(env, Impaired):
        return env
    return Partly(env, changing_numbers(stacked(found, changed(found)), env.default_params()))


def num_environments(name: str) -> int:
    """As many as the largest of the suites with this environment needs, so that they share one
    compiled program."""
    env = suite(name).env
    return 1 + max(len(changed(s)) for s in map(suite, PURE) if s.env == env)


@cache
def compiled(env: Env) -> Any:
    """(params of V environments, P plans) to observations and rewards (V, P, time, ...)."""

    def follow(params: Any, plan: Array) -> Array:
        def step(state: Any, timed: tuple[Array, Array]) -> tuple[Any, Array]:
            time, action = timed
            key = jax.random.fold_in(jax.random.key(1), time)
            observation, state, reward, _ = env.step(key, state, action, params)
            return state, jnp.concatenate([observation, reward[None]])

        _, state = env.reset(jax.random.key(0), params)
        return jax.lax.scan(step, state, (jnp.arange(NUM_STEPS), plan))[1]

    return jax.jit(jax.vmap(jax.vmap(follow, in_axes=(None, 0)), in_axes=(0, None)))


@cache
def rollouts(name: str, alone: bool = False) -> np.ndarray:
    """Observations (variation, plan, time, ...) with the same keys and actions; Train is first.

    Alone, Train has only itself beside it: as many environments, so that one compiled program
    makes both and its rounding is the same.
    """
    found, env = suite(name), traced(name)
    every = [TRAIN, *([] if alone else changed(found))]
    params = stacked(found, every + [TRAIN] * (num_environments(name) - len(every)))
    params = env.part_of(params) if isinstance(env, Partly) else params
    rows = compiled(env)(params, plans(found.env.action))
    return np.asarray(rows)[: 1 + len(changed(found))]


@pytest.mark.parametrize("name", PURE)
def test_suite_is_well_formed(name: str) -> None:
    found = suite(name)
    names = [v.name for v in changed(found)]
    assert found.name == name
    assert found.horizon > 0
    assert found.variations
    assert len(set(names)) == len(names)
    assert TRAIN.name not in names
    assert all(v.description for v in changed(found))
    found.hyper.check()
    for preset in found.presets.values():
        preset.check()
    protocol = found.protocol
    assert min(protocol.steps, protocol.shots, protocol.episodes, protocol.score_episodes) > 0


@pytest.mark.parametrize("name", PURE)
def test_environment_keeps_the_contract(name: str) -> None:
    """Flat float observations, scalar reward and flag, and a state that keeps its types."""
    env = suite(name).jax_env
    params, key = env.default_params(), jax.random.key(0)
    observation, state = jax.eval_shape(env.reset, key, params)
    action = plans(env.action)[0, 0]
    after, next_state, reward, terminated = jax.eval_shape(env.step, key, state, action, params)
    for seen in (observation, after):
        assert (seen.shape, seen.dtype) == ((env.observation_size,), jnp.float32)
    assert (reward.shape, reward.dtype) == ((), jnp.float32)
    assert (terminated.shape, terminated.dtype) == ((), jnp.bool_)
    assert jax.tree.structure(state) == jax.tree.structure(next_state)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(next_state), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


@pytest.mark.parametrize(("name", "variation"), CASES + MORE)
def test_variation_changes_what_happens(name: str, variation: str) -> None:
    """With keys and actions held fixed, so that only the environment differs."""
    index = 1 + [v.name for v in changed(suite(name))].index(variation)
    every = rollouts(name)
    assert np.isfinite(every[index]).all()
    differs = (every[index] != every[0]).any()
    assert differs == ((name, variation) not in AS_TRAINED)


@pytest.mark.parametrize("name", PURE)
def test_variations_differ_from_each_other(name: str) -> None:
    every = rollouts(name)
    flat = every.reshape(len(every), -1)
    same = sum((name, v.name) in AS_TRAINED for v in suite(name).variations)
    assert len(np.unique(flat, axis=0)) == len(every) - same


@pytest.mark.parametrize("name", PURE)
def test_training_environment_is_left_as_it_was(name: str) -> None:
    """Bit for bit, whatever variations were made from its parameters and run beside it."""
    np.testing.assert_array_equal(rollouts(name)[0], rollouts(name, alone=True)[0])


@pytest.mark.parametrize(
    ("name", "variation", "angle"),
    [
        ("halfcheetah-hard", "LockedKnee", 3),
        ("halfcheetah-hard", "LockedAnkle", 7),
        ("ant-hard", "LockedHip", 7),
        ("ant-hard", "LockedAnkle", 12),
    ],
)
def test_a_locked_joint_stays_where_it_is(name: str, variation: str, angle: int) -> None:
    """Its angle among the observations, whatever the motors do."""
    index = 1 + [v.name for v in suite(name).variations].index(variation)
    swing = np.ptp(rollouts(name)[..., angle], axis=(1, 2))
    assert swing[index] < 2 * RESET_NOISE + 0.05
    assert swing[0] > 3 * swing[index]


@pytest.mark.parametrize(("name", "variation"), [case for case in CASES if case[0] in NAMES])
def test_paper_has_the_variation_if_it_has_the_suite(name: str, variation: str) -> None:
    if paper_average(name, CATALOGUE["lop"], 10) is None:
        pytest.skip("not in the paper")
    for method in ("single", "lop"):
        assert paper_score(name, CATALOGUE[method], variation, 10) is not None


def test_only_the_suites_own_variations_are_remembered() -> None:
    """Somebody's may have the same name, and do something else the next time."""
    cartpole, forces = suite("cartpole"), iter((3.0, 4.0))
    own = cartpole.variation("HeavyPole")
    stranger = Variation("HeavyPole", "", lambda p: p._replace(force=next(forces)))
    usual = own.apply(cartpole.env.default_params()).force
    for force in (3.0, 4.0):
        found: Any = cartpole.params_of([own, stranger])
        assert found.force.tolist() == [usual, force]
