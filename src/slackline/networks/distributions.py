"""Action distributions, a few lines each because they sit in the hot path.

A distribution's `sample` and `mode` give the action the learner stores; `to_env` turns it into what
the environment takes. `sample` takes its random numbers as an argument, so that those of many steps
can be drawn at once, which costs a fraction of a draw at every step.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackline.arrays import jax, jnp, namespace
from slackline.envs.api import Continuous, Discrete
from slackline.types import Array


class Distribution(abc.ABC):
    """A family of action distributions indexed by the policy's outputs (..., num_outputs)."""

    num_outputs: int

    @abc.abstractmethod
    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Random numbers for `shape` samples, (*shape, ...); `sample` turns them into actions."""

    @abc.abstractmethod
    def sample(self, noise: Array, outputs: Array, std: float | Array) -> Array:
        """An action by noise; also works on NumPy arrays."""

    @abc.abstractmethod
    def mode(self, outputs: Array) -> Array:
        """The deterministic action; also works on NumPy arrays."""

    @abc.abstractmethod
    def to_env(self, action: Array) -> Array: ...

    @abc.abstractmethod
    def log_prob(self, outputs: Array, action: Array, std: float | Array) -> Array:
        """Of an action as it is stored; also works on NumPy arrays."""

    @abc.abstractmethod
    def entropy(self, outputs: Array, std: float | Array) -> Array: ...

    def greedy(self, outputs: Array) -> Array:
        """The deterministic action as the environment takes it; also works on NumPy arrays."""
        return self.to_env(self.mode(outputs))


@dataclass(frozen=True)
class Categorical(Distribution):
    """A softmax over `num_actions` logits; `std` is ignored."""

    space: Discrete

    @property
    def num_outputs(self) -> int:
        return self.space.num_actions

    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jax.random.uniform(key, (*shape, 1))

    def sample(self, noise: Array, outputs: Array, std: float | Array) -> Array:
        """Inverse-CDF sampling: one uniform a sample, whatever the number of actions."""
        xp = namespace(noise, outputs)
        likely = softmax(outputs) if xp is np else jax.nn.softmax(outputs)
        cumulative = xp.cumsum(likely, axis=-1)[..., :-1]
        return xp.sum(noise >= cumulative, axis=-1, dtype=np.int32)

    def mode(self, outputs: Array) -> Array:
        return outputs.argmax(axis=-1).astype(np.int32)

    def to_env(self, action: Array) -> Array:
        return action

    def log_prob(self, outputs: Array, action: Array, std: float | Array) -> Array:
        if namespace(outputs, action) is np:
            likely = log_softmax(outputs)
            return np.take_along_axis(likely, np.asarray(action)[..., None], axis=-1)[..., 0]  # type: ignore[return-value]
        chosen = jax.nn.one_hot(action, self.num_outputs)
        return jnp.sum(jax.nn.log_softmax(outputs) * chosen, axis=-1)

    def entropy(self, outputs: Array, std: float | Array) -> Array:
        log_probs = jax.nn.log_softmax(outputs)
        return -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)


@dataclass(frozen=True)
class TanhNormal(Distribution):
    """a = tanh(u) with u ~ N(mean, std²), scaled to the space's bounds; the policy gives the mean.

    The stored action is u: near ±1 the way back from a to u would lose all precision.
    Log-probabilities are those of u, too: those of a differ by a term that does not depend on the
    policy, which cancels in ratios and gradients.
    """

    space: Continuous

    @property
    def num_outputs(self) -> int:
        return self.space.size

    def noise(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jax.random.normal(key, (*shape, self.num_outputs))

    def sample(self, noise: Array, outputs: Array, std: float | Array) -> Array:
        return outputs + std * noise

    def mode(self, outputs: Array) -> Array:
        return outputs

    def to_env(self, action: Array) -> Array:
        tanh = namespace(action).tanh
        low, high = (self._bound(bound, action) for bound in (self.space.low, self.space.high))
        return low + (tanh(action) + 1.0) * (0.5 * (high - low))

    @staticmethod
    def _bound(bound: float | tuple[float, ...], action: Array) -> Any:
        if isinstance(bound, tuple):
            return np.broadcast_to(np.array(bound, np.float32), action.shape)
        return bound

    def log_prob(self, outputs: Array, action: Array, std: float | Array) -> Array:
        """Σ log N(u; mean, std²)"""
        xp = namespace(outputs, action)
        normal = -0.5 * xp.square((action - outputs) / std) - xp.log(std * xp.sqrt(2.0 * xp.pi))
        return xp.sum(normal, axis=-1)

    def entropy(self, outputs: Array, std: float | Array) -> Array:
        """Of u, before squashing: constant, since the standard deviation is fixed."""
        one = 0.5 * jnp.log(2.0 * jnp.pi * jnp.e * jnp.square(std))
        return jnp.broadcast_to(self.space.size * one, outputs.shape[:-1])


def log_softmax(logits: Any) -> Any:
    """On NumPy arrays, over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def softmax(logits: Any) -> Any:
    """On NumPy arrays, over the last axis."""
    likely = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return likely / likely.sum(axis=-1, keepdims=True)


def distribution_of(space: Discrete | Continuous) -> Distribution:
    """The distribution a policy uses for this kind of action."""
    return Categorical(space) if isinstance(space, Discrete) else TanhNormal(space)
