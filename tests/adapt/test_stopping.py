"""Hopeless episodes in batches: told, and saved, as by hand, in JAX and in pools of a host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest
from hands import by_hand

from slackline.adapt.catalogue import Spending, adapter_named
from slackline.adapt.kshot import adapt_by
from slackline.api import Line
from slackline.envs.api import Continuous, Env
from slackline.envs.gymnasium import describe
from slackline.errors import SlacklineError
from slackline.learn.hyper import Hyper
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.mlp import MLP, Layer
from slackline.suites.own import suite_of
from slackline.suites.suite import TRAIN, Protocol, Suite

STEPS, FALL = 40, 3
"""Steps of an episode; after how many steps those fall whose action is below −0.5."""
PROTOCOL = Protocol(steps=1, shots=5, episodes=1, score_episodes=2)


def reward_of(action: Any) -> Any:
    """Of a step: the nearer to 0.5 the better."""
    return 1.0 - abs(action - 0.5)


class WalkParams(NamedTuple):
    nothing: float = 0.0


class Walk(Env):
    """The observation is always 1, the state counts steps."""

    observation_size = 1
    action = Continuous(1, low=-1.0, high=1.0)

    def default_params(self) -> WalkParams:
        return WalkParams()

    def reset(self, key: Any, params: WalkParams) -> tuple[Any, Any]:
        return jnp.ones(1), jnp.int32(0)

    def step(self, key: Any, state: Any, action: Any, params: WalkParams) -> Any:
        fell = (action[0] < -0.5) & (state + 1 >= FALL)
        return jnp.ones(1), state + 1, reward_of(action[0]), fell


class HostWalk(gym.Env):
    observation_space = gym.spaces.Box(-9.0, 9.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self) -> None:
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.steps += 1
        HostWalk.count += 1
        fell = float(action[0]) < -0.5 and self.steps >= FALL
        reward = float(reward_of(float(action[0])))
        return np.ones(1, np.float32), reward, fell, self.steps >= STEPS, {}

    count = 0


def suite_in(kind: str) -> Suite:
    if kind == "jax":
        return Suite("walk", "Walk", Walk(), STEPS, (), Hyper(), PROTOCOL)
    return replace(suite_of(describe("host-walk", HostWalk, {})), horizon=STEPS, protocol=PROTOCOL)


def line(suite: Suite, seed: int = 0) -> Line:
    """Policies whose action is tanh of a number between −2 (z = 1) and 2 (z = 0)."""
    bias = np.array([-2.0, 2.0], np.float32)[:, None]
    policy = MLP((Layer(np.zeros((2, 1, 1), np.float32), bias),))  # type: ignore[arg-type]
    return Line(suite.name, CATALOGUE["lop"], seed, Continuous(1), policy, policy, home=suite)


def played_by_hand(budget: int) -> tuple[np.ndarray, int, int]:
    """(what was told, steps played, steps saved) with `adapter.episode()`."""
    adapter = by_hand(CATALOGUE["lop"].latent, "nested", budget)
    played = 0
    while adapter.remaining:
        episode = adapter.episode()
        action = float(np.tanh(2.0 - 4.0 * episode.z[0]))
        for step in range(1, STEPS + 1):
            played += 1
            done = step == STEPS or (action < -0.5 and step >= FALL)
            if episode.on_step(reward_of(action), done=done) or done:
                break
        episode.end()
    return adapter.state.returns, played, adapter.saved_steps


@pytest.mark.parametrize("kind", ["jax", "host"])
def test_batches_are_told_and_saved_as_by_hand(kind: str) -> None:
    suite, budget = suite_in(kind), 18
    told, played, saved = played_by_hand(budget)
    assert saved > 0, "or it would show nothing"
    HostWalk.count = 0
    found = adapt_by(
        adapter_named("nested"), budget, [line(suite)], [TRAIN], 1, suite=suite, stop_hopeless=3.0
    )
    np.testing.assert_allclose(found.returns[0, 0], told, rtol=1e-5)
    assert (found.played_steps[0, 0], found.saved_steps[0, 0]) == (played, saved)
    if kind == "host":  # the rest is the fresh episode
        assert played <= HostWalk.count <= played + STEPS + budget, "the steps were really saved"


def test_nothing_is_stopped_unless_asked_for() -> None:
    suite = suite_in("jax")
    found = adapt_by(adapter_named("nested"), 9, [line(suite)], [TRAIN], 1, suite=suite)
    assert found.saved_steps.sum() == found.played_steps.sum() == 0
    one = line(suite).adapt(TRAIN, adapter="nested", budget=18, stop_hopeless=3.0)
    assert one.saved_steps > 0


@pytest.mark.parametrize("margin", [0.0, -1.0, np.nan, "far"])
def test_margins_that_are_none(margin: Any) -> None:
    with pytest.raises(SlacklineError, match="stop_hopeless"):
        Spending(adapter_named("bayes"), 5, margin)


def test_the_papers_rule_plays_every_episode() -> None:
    with pytest.raises(SlacklineError, match="not for the grid"):
        line(suite_in("jax")).adapt(TRAIN, stop_hopeless=3.0)
