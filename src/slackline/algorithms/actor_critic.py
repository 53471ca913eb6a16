"""On-policy actor-critics: what A2C and PPO share, which is all but the surrogate.

An iteration collects steps with the current policies, estimates their advantages, and descends the
loss of policy, critic and auxiliary network in epochs × minibatches. Then the steps are forgotten.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from slackline.agents.agent import Agent
from slackline.algorithms.base import Algorithm, AlgorithmConfig, InitKeys
from slackline.algorithms.losses import gae, normalise, value_loss
from slackline.algorithms.optimisers import adams, descend
from slackline.errors import SlacklineError
from slackline.io.decode import count, flag, number, one_of
from slackline.networks.impala import Network
from slackline.parallel import collectives
from slackline.parallel.blocks import Blocks, merge_blocks, picked
from slackline.types import Array, Transition


@dataclass(frozen=True)
class ActorCriticConfig(AlgorithmConfig):
    """Settings of on-policy actor-critics."""

    gae_lambda: float = number(1.0, low=0.0, high=1.0)
    """GAE coefficient λ."""
    entropy: float = number(1e-3, low=0.0, high=1e3)
    """Weight of the entropy bonus."""
    critic_coefficient: float = number(1.0, above=0.0, high=1e3)
    """Weight of the critic's loss; matters where it shares its network with the policy."""
    epochs: int = count(1, high=65_536)
    """Passes over the collected steps."""
    minibatches: int = count(1, high=65_536)
    """Parts each pass is cut into."""
    minibatch_of: Literal["steps", "trajectories"] = one_of(
        "steps", lambda: ("steps", "trajectories")
    )
    """What is shuffled into minibatches: single steps, or sub-trajectories, as the paper does."""
    trajectory: int = count(0, low=0, high=65_536)
    """Steps of a sub-trajectory, of which a minibatch is made; 0: num_steps."""
    normalise_advantage: bool = flag(False)
    """Scale the advantages of a minibatch to mean 0 and standard deviation 1."""


class Networks(NamedTuple):
    """The trained networks and their optimisers' states."""

    policy: Network
    critic: Network | tuple[()]
    """() where the policy's network has the value as its last output."""
    auxiliary: Any
    """The method's own network (a discriminator), or ()."""
    optimisers: tuple[Any, Any, Any]
    """Adam's state for each of them."""


class Samples(NamedTuple):
    """The steps an update learns from, their advantages and value targets."""

    step: Transition
    advantage: Array
    target: Array


class Losses(NamedTuple):
    """Means over an iteration's minibatches."""

    surrogate: Array
    entropy: Array
    penalty: Array
    """What the method's auxiliary adds to the policy's loss."""
    critic: Array
    discriminator: Array


