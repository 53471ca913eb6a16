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
from slackline.parallel.keys import fast
from slackline.rollout import CompiledRunner, HostRunner, Running, Totals, runner_of
from slackline.types import Array, Transition


class Keys(NamedTuple):
    """The PRNG keys of one iteration."""

    next: Array
    """The train state's key after it."""
    collect: Array
    update: Array


class TrainState(NamedTuple):
    """Everything one seed needs to continue training: the content of a checkpoint.

    What the fields are called in files is kept in `store/checkpoint_names.py`.
    """

    networks: Any
    """The algorithm's state: the networks and its optimisers' memory."""
    moments: Moments | tuple[()]
    """Mean and deviation that observations are normalised by; () without normalisation."""
    running: Any
    """The environments (a `Running`), every field (blocks, environments of a block, ...); () for
    environments outside JAX, which cannot be saved."""
    key: Array

    @property
    def keys(self) -> Keys:
        """The keys of the next iteration."""
        return Keys(*jax.random.split(self.key, 3))


@dataclass(frozen=True)
class Learner:
    """Trains one seed of `method` on `env`; pure, so seeds and hyper-parameters can be vmapped."""

    env: Env | HostEnv
    horizon: int
    method: Method
    axis: str | None = None
    """The mesh axis over which blocks of environments are distributed, if any."""

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
        """No episode is truncated before this many steps; 0 where the limit is not known."""
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
        """Update networks and observation moments, from samples (blocks, T, N, ...) and the
        observations before normalisation."""
        algorithm, keys = ALGORITHMS[hyper.algorithm], state.keys
        progress = algorithm.iterations_done(state.networks, hyper) / budget
        agent, now, blocks = self.agent.at(progress), hyper.at(progress), self.blocks(hyper)
        networks, losses = algorithm.update(
            fast(keys.update), agent, state.networks, samples, now, blocks
        )
        moments = state.moments.absorb(observations, self.axis) if state.moments else ()
        return state._replace(networks=networks, moments=moments, key=keys.next), losses

    def start(self, key: Array, hyper: Hyper) -> Running | tuple[()]:
        """Freshly reset environments, block by block; () for those outside JAX."""

        def begin(key: Array) -> Running | tuple[()]:
            return self.runner.start(key, self.method.latent.sample, hyper.envs_per_block)

        return one_by_one(begin, self.blocks(hyper).keys(key))

    def of_all_blocks(self, episodes: Totals) -> Totals:
        """Totals over all blocks (blocks,), those on other devices included."""
        sums = jax.tree.map(lambda x: collectives.total(jnp.sum(x, axis=0), self.axis), episodes)
        return sums._replace(sound=collectives.least(jnp.min(episodes.sound), self.axis))

    def collect(
        self, key: Array, running: Running, state: TrainState, hyper: Hyper
    ) -> tuple[Running, Transition, Totals]:
        runner = self.runner
        assert isinstance(runner, CompiledRunner)
        key, act_key = jax.random.split(fast(key))
        noise = self.distribution.noise(act_key, (hyper.num_steps, hyper.envs_per_block))
        act = partial(self.act, state, hyper)
        return runner.steps(key, running, act, self.method.latent.sample, noise)

    def act(
        self, state: TrainState, hyper: Hyper, noise: Array, observation: Array, z: Array
    ) -> tuple[Array, Array, Array]:
        """(the action as stored, the action as the environment takes it, log-prob of the first)"""
        observation = normalised(state.moments, observation)
        algorithm = ALGORITHMS[hyper.algorithm]
        return algorithm.act(self.agent, state.networks, noise, observation, z, hyper)

    def judge(self, state: TrainState, steps: Transition, hyper: Hyper) -> Any:
        """The algorithm's samples (PPO, A2C: advantages and value targets) of steps (T, N)."""
        steps = steps._replace(
            observation=normalised(state.moments, steps.observation),
            next_observation=normalised(state.moments, steps.next_observation),
        )
        algorithm, limit = ALGORITHMS[hyper.algorithm], self.shortest_limit
        return algorithm.prepare(self.agent, state.networks, steps, hyper, limit)

    def outputs_and_value(self, networks: Any, observation: Array, z: Array) -> tuple[Array, Array]:
        """The policy's outputs at z, which parametrise the distribution, and V(s, z)."""
        return self.agent.outputs_and_value(networks.policy, networks.critic, observation, z)


def normalised(moments: Moments | tuple[()], observation: Array) -> Array:
    return moments.normalise(observation) if moments else observation
