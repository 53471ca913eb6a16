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
    policy_opt: Any
    critic_opt: Any


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
    policy: Array
    critic: Array
    entropy: Array
    auxiliary: Array


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
        policy_key, critic_key, env_key, key = jax.random.split(key, 4)
        latent, conditioning = self.method.latent, self.method.conditioning
        policy_in = conditioning.input_size(latent, self.env.observation_size)
        critic_in = self.env.observation_size + latent.size
        policy = init_mlp(
            policy_key,
            (policy_in, *hyper.hidden, self.distribution.num_outputs),
            conditioning.num_anchors(latent),
        )
        critic = init_mlp(critic_key, (critic_in, *hyper.critic_hidden, 1))
        policy_adam, critic_adam = optimisers(hyper)
        return TrainState(
            Networks(policy, critic, policy_adam.init(policy), critic_adam.init(critic)),
            start(env_key, self.env, self.env.default_params(), latent, hyper.num_envs),
            key,
        )

    def iteration(self, state: TrainState, hyper: Hyper) -> tuple[TrainState, Episodes, Losses]:
        """Collect with the current policies, judge what was done, improve policy and critic."""
        key, collect_key, update_key = jax.random.split(state.key, 3)
        running, steps, episodes = self.collect(collect_key, state, hyper)
        samples = self.judge(state.networks.critic, steps, hyper)
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

    def judge(self, critic: MLP, steps: Transition, hyper: Hyper) -> Samples:
        """Advantages and value targets of the collected steps, (T, N)."""
        values = self.value(critic, steps.observation, steps.z)
        advantage = gae(
            steps.reward,
            values,
            self.value(critic, steps.next_observation, steps.z),
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
        """One gradient step of the policy and of the critic."""
        advantage = samples.advantage
        if hyper.normalise_advantage:
            advantage = normalise(advantage)

        def policy_loss(policy: MLP) -> tuple[Array, tuple[Array, Array, Array]]:
            outputs = self.outputs(policy, samples.step.observation, samples.step.z)
            log_prob = self.distribution.log_prob(outputs, samples.step.action, hyper.action_std)
            if hyper.algorithm == "ppo":
                surrogate = ppo_surrogate(log_prob, samples.step.log_prob, advantage, hyper.clip)
            else:
                surrogate = a2c_surrogate(log_prob, advantage)
            entropy = jnp.mean(self.distribution.entropy(outputs, hyper.action_std))
            auxiliary = self.method.auxiliary.loss(policy)
            return surrogate - hyper.entropy * entropy + auxiliary, (surrogate, entropy, auxiliary)

        def critic_loss(critic: MLP) -> Array:
            value = self.value(critic, samples.step.observation, samples.step.z)
            return value_loss(value, samples.target)

        policy_adam, critic_adam = optimisers(hyper)
        gradient, (surrogate, entropy, auxiliary) = jax.grad(policy_loss, has_aux=True)(networks.policy)
        policy, policy_opt = descend(policy_adam, gradient, networks.policy, networks.policy_opt)
        error, gradient = jax.value_and_grad(critic_loss)(networks.critic)
        critic, critic_opt = descend(critic_adam, gradient, networks.critic, networks.critic_opt)
        losses = Losses(surrogate, error, entropy, auxiliary)
        return Networks(policy, critic, policy_opt, critic_opt), losses

    def outputs(self, policy: MLP, observation: Array, z: Array) -> Array:
        """What the distribution takes, (..., num_outputs), from the policy at z."""
        return self.method.conditioning.outputs(self.method.latent, policy, observation, z)

    def value(self, critic: MLP, observation: Array, z: Array) -> Array:
        """V(s, z): the critic always knows which policy it judges."""
        return critic(jnp.concatenate([observation, z], axis=-1))[..., 0]


def optimisers(hyper: Hyper) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    """Adam on clipped gradients, for the policy and for the critic."""

    def adam(learning_rate: Any) -> optax.GradientTransformation:
        clip: Any = hyper.max_grad_norm
        return optax.chain(optax.clip_by_global_norm(clip), optax.adam(learning_rate))

    return adam(hyper.policy_lr), adam(hyper.critic_lr)


def descend(
    adam: optax.GradientTransformation, gradient: Any, network: Any, opt: Any
) -> tuple[Any, Any]:
    updates, opt = adam.update(gradient, opt)
    return optax.apply_updates(network, updates), opt