class ActorCritic(Algorithm):
    """Learns from the steps of one iteration, by the surrogate that a subclass defines."""

    @abc.abstractmethod
    def surrogate(self, log_prob: Array, samples: Samples, config: Any) -> Array:
        """What the policy minimises for the return, given log π(a|s) of the samples' actions."""

    def check(self, config: ActorCriticConfig, steps_per_block: int) -> None:
        if config.minibatch_of == "trajectories":
            return self._check_trajectories(config, steps_per_block)
        if steps_per_block % config.minibatches:
            raise SlacklineError(
                f"minibatches is {config.minibatches}; it must divide block × num_steps, "
                f"{steps_per_block}"
            )
        return None

    def _check_trajectories(self, config: Any, steps_per_block: int) -> None:
        length = config.trajectory or config.num_steps
        if config.num_steps % length:
            raise SlacklineError(
                f"trajectory is {length}; it must divide num_steps, {config.num_steps}, or be 0"
            )
        if steps_per_block // length % config.minibatches:
            raise SlacklineError(
                f"minibatches is {config.minibatches}; it must divide the sub-trajectories of a "
                f"block, {steps_per_block // length}"
            )

    def init(self, keys: InitKeys, agent: Agent, config: Any) -> Networks:
        policy, critic = agent.init(keys.policy, keys.critic, config)
        networks: Any = (policy, critic, agent.auxiliary(keys.auxiliary, config))
        optimisers = adams(config, agent.method.movement)
        memories = tuple(adam.init(n) for adam, n in zip(optimisers, networks, strict=True))
        return Networks(*networks, memories)  # type: ignore[call-arg]

    def prepare(
        self,
        agent: Agent,
        state: Networks,
        steps: Transition,
        config: ActorCriticConfig,
        shortest_limit: int,
    ) -> Samples:
        """Advantages and value targets of the collected steps, (T, N)."""
        value_of = partial(agent.values, state.policy, state.critic)
        values = steps.value
        if values is None:
            values = value_of(steps.observation, steps.z)
        auxiliary, latent = agent.method.auxiliary, agent.method.latent
        bonus = agent.by_row(lambda row: auxiliary.bonus(state.auxiliary, latent, row), steps)
        advantage = gae(
            config.reward_scale * steps.reward + bonus,
            values,
            next_values(value_of, steps, values, shortest_limit),
            steps.terminated,
            steps.truncated,
            config.discount,
            config.gae_lambda,
        )
        return Samples(steps, advantage, advantage + values)

    def update(
        self,
        key: Array,
        agent: Agent,
        state: Networks,
        samples: Samples,
        config: ActorCriticConfig,
        blocks: Blocks,
    ) -> tuple[Networks, Losses]:
        """Epochs × minibatches of gradient steps."""
        cut = shuffled_units(config, samples.advantage.shape)
        samples = jax.tree.map(cut.units, samples)

        def scaled(advantage: Array) -> Array:
            return normalise(advantage, blocks.axis) if config.normalise_advantage else advantage

        def improve(networks: Networks, samples: Samples) -> tuple[Networks, Losses]:
            """One gradient step of every network."""
            gradients = partial(self.gradients, agent, networks, config)
            found, losses = collectives.mean(agent.mean_over(gradients, samples), blocks.axis)
            optimisers = adams(config, agent.method.movement)
            every = zip(optimisers, found, networks[:3], networks.optimisers, strict=True)
            moved, memories = zip(*(descend(*each) for each in every), strict=True)
            return Networks(*moved, memories), losses  # type: ignore[call-arg]

        if config.epochs == config.minibatches == 1:
            whole = jax.tree.map(lambda x: cut.steps(merge_blocks(x)), samples)
            return improve(state, whole._replace(advantage=scaled(whole.advantage)))

        def minibatch(networks: Networks, part: tuple[Array, Array]) -> tuple[Networks, Losses]:
            rows, advantage = part
            steps, target = jax.tree.map(
                lambda x: cut.steps(picked(x, rows)), (samples.step, samples.target)
            )
            return improve(networks, Samples(steps, advantage, target))

        rows = blocks.minibatches(key, cut.num, config.epochs, config.minibatches)
        advantage = jax.vmap(lambda rows: cut.steps(picked(samples.advantage, rows)))(rows)
        # Those of all minibatches are scaled at once: one collective instead of one for each.
        state, losses = jax.lax.scan(minibatch, state, (rows, scaled(advantage)))
        return state, jax.tree.map(jnp.mean, losses)

    def gradients(
        self, agent: Agent, networks: Networks, config: Any, samples: Samples
    ) -> tuple[Any, Losses]:
        """The gradients of policy, critic and auxiliary over samples (B, ...), and the losses:

        surrogate − c_H · entropy + penalty + c_V · critic's loss
        """
        steps, distribution = samples.step, agent.distribution
        latent, auxiliary = agent.method.latent, agent.method.auxiliary

        def loss(policy: Network, critic: Any) -> tuple[Array, tuple[Losses, Array]]:
            outputs, value = agent.outputs_and_value(policy, critic, steps.observation, steps.z)
            log_prob = distribution.log_prob(outputs, steps.action, config.action_std)
            surrogate = self.surrogate(log_prob, samples, config)
            entropy = jnp.mean(distribution.entropy(outputs, config.action_std))
            action = distribution.greedy(outputs)
            penalty = auxiliary.policy_loss(networks.auxiliary, latent, policy, steps, action)
            error = value_loss(value, samples.target)
            total = surrogate - config.entropy * entropy + penalty
            total += config.critic_coefficient * error
            return total, (Losses(surrogate, entropy, penalty, error, jnp.zeros(())), action)

        def auxiliary_loss(network: Any) -> Array:
            return auxiliary.own_loss(network, latent, steps, action)

        downhill = jax.grad(loss, argnums=(0, 1), has_aux=True)
        found, (losses, action) = downhill(networks.policy, networks.critic)
        guess, auxiliary_gradient = jax.value_and_grad(auxiliary_loss)(networks.auxiliary)
        return (*found, auxiliary_gradient), losses._replace(discriminator=guess)

    def iterations_done(self, state: Networks, config: ActorCriticConfig) -> Array:
        """By the updates that the policy's optimiser has counted."""
        updates = optax.tree_utils.tree_get(state.optimisers[0], "count")
        return updates / (config.epochs * config.minibatches)


class Units(NamedTuple):
    """What a block's steps (T, N) are cut into before they are shuffled: single steps, or pieces of
    `length` steps of one environment."""

    num: int
    """Of one block."""
    length: int
    """1: single steps."""

    def units(self, x: Array) -> Array:
        """(blocks, T, N, ...) -> (blocks, num, ...), or (blocks, num, length, ...) of pieces."""
        blocks, steps, envs, *rest = x.shape
        if self.length == 1:
            return x.reshape(blocks, self.num, *rest)
        pieces = x.reshape(blocks, steps // self.length, self.length, envs, *rest)
        return jnp.moveaxis(pieces, 2, 3).reshape(blocks, self.num, self.length, *rest)

    def steps(self, x: Array) -> Array:
        """Units as the steps that they are made of: (n, ...) or (n, length, ...) -> (steps, ...)"""
        return x if self.length == 1 else merge_blocks(x)


def shuffled_units(config: Any, shape: tuple[int, ...]) -> Units:
    """Of samples (blocks, T, N)."""
    _, steps, envs = shape
    length = 1
    if config.minibatch_of == "trajectories":
        length = config.trajectory or steps
    return Units(steps * envs // length, length)


def next_values(value_of: Any, steps: Transition, values: Array, shortest_limit: int) -> Array:
    """V of the observations that the steps (T, N) reached, given those they began with.

    They are the next row's, except at the last step and at time limits; after a termination they
    are not used. If no environment meets its time limit twice within T steps, two new rows are
    enough.
    """
    if values.shape[0] > shortest_limit:
        return value_of(steps.next_observation, steps.z)
    cut = jnp.argmax(steps.truncated, axis=0)
    ends = jnp.stack([cut, jnp.full_like(cut, values.shape[0] - 1)])

    def at_ends(x: Array) -> Array:
        return x[ends, jnp.arange(x.shape[1])]

    at_cut, at_last = value_of(at_ends(steps.next_observation), at_ends(steps.z))
    following = jnp.concatenate([values[1:], at_last[None]])
    return jnp.where(steps.truncated, at_cut, following)
