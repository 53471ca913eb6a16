"""The learner: one training iteration, top to bottom.

A2C and PPO are the same iteration; they differ in the surrogate and in epochs × minibatches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from slackline.envs.api import Env
from slackline.envs.host import HostEnv
from slackline.learn import across
from slackline.learn.collect import Episodes, Running, collect, start
from slackline.learn.hyper import Hyper
from slackline.learn.losses import a2c_surrogate, gae, normalise, ppo_surrogate, value_loss
from slackline.learn.normalise import Moments, no_moments
from slackline.methods.method import Method
from slackline.methods.movement import Movement
from slackline.networks.distributions import Distribution, distribution_of
from slackline.networks.impala import Network, init_network
from slackline.networks.mlp import NormedMLP
from slackline.types import Array, Transition


class Networks(NamedTuple):
    """What is trained, with the optimisers' memory."""

    policy: Network
    critic: Network | tuple[()]
    """() where the policy's network has the value as its last output."""
    auxiliary: Any
    """The method's own network (a discriminator), or ()."""
    optimisers: tuple[Any, Any, Any]
    """Adam's memory for each of them."""


class TrainState(NamedTuple):
    """Everything one seed needs to go on: what a checkpoint holds."""

    networks: Networks
    seen: Moments | tuple[()]
    """What observations are normalised by, or () where they are not."""
    running: Any
    """A `Running`, every field (blocks, environments of a block, ...); () where a host has them."""
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

    env: Env | HostEnv
    horizon: int
    method: Method
    axis: str | None = None
    """The mesh axis whose devices share out the blocks of environments, if any does."""

    @property
    def distribution(self) -> Distribution:
        return distribution_of(self.env.action)

    @property
    def sees_pictures(self) -> bool:
        """Then policy and critic are one network, and only a few pictures fit the cache at once."""
        return len(self.env.observation_shape) == 3

    @property
    def shortest_limit(self) -> int:
        """No episode is cut before it has this many steps; of most hosts' nothing is known."""
        if isinstance(self.env, HostEnv):
            return self.env.shortest_limit
        with jax.ensure_compile_time_eval():
            return int(self.env.time_limit(self.env.default_params(), self.horizon))

    def init(self, key: Array, hyper: Hyper) -> TrainState:
        """Fresh networks, the anchors as far apart as `hyper` says, and fresh environments."""
        policy_key, critic_key, auxiliary_key, env_key, key = jax.random.split(key, 5)
        latent, conditioning = self.method.latent, self.method.conditioning
        num_outputs = self.distribution.num_outputs
        make = partial(
            init_network,
            seen=self.env.observation_shape,
            patch=hyper.patch,
            channels=hyper.channels,
        )
        policy = make(
            policy_key,
            hyper.hidden,
            conditioning.input_size(latent, 0),
            num_outputs + self.sees_pictures,
            conditioning.num_anchors(latent),
        )
        policy = self.method.movement.start(policy, hyper.apart)
        if not self.sees_pictures:
            policy = shaped(policy, hyper)
        critic: Any = ()
        if not self.sees_pictures:
            critic = make(critic_key, hyper.critic_hidden, latent.size, 1)
        discriminator = partial(make, auxiliary_key, hyper.discriminator_hidden)
        auxiliary = self.method.auxiliary.init(discriminator, latent, num_outputs)
        networks: Any = (policy, critic, auxiliary)
        optimisers = adams(hyper, self.method.movement)
        memories = tuple(adam.init(n) for adam, n in zip(optimisers, networks, strict=True))
        return TrainState(
            Networks(policy, critic, auxiliary, memories),  # type: ignore[arg-type]
            no_moments(self.env.observation_size) if hyper.normalise_observation else (),
            self.start(env_key, hyper),
            key,
        )

    def iteration(
        self, state: TrainState, hyper: Hyper, budget: float | Array = jnp.inf
    ) -> tuple[TrainState, Episodes, Losses]:
        """Collect with the current policies, judge what was done, improve policy and critic.

        `budget` is the number of iterations of the whole training, which schedules go by; without
        one they stay where they begin.
        """
        _, collect_key, _ = jax.random.split(state.key, 3)

        def act_and_judge(block: tuple[Array, Running]) -> tuple[Running, Samples, Any, Episodes]:
            running, steps, episodes = self.collect(*block, state, hyper)
            raw = steps.observation
            return running, self.judge(state, steps, hyper), raw, episodes

        blocks = (self.keys_of_blocks(collect_key, hyper), state.running)
        running, samples, observations, episodes = one_by_one(act_and_judge, blocks)
        state, losses = self.learn(state, samples, observations, hyper, budget)
        return state._replace(running=running), self.of_all_blocks(episodes), losses

    def learn(
        self,
        state: TrainState,
        samples: Samples,
        observations: Array,
        hyper: Hyper,
        budget: float | Array,
    ) -> tuple[TrainState, Losses]:
        """What an iteration ends with, wherever its steps came from: samples (blocks, T, N, ...),
        and the observations as they were seen."""
        key, _, update_key = jax.random.split(state.key, 3)
        progress = iterations_done(state.networks, hyper) / budget
        now = replace(self, method=self.method.at(progress))
        networks, losses = now.update(update_key, state.networks, samples, hyper.at(progress))
        seen = state.seen.absorb(observations, self.axis) if state.seen else ()
        return state._replace(networks=networks, seen=seen, key=key), losses

    def start(self, key: Array, hyper: Hyper) -> Running | tuple[()]:
        """Fresh environments, block by block; those of a host cannot be part of the state."""
        env = self.env
        if isinstance(env, HostEnv):
            return ()

        def begin(key: Array) -> Running:
            latent = self.method.latent
            return start(key, env, env.default_params(), latent, hyper.envs_per_block)

        return one_by_one(begin, self.keys_of_blocks(key, hyper))

    def keys_of_blocks(self, key: Array, hyper: Hyper) -> Array:
        """A key for each block of this device; the same blocks get the same keys on any mesh."""
        if hyper.num_blocks == 1:
            return key[None]
        num, first = hyper.num_blocks, jnp.int32(0)
        if self.axis is not None:
            num //= jax.lax.axis_size(self.axis)
            first = jax.lax.axis_index(self.axis) * num
        return jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(num))

    def of_all_blocks(self, episodes: Episodes) -> Episodes:
        """One summary from the blocks' (blocks,), those of other devices included."""
        sums = jax.tree.map(lambda x: across.total(jnp.sum(x, axis=0), self.axis), episodes)
        return sums._replace(sound=across.least(jnp.min(episodes.sound), self.axis))

    def collect(
        self, key: Array, running: Running, state: TrainState, hyper: Hyper
    ) -> tuple[Running, Transition, Episodes]:
        assert isinstance(self.env, Env)
        key, act_key = jax.random.split(key)
        return collect(
            key,
            running,
            partial(self.act, state, hyper),
            self.distribution.noise(act_key, (hyper.num_steps, hyper.envs_per_block)),
            self.env,
            self.env.default_params(),
            self.method.latent,
            self.horizon,
        )

    def act(
        self, state: TrainState, hyper: Hyper, noise: Array, observation: Array, z: Array
    ) -> tuple[Array, Array, Array]:
        """(the action as it is stored, as the environment takes it, the former's log-prob)"""
        outputs, _ = self.outputs_and_value(state.networks, normalised(state.seen, observation), z)
        action = self.distribution.sample(noise, outputs, hyper.action_std)
        log_prob = self.distribution.log_prob(outputs, action, hyper.action_std)
        return action, self.distribution.to_env(action), log_prob

    def judge(self, state: TrainState, steps: Transition, hyper: Hyper) -> Samples:
        """Advantages and value targets of the collected steps, (T, N)."""
        networks = state.networks
        steps = steps._replace(
            observation=normalised(state.seen, steps.observation),
            next_observation=normalised(state.seen, steps.next_observation),
        )
        values = steps.value
        if values is None:
            values = self.values(networks, steps.observation, steps.z)
        auxiliary, latent = self.method.auxiliary, self.method.latent
        bonus = self.by_row(lambda row: auxiliary.bonus(networks.auxiliary, latent, row), steps)
        advantage = gae(
            steps.reward + bonus,
            values,
            self.next_values(networks, steps, values),
            steps.terminated,
            steps.truncated,
            hyper.discount,
            hyper.gae_lambda,
        )
        return Samples(steps, advantage, advantage + values)

    def next_values(self, networks: Networks, steps: Transition, values: Array) -> Array:
        """V of the observations that the steps (T, N) reached, given those they began with.

        They are the next row's, but for the last step and for time limits; after a termination
        nobody asks. No environment meets its time limit twice within that time, so two rows of
        new values do for T of them.
        """
        if values.shape[0] > self.shortest_limit:
            return self.values(networks, steps.next_observation, steps.z)
        cut = jnp.argmax(steps.truncated, axis=0)
        ends = jnp.stack([cut, jnp.full_like(cut, values.shape[0] - 1)])

        def at_ends(x: Array) -> Array:
            return x[ends, jnp.arange(x.shape[1])]

        at_cut, at_last = self.values(networks, at_ends(steps.next_observation), at_ends(steps.z))
        following = jnp.concatenate([values[1:], at_last[None]])
        return jnp.where(steps.truncated, at_cut, following)

    def update(
        self, key: Array, networks: Networks, samples: Samples, hyper: Hyper
    ) -> tuple[Networks, Losses]:
        """Epochs × minibatches of `improve`; samples are (blocks, T, N, ...).

        Every minibatch has an equal share of every block, shuffled within it, so that blocks can
        live on different devices and the numbers do not depend on which.
        """
        blocks, size = samples.advantage.shape[0], hyper.envs_per_block * hyper.num_steps
        samples = jax.tree.map(lambda x: x.reshape(blocks, size, *x.shape[3:]), samples)

        def scaled(advantage: Array) -> Array:
            return normalise(advantage, self.axis) if hyper.normalise_advantage else advantage

        if hyper.epochs == hyper.minibatches == 1:
            whole = jax.tree.map(merge_blocks, samples)
            return self.improve(networks, whole._replace(advantage=scaled(whole.advantage)), hyper)

        def picked(x: Array, chosen: Array) -> Array:
            return merge_blocks(jax.vmap(lambda x, rows: x[rows])(x, chosen))

        def minibatch(networks: Networks, part: tuple[Array, Array]) -> tuple[Networks, Losses]:
            chosen, advantage = part
            steps, target = jax.tree.map(
                lambda x: picked(x, chosen), (samples.step, samples.target)
            )
            return self.improve(networks, Samples(steps, advantage, target), hyper)

        def shuffled(key: Array) -> Array:
            """For one epoch, which rows of each block every minibatch takes: (M, blocks, size/M)"""
            orders = jax.vmap(lambda k: shuffle(k, size))(self.keys_of_blocks(key, hyper))
            return jnp.moveaxis(orders.reshape(blocks, hyper.minibatches, -1), 0, 1)

        chosen = jax.vmap(shuffled)(jax.random.split(key, hyper.epochs))
        rows = chosen.reshape(hyper.epochs * hyper.minibatches, blocks, -1)
        advantage = jax.vmap(lambda chosen: picked(samples.advantage, chosen))(rows)
        # Of all minibatches at once: one meeting of the devices.
        networks, losses = jax.lax.scan(minibatch, networks, (rows, scaled(advantage)))
        return networks, jax.tree.map(jnp.mean, losses)

    def improve(
        self, networks: Networks, samples: Samples, hyper: Hyper
    ) -> tuple[Networks, Losses]:
        """One gradient step of every network."""
        gradients, losses = across.mean(self.gradients(networks, samples, hyper), self.axis)
        moved = [
            descend(adam, gradient, network, memory)
            for adam, gradient, network, memory in zip(
                adams(hyper, self.method.movement),
                gradients,
                networks[:3],
                networks.optimisers,
                strict=True,
            )
        ]
        new, memories = zip(*moved, strict=True)
        return Networks(*new, memories), losses  # type: ignore[call-arg]

    def gradients(self, networks: Networks, samples: Samples, hyper: Hyper) -> tuple[Any, Losses]:
        """Of all three losses over the samples (B, ...); on CPUs, of a few pictures at a time."""
        num = samples.advantage.shape[0]
        small_cache = self.sees_pictures and jax.default_backend() == "cpu"
        few = across.largest_divisor(num, PICTURES) if small_cache else num
        if few == num:
            return self.gradients_of(networks, samples, hyper)
        parts = jax.tree.map(lambda x: x.reshape(num // few, few, *x.shape[1:]), samples)

        def add(total: Any, part: Samples) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, self.gradients_of(networks, part, hyper)), None

        nothing = zeros_as(self.gradients_of, networks, samples, hyper)
        total, _ = jax.lax.scan(add, nothing, parts)
        return jax.tree.map(lambda x: x * (few / num), total)

    def gradients_of(
        self, networks: Networks, samples: Samples, hyper: Hyper
    ) -> tuple[Any, Losses]:
        """The gradients of policy, critic and auxiliary, and the losses they are of."""
        steps, advantage = samples.step, samples.advantage
        latent, auxiliary = self.method.latent, self.method.auxiliary

        def loss(policy: Network, critic: Any) -> tuple[Array, tuple[Losses, Array]]:
            both = networks._replace(policy=policy, critic=critic)
            outputs, value = self.outputs_and_value(both, steps.observation, steps.z)
            log_prob = self.distribution.log_prob(outputs, steps.action, hyper.action_std)
            if hyper.algorithm == "ppo":
                surrogate = ppo_surrogate(log_prob, steps.log_prob, advantage, hyper.clip)
            else:
                surrogate = a2c_surrogate(log_prob, advantage)
            entropy = jnp.mean(self.distribution.entropy(outputs, hyper.action_std))
            action = self.distribution.greedy(outputs)
            penalty = auxiliary.policy_loss(networks.auxiliary, latent, policy, steps, action)
            error = value_loss(value, samples.target)
            total = surrogate - hyper.entropy * entropy + penalty + hyper.critic_coefficient * error
            return total, (Losses(surrogate, entropy, penalty, error, jnp.zeros(())), action)

        def auxiliary_loss(network: Any) -> Array:
            return auxiliary.own_loss(network, latent, steps, action)

        downhill = jax.grad(loss, argnums=(0, 1), has_aux=True)
        found, (losses, action) = downhill(networks.policy, networks.critic)
        guess, auxiliary_gradient = jax.value_and_grad(auxiliary_loss)(networks.auxiliary)
        return (*found, auxiliary_gradient), losses._replace(discriminator=guess)

    def outputs_and_value(
        self, networks: Networks, observation: Array, z: Array
    ) -> tuple[Array, Array]:
        """What the distribution takes, (..., num_outputs), from the policy at z, and V(s, z): the
        critic always knows which policy it judges."""
        outputs = self.method.outputs(networks.policy, observation, z)
        critic: Any = networks.critic
        if not critic:
            return outputs[..., :-1], outputs[..., -1]
        return outputs, critic.beside(observation, z)[..., 0]

    def values(self, networks: Networks, observation: Array, z: Array) -> Array:
        """V(s, z) of rows (T, N, ...)."""
        return self.by_row(lambda row: self.outputs_and_value(networks, *row)[1], (observation, z))

    def by_row(self, function: Callable[[Any], Array], rows: Any) -> Array:
        """`function` of rows (T, ...), at once or, of pictures, one after the other."""
        return jax.lax.map(function, rows) if self.sees_pictures else function(rows)


PICTURES = 32
"""Pictures whose gradient is computed together on a CPU: more of them, with all their layers, would
not stay in its cache; see benchmarks/pixels.py."""


def shaped(policy: Network, hyper: Hyper) -> Network:
    """A fresh policy on vectors as `hyper` wants it: its last layer scaled, its layers normed."""
    *hidden, last = policy.layers  # type: ignore[union-attr]
    last = jax.tree.map(lambda x: x * hyper.output_scale, last)
    return (NormedMLP if hyper.layer_norm else type(policy))((*hidden, last))  # type: ignore[call-arg]


def iterations_done(networks: Networks, hyper: Hyper) -> Array:
    """How many iterations a training has behind it, by the updates its optimiser has counted."""
    updates = optax.tree_utils.tree_get(networks.optimisers[0], "count")
    return updates / (hyper.epochs * hyper.minibatches)


def normalised(seen: Moments | tuple[()], observation: Array) -> Array:
    return seen.normalise(observation) if seen else observation


def one_by_one(function: Callable[[Any], Any], blocks: Any) -> Any:
    """Map over the leading axis in a loop: only one block at a time has to fit in the cache."""
    if jax.tree.leaves(blocks)[0].shape[0] == 1:  # nothing to loop over
        return jax.tree.map(lambda x: x[None], function(jax.tree.map(lambda x: x[0], blocks)))
    return jax.lax.map(function, blocks)


def zeros_as(function: Callable[..., Any], *arguments: Any) -> Any:
    """What sums of the function's results start from; it is not computed for that."""
    shapes = jax.eval_shape(function, *arguments)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def shuffle(key: Array, size: int) -> Array:
    """0, …, size − 1 in random order.

    As `jax.random.permutation`, which sorts twice and slowly: here plain numbers are sorted once,
    random in their upper bits, and their lower bits say where they came from. (What is equal
    above, two numbers in 2 ** (32 − lower), stays in order.)
    """
    lower = (size - 1).bit_length()
    if lower > 16:
        return jax.random.permutation(key, size)
    numbers = jax.random.bits(key, (size,)) << lower | jnp.arange(size, dtype=jnp.uint32)
    return (jnp.sort(numbers, stable=False) & jnp.uint32(2**lower - 1)).astype(jnp.int32)


def merge_blocks(x: Array) -> Array:
    """(blocks, rows, ...) -> (blocks × rows, ...)"""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def adams(hyper: Hyper, movement: Movement) -> tuple[optax.GradientTransformation, ...]:
    """Adam on clipped gradients, for the policy, the critic and the auxiliary network."""
    clip: Any = hyper.max_grad_norm
    rates = (hyper.policy_lr, hyper.critic_lr, hyper.discriminator_lr)
    policy, *others = (
        optax.chain(optax.clip_by_global_norm(clip), optax.adam(rate)) for rate in rates
    )
    return in_coordinates(policy, movement), *others


def in_coordinates(
    adam: optax.GradientTransformation, movement: Movement
) -> optax.GradientTransformation:
    """Adam of the anchors, in the coordinates that their movement has them updated in."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        updates, state = adam.update(movement.gradients(updates), state, params)
        return movement.updates(updates), state

    return optax.GradientTransformation(adam.init, update)


def descend(
    adam: optax.GradientTransformation, gradient: Any, network: Any, memory: Any
) -> tuple[Any, Any]:
    updates, memory = adam.update(gradient, memory)
    return optax.apply_updates(network, updates), memory
