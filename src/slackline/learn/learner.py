"""The learner: one training iteration, whatever the agent and the algorithm are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from slackline.agents import Agent, agent_of
from slackline.algorithms import ALGORITHMS
from slackline.algorithms.base import InitKeys
from slackline.envs.api import Env
from slackline.envs.host import HostEnv
from slackline.learn.hyper import Hyper
from slackline.learn.normalise import Moments, no_moments
from slackline.methods.method import Method
from slackline.networks.distributions import Distribution
from slackline.parallel import collectives
from slackline.parallel.blocks import Blocks, one_by_one
from slackline.rollout import CompiledRunner, HostRunner, Running, Totals, runner_of
from slackline.types import Array, Transition


class Keys(NamedTuple):
    """What one iteration draws from."""

    next: Array
    """The train state's key after it."""
    collect: Array
    update: Array


class TrainState(NamedTuple):
    """Everything one seed needs to go on: what a checkpoint holds.

    What the fields are called in files is kept in `store/checkpoint_names.py`.
    """

    networks: Any
    """The algorithm's state: the networks and its optimisers' memory."""
    moments: Moments | tuple[()]
    """What observations are normalised by, or () where they are not."""
    running: Any
    """A `Running`, every field (blocks, environments of a block, ...); () where a host has them."""
    key: Array

    @property
    def keys(self) -> Keys:
        """Those of the next iteration, however its steps are collected."""
        return Keys(*jax.random.split(self.key, 3))


@dataclass(frozen=True)
class Learner:
    """Trains one seed of `method` on `env`; pure, so seeds and hyper-parameters can be vmapped."""

    env: Env | HostEnv
    horizon: int
    method: Method
    axis: str | None = None
    """The mesh axis whose devices share out the blocks of environments, if any does."""

    @property
    def agent(self) -> Agent:
        return agent_of(self.env.observation_shape, self.env.action, self.method)

    @property
    def distribution(self) -> Distribution:
        return self.agent.distribution

    @property
    def sees_pictures(self) -> bool:
        return len(self.env.observation_shape) == 3

    @property
    def shortest_limit(self) -> int:
        """No episode is cut before it has this many steps; of most hosts' nothing is known."""
        return self.runner.shortest_limit

    @property
    def runner(self) -> CompiledRunner | HostRunner:
        """What plays the episodes."""
        return runner_of(self.env, self.horizon)

    def blocks(self, hyper: Hyper) -> Blocks:
        return Blocks(hyper.num_blocks, self.axis)

    def init(self, key: Array, hyper: Hyper) -> TrainState:
        """Fresh networks and fresh environments."""
        policy_key, critic_key, auxiliary_key, env_key, key = jax.random.split(key, 5)
        keys = InitKeys(policy_key, critic_key, auxiliary_key)
        return TrainState(
            ALGORITHMS[hyper.algorithm].init(keys, self.agent, hyper),
            no_moments(self.env.observation_size) if hyper.normalise_observation else (),
            self.start(env_key, hyper),
            key,
        )

    def iteration(
        self, state: TrainState, hyper: Hyper, budget: float | Array = jnp.inf
    ) -> tuple[TrainState, Totals, Any]:
        """Collect with the current policies, block by block, and learn from it.

        `budget` is the number of iterations of the whole training, which schedules go by; without
        one they stay where they begin.
        """

        def act_and_judge(block: tuple[Array, Running]) -> tuple[Running, Any, Array, Totals]:
            running, steps, episodes = self.collect(*block, state, hyper)
            return running, self.judge(state, steps, hyper), steps.observation, episodes

        blocks = (self.blocks(hyper).keys(state.keys.collect), state.running)
        running, samples, observations, episodes = one_by_one(act_and_judge, blocks)
        state, losses = self.learn(state, samples, observations, hyper, budget)
        return state._replace(running=running), self.of_all_blocks(episodes), losses

    def learn(
        self,
        state: TrainState,
        samples: Any,
        observations: Array,
        hyper: Hyper,
        budget: float | Array,
    ) -> tuple[TrainState, Any]:
        """What an iteration ends with, wherever its steps came from: samples (blocks, T, N, ...),
        and the observations before they were normalised."""
        algorithm, keys = ALGORITHMS[hyper.algorithm], state.keys
        progress = algorithm.iterations_done(state.networks, hyper) / budget
        agent, now, blocks = self.agent.at(progress), hyper.at(progress), self.blocks(hyper)
        networks, losses = algorithm.update(
            keys.update, agent, state.networks, samples, now, blocks
        )
        moments = state.moments.absorb(observations, self.axis) if state.moments else ()
        return state._replace(networks=networks, moments=moments, key=keys.next), losses

    def start(self, key: Array, hyper: Hyper) -> Running | tuple[()]:
        """Fresh environments, block by block; those of a host cannot be part of the state."""

        def begin(key: Array) -> Running | tuple[()]:
            return self.runner.start(key, self.method.latent.sample, hyper.envs_per_block)

        return one_by_one(begin, self.blocks(hyper).keys(key))

    def of_all_blocks(self, episodes: Totals) -> Totals:
        """One summary from the blocks' (blocks,), those of other devices included."""
        sums = jax.tree.map(lambda x: collectives.total(jnp.sum(x, axis=0), self.axis), episodes)
        return sums._replace(sound=collectives.least(jnp.min(episodes.sound), self.axis))

    def collect(
        self, key: Array, running: Running, state: TrainState, hyper: Hyper
    ) -> tuple[Running, Transition, Totals]:
        runner = self.runner
        assert isinstance(runner, CompiledRunner)
        key, act_key = jax.random.split(key)
        noise = self.distribution.noise(act_key, (hyper.num_steps, hyper.envs_per_block))
        act = partial(self.act, state, hyper)
        return runner.steps(key, running, act, self.method.latent.sample, noise)

    def act(
        self, state: TrainState, hyper: Hyper, noise: Array, observation: Array, z: Array
    ) -> tuple[Array, Array, Array]:
        """(the action as it is stored, as the environment takes it, the former's log-prob)"""
        observation = normalised(state.moments, observation)
        algorithm = ALGORITHMS[hyper.algorithm]
        return algorithm.act(self.agent, state.networks, noise, observation, z, hyper)

    def judge(self, state: TrainState, steps: Transition, hyper: Hyper) -> Any:
        """What the algorithm learns from, of collected steps (T, N)."""
        steps = steps._replace(
            observation=normalised(state.moments, steps.observation),
            next_observation=normalised(state.moments, steps.next_observation),
        )
        algorithm, limit = ALGORITHMS[hyper.algorithm], self.shortest_limit
        return algorithm.prepare(self.agent, state.networks, steps, hyper, limit)

    def outputs_and_value(self, networks: Any, observation: Array, z: Array) -> tuple[Array, Array]:
        """What the distribution takes, from the policy at z, and V(s, z)."""
        return self.agent.outputs_and_value(networks.policy, networks.critic, observation, z)


def normalised(moments: Moments | tuple[()], observation: Array) -> Array:
    return moments.normalise(observation) if moments else observation
