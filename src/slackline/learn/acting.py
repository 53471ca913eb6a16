"""Acting for one window of steps of environments outside JAX.

Random numbers, and the policies if they act in NumPy, come from one compiled call a window.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.algorithms import ALGORITHMS
from slackline.algorithms.base import Algorithm
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.methods.conditioning import Anchors, Concat
from slackline.networks.stacked import StackedMLP
from slackline.types import Array

LARGEST = 2**24
"""Multiplications a step, of all environments together, up to which policies act in NumPy."""


def acts_in_numpy(learner: Learner, hyper: Hyper, copies: int) -> bool:
    """Whether NumPy can compute the actions, and faster than a compiled call."""
    known = type(learner.method.conditioning) in (Anchors, Concat)
    usual = type(ALGORITHMS[hyper.algorithm]).act is Algorithm.act
    if learner.sees_pictures or not known or not usual:
        return False
    latent, size = learner.method.latent, learner.env.observation_size
    widths = (size + latent.size, *hyper.hidden, learner.distribution.num_outputs)
    products = latent.num_anchors * sum(map(math.prod, pairwise(widths)))
    return products * hyper.num_envs * copies <= LARGEST


class Drawn(NamedTuple):
    """The random numbers that one copy acts by in a window."""

    z: Array
    """(T, N, size): of episodes that begin in each step."""
    noise: Array
    """(T, N, ...)"""
    policy: Any
    mean: Array
    """() or (size,), of observations."""
    std: Array
    action_std: Array


def step_keys(state: TrainState, t: Array) -> tuple[Array, Array]:
    """The keys of z and of the action in step t of a state's window."""
    z_key, act_key = jax.random.split(jax.random.fold_in(state.keys.collect, t))
    return z_key, act_key


def drawn(learner: Learner, state: TrainState, hyper: Hyper, first: Array) -> Drawn:
    """For the `num_steps` steps from number `first` on; the same numbers as step by step."""

    def numbers(t: Array) -> tuple[Array, Array]:
        z_key, act_key = step_keys(state, t)
        z = learner.method.latent.sample(z_key, hyper.num_envs)
        return z, learner.distribution.noise(act_key, (hyper.num_envs,))

    z, noise = jax.vmap(numbers)(first + jnp.arange(hyper.num_steps))
    moments = state.moments
    mean, std = (moments.mean, moments.std) if moments else (jnp.zeros(()), jnp.ones(()))
    action_std = jnp.asarray(hyper.action_std, jnp.float32)
    return Drawn(z, noise, state.networks.policy, mean, std, action_std)


class NumpyActor:
    """Acts for all copies in the steps of one window."""

    def __init__(self, learner: Learner, window: Drawn, *, forgiving: bool):
        """`window`: of all copies, every field (C, ...). `forgiving`: settings that are compared
        may diverge, and must not stop the others' environments."""
        window = jax.tree.map(np.asarray, window)
        self._window, self._forgiving = window, forgiving
        self._method, self._distribution = learner.method, learner.distribution
        self._beside = isinstance(learner.method.conditioning, Concat)
        self._network = StackedMLP(window.policy)  # type: ignore[arg-type]
        self._moments = None
        if window.mean.ndim == 2:
            self._moments = window.mean[:, None], window.std[:, None]
        self._std = window.action_std.reshape(-1, 1, 1)
        self._outputs: list[np.ndarray] = []
        self._coefficients: Any = None

    def __call__(
        self, t: int, observation: np.ndarray, z: np.ndarray, fresh: np.ndarray
    ) -> tuple[Any, ...]:
        """As `HostAct`; log-probabilities come for the whole window, from `log_prob`."""
        if self._coefficients is None or fresh.any():
            z = np.where(fresh[..., None], self._window.z[:, t], z)
            self._coefficients = np.asarray(self._method.latent.weights(z))  # type: ignore[arg-type]
        x = observation
        if self._moments is not None:
            x = (x - self._moments[0]) / self._moments[1]
        if self._beside:
            x = np.concatenate([x, z], axis=-1)
        outputs = self._network(x, self._coefficients)
        self._outputs.append(outputs)
        noise: Any = self._window.noise[:, t]
        action = self._distribution.sample(noise, outputs, self._std)  # type: ignore[arg-type]
        env_action = self._distribution.to_env(action)
        if self._forgiving:
            env_action = np.nan_to_num(env_action)
        return z, action, env_action, None

    def log_prob(self, actions: np.ndarray) -> np.ndarray:
        """Of all actions (C, T, N, ...) that were drawn."""
        outputs: Any = np.stack(self._outputs, axis=1)
        found = self._distribution.log_prob(outputs, actions, self._std[..., None])  # type: ignore[arg-type]
        return np.asarray(found, np.float32)
