"""The learner: one training iteration, top to bottom.

A2C and PPO are the same iteration; they differ in the surrogate and in epochs × minibatches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from slackline.envs.api import Array, Env
from slackline.learn.collect import Episodes, Running, Transition, collect, start
from slackline.learn.distributions import Distribution, distribution_of
from slackline.learn.hyper import Hyper
from slackline.learn.losses import a2c_surrogate, gae, normalise, ppo_surrogate, value_loss
from slackline.methods.method import Method
from slackline.networks import MLP, init_mlp


class Networks(NamedTuple):
    """What is trained, with the optimisers' memory."""

    policy: MLP
    critic: MLP
    auxiliary: Any
    """The method's own network (a discriminator), or ()."""
    optimisers: tuple[Any, Any, Any]
    """Adam's memory for each of them."""


class TrainState(NamedTuple):
    """Everything one seed needs to go on: what a checkpoint holds."""

    networks: Networks
    running: Running
    key: Array


class Samples(NamedTuple):
    """The steps an update learns from, and what it should think of them."""

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


@dataclass(frozen=True)
class Learner:
    """Trains one seed of `method` on `env`; pure, so seeds and hyper-parameters can be vmapped."""

    env: Env
    horizon: int
    method: Method

    @property
    def distribution(self) -> Distribution:
        return distribution_of(self.env.action)

    def init(self, key: Array, hyper: Hyper) -> TrainState:
        """Fresh networks (the anchors independent of each other) and fresh environments."""
        policy_key, critic_key, auxiliary_key, env_key, key = jax.random.split(key, 5)
        latent, conditioning = self.method.latent, self.method.conditioning
        observation_size, num_outputs = self.env.observation_size, self.distribution.num_outputs
        policy_in = conditioning.input_size(latent, observation_size)
        policy = init_mlp(
            policy_key, (policy_in, *hyper.hidden, num_outputs), conditioning.num_anchors(latent)
        )
        critic = init_mlp(critic_key, (observation_size + latent.size, *hyper.critic_hidden, 1))
        auxiliary = self.method.auxiliary.init(
            auxiliary_key, latent, observation_size, num_outputs, hyper
        )
        networks = (policy, critic, auxiliary)
        memories = tuple(adam.init(n) for adam, n in zip(adams(hyper), networks, strict=True))
        return TrainState(
            Networks(policy, critic, auxiliary, memories),  # type: ignore[arg-type]
            start(env_key, self.env, self.env.default_params(), latent, hyper.num_envs),
            key,
        )

    def iteration(self, state: TrainState, hyper: Hyper) -> tuple[TrainState, Episodes, Losses]:
        """Collect with the current policies, judge what was done, improve policy and critic."""
        key, collect_key, update_key = jax.random.split(state.key, 3)
        running, steps, episodes = self.collect(collect_key, state, hyper)
        samples = self.judge(state.networks, steps, hyper)
        networks, losses = self.update(update_key, state.networks, samples, hyper)
        return TrainState(networks, running, key), episodes, losses

    def collect(
        self, key: Array, state: TrainState, hyper: Hyper
    ) -> tuple[Running, Transition, Episodes]:
        def act(key: Array, observation: Array, z: Array) -> tuple[Array, Array, Array]:
            outputs = self.outputs(state.networks.policy, observation, z)
            action = self.distribution.sample(key, outputs, hyper.action_std)
            log_prob = self.distribution.log_prob(outputs, action, hyper.action_std)
            return action, self.distribution.to_env(action), log_prob

        return collect(
            key,
            state.running,
            act,
            self.env,
            self.env.default_params(),
            self.method.latent,
            self.horizon,
            hyper.num_steps,
        )

    def judge(self, networks: Networks, steps: Transition, hyper: Hyper) -> Samples:
        """Advantages and value targets of the collected steps, (T, N)."""
        values = self.value(networks.critic, steps.observation, steps.z)
        bonus = self.method.auxiliary.bonus(networks.auxiliary, self.method.latent, steps)
        advantage = gae(
            steps.reward + bonus,
            values,
            self.value(networks.critic, steps.next_observation, steps.z),
            steps.terminated,
            steps.truncated,
            hyper.discount,
            hyper.gae_lambda,
        )
        return Samples(steps, advantage, advantage + values)

    def update(
        self, key: Array, networks: Networks, samples: Samples, hyper: Hyper
    ) -> tuple[Networks, Losses]:
        """Epochs × minibatches of `improve`."""
        size, parts = hyper.steps_per_iteration, hyper.minibatches
        samples = jax.tree.map(lambda x: x.reshape(size, *x.shape[2:]), samples)
        if hyper.epochs == parts == 1:
            return self.improve(networks, samples, hyper)

        def minibatch(networks: Networks, chosen: Array) -> tuple[Networks, Losses]:
            return self.improve(networks, jax.tree.map(lambda x: x[chosen], samples), hyper)

        keys = jax.random.split(key, hyper.epochs)
        orders = jax.vmap(lambda k: jax.random.permutation(k, size))(keys)
        networks, losses = jax.lax.scan(minibatch, networks, orders.reshape(-1, size // parts))
        return networks, jax.tree.map(jnp.mean, losses)

    def improve(
        self, networks: Networks, samples: Samples, hyper: Hyper
    ) -> tuple[Networks, Losses]:
        """One gradient step of every network."""
        steps = samples.step
        advantage = normalise(samples.advantage) if hyper.normalise_advantage else samples.advantage
        latent, auxiliary = self.method.latent, self.method.auxiliary

        def policy_loss(policy: MLP) -> tuple[Array, tuple[Array, Array, Array, Array]]:
            outputs = self.outputs(policy, steps.observation, steps.z)
            log_prob = self.distribution.log_prob(outputs, steps.action, hyper.action_std)
            if hyper.algorithm == "ppo":
                surrogate = ppo_surrogate(log_prob, steps.log_prob, advantage, hyper.clip)
            else:
                surrogate = a2c_surrogate(log_prob, advantage)
            entropy = jnp.mean(self.distribution.entropy(outputs, hyper.action_std))
            action = self.distribution.to_env(self.distribution.mode(outputs))
            penalty = auxiliary.policy_loss(networks.auxiliary, latent, policy, steps, action)
            total = surrogate - hyper.entropy * entropy + penalty
            return total, (surrogate, entropy, penalty, action)

        def critic_loss(critic: MLP) -> Array:
            return value_loss(self.value(critic, steps.observation, steps.z), samples.target)

        def auxiliary_loss(network: Any) -> Array:
            return auxiliary.own_loss(network, latent, steps, action)

        downhill = jax.grad(policy_loss, has_aux=True)(networks.policy)
        policy_gradient, (surrogate, entropy, penalty, action) = downhill
        error, critic_gradient = jax.value_and_grad(critic_loss)(networks.critic)
        guess, auxiliary_gradient = jax.value_and_grad(auxiliary_loss)(networks.auxiliary)
        moved = [
            descend(adam, gradient, network, memory)
            for adam, gradient, network, memory in zip(
                adams(hyper),
                (policy_gradient, critic_gradient, auxiliary_gradient),
                networks[:3],
                networks.optimisers,
                strict=True,
            )
        ]
        new, memories = zip(*moved, strict=True)
        return Networks(*new, memories), Losses(surrogate, entropy, penalty, error, guess)  # type: ignore[call-arg]

    def outputs(self, policy: MLP, observation: Array, z: Array) -> Array:
        """What the distribution takes, (..., num_outputs), from the policy at z."""
        return self.method.conditioning.outputs(self.method.latent, policy, observation, z)

    def value(self, critic: MLP, observation: Array, z: Array) -> Array:
        """V(s, z): the critic always knows which policy it judges."""
        return critic(jnp.concatenate([observation, z], axis=-1))[..., 0]


def adams(hyper: Hyper) -> tuple[optax.GradientTransformation, ...]:
    """Adam on clipped gradients, for the policy, the critic and the auxiliary network."""
    clip: Any = hyper.max_grad_norm
    rates = (hyper.policy_lr, hyper.critic_lr, hyper.discriminator_lr)
    return tuple(optax.chain(optax.clip_by_global_norm(clip), optax.adam(rate)) for rate in rates)


def descend(
    adam: optax.GradientTransformation, gradient: Any, network: Any, memory: Any
) -> tuple[Any, Any]:
    updates, memory = adam.update(gradient, memory)
    return optax.apply_updates(network, updates), memory
