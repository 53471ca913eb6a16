"""Whole episodes of one policy: their return, their end, their action."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import (
    AIM_SUITE,
    PROBES,
    Aim,
    AimParams,
    Counting,
    CountingParams,
    Exploding,
    Tabular,
)

from slackline.envs.api import Env
from slackline.envs.cartpole import CartPole
from slackline.networks.distributions import distribution_of
from slackline.networks.mlp import MLP, Layer, init_mlp
from slackline.rollout import CompiledRunner, Jobs
from slackline.suites.resolve import suite as find_suite


def saying(outputs: list[float], fan_in: int) -> MLP:
    """A plain policy whose outputs are the same whatever it sees."""
    return MLP((Layer(jnp.zeros((1, fan_in, len(outputs))), jnp.array([outputs])),))


def played(env: Env, horizon: int, policy: MLP, params: Any, keys: jax.Array) -> jax.Array:
    """Returns of episodes that all have the same policy and parameters."""
    distribution, num = distribution_of(env.action), keys.shape[0]
    same = jax.tree.map(lambda x: jnp.broadcast_to(x, (num, *jnp.shape(x))), params)

    def act(observation: jax.Array, z: jax.Array) -> jax.Array:
        return distribution.greedy(policy(observation))

    return CompiledRunner(env, horizon).episodes(act, Jobs(same, jnp.zeros((num, 1)), keys)).returns


IDLE = saying([0.0, 0.0], 2)


@pytest.mark.parametrize("horizon", [1, 3, 10])
def test_return_of_an_early_end_and_of_one_cut_short(horizon: int) -> None:
    """The counting environment returns 1 + 2 + … + min(length, horizon)."""
    env, params = Counting(), CountingParams(longest=6)
    run = jax.jit(partial(played, env, horizon, IDLE, params))
    keys = jax.random.split(jax.random.key(0), 30)
    resets = jax.vmap(lambda key: env.reset(jax.random.split(key)[0], params)[1].length)(keys)
    steps = np.minimum(resets, horizon)
    np.testing.assert_array_equal(run(keys), steps * (steps + 1) / 2)


def test_final_reward_counts() -> None:
    """Delayed: the only reward comes with the last step."""
    env = Tabular(PROBES["delayed"].table)
    policy = saying([0.0, 0.0], 3)
    for horizon, expected in ((2, 0.0), (3, 1.0), (9, 1.0)):
        found = played(env, horizon, policy, env.default_params(), jax.random.key(0)[None])
        assert float(found[0]) == expected


@pytest.mark.parametrize(("action", "expected"), [(0, -1.0), (1, 1.0)])
def test_action_is_the_mode(action: int, expected: float) -> None:
    """Even where it is barely preferred, every time."""
    env = Tabular(PROBES["action"].table)
    policy = saying([0.0, 0.0], 3)
    bias = policy.layers[0].bias.at[0, action].set(0.01)
    policy = MLP((policy.layers[0]._replace(bias=bias),))
    run = partial(played, env, 5, policy, env.default_params())
    np.testing.assert_array_equal(run(jax.random.split(jax.random.key(0), 20)), expected)


def test_continuous_action_is_squashed_mean() -> None:
    """tanh(0.7) scaled to (−1, 3)."""
    action = 1.0 + 2.0 * np.tanh(0.7)
    key = jax.random.key(0)[None]
    found = played(Aim(), 3, saying([0.7], 1), AimParams(target=0.5), key)[0]
    np.testing.assert_allclose(found, -((action - 0.5) ** 2), rtol=1e-5)
    assert AIM_SUITE.jax_env.action.high == 3.0  # type: ignore[union-attr]


def test_agrees_with_a_python_loop() -> None:
    """CartPole, step by step with the same keys."""
    suite = find_suite("cartpole")
    env, params = CartPole(), suite.jax_env.default_params()
    policy = init_mlp(jax.random.key(5), (4, 8, 2))
    step = jax.jit(env.step)
    for seed in range(3):
        key = jax.random.key(seed)
        reset_key, step_key = jax.random.split(key)
        observation, state = env.reset(reset_key, params)
        total = 0.0
        for time in range(suite.horizon):
            action = jnp.argmax(policy(observation))
            observation, state, reward, terminated = step(
                jax.random.fold_in(step_key, time), state, action, params
            )
            total += float(reward)
            if terminated:
                break
        assert float(played(env, suite.horizon, policy, params, key[None])[0]) == total
        assert total < suite.horizon


@pytest.mark.parametrize(("horizon", "sound"), [(4, True), (5, False), (50, False)])
def test_a_simulation_that_broke_down_has_no_return(horizon: int, sound: bool) -> None:
    """Its rewards stay finite; the observation does not, from the 5th step on."""
    found = played(Exploding(), horizon, saying([0.5], 1), (), jax.random.key(0)[None])
    assert bool(np.isfinite(found[0])) == sound
