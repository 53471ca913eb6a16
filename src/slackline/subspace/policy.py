"""One policy of a subspace, on NumPy alone and fast enough for a control loop.

Everything that does not depend on the observation is done once: the normaliser is folded into the
first layer, LayerNorm's centring into the weights before it. A call then is one matrix product, one
sum and one maximum a layer, in place. Nothing is kept between calls, so threads may share a policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from slackline.arrays import tree_map
from slackline.envs.api import Continuous, Discrete
from slackline.errors import SlacklineError
from slackline.networks.impala import Network
from slackline.networks.mlp import EPSILON, MLP, NormedMLP

Picture = tuple[int, int, int]
FLOAT = np.dtype(np.float32)
Forward = Callable[[np.ndarray], np.ndarray]


class Policy:
    """One policy of a subspace. Call it with an observation (or a batch) to get the action.

    It is a plain NumPy network: no environment, no JAX.
    """

    def __init__(
        self, network: Network, action: Discrete | Continuous, picture: Picture | None = None
    ):
        plain: Any = tree_map(np.asarray, network)
        self._action, self._picture = action, picture
        self._forward: Forward = plain if picture else compiled(plain)
        self._to_action = head_of(action)
        self.observation_size = math.prod(picture or plain.layers[0].weight.shape[-2:-1])
        """How many numbers it sees at once."""
        self._shape = (self.observation_size,)

    def outputs(self, observation: Any) -> np.ndarray:
        """What the network says: logits, or means before squashing."""
        if self._picture is not None:
            return self._forward(as_pictures(observation, self._picture))
        x = as_numbers(observation)
        if x.shape != self._shape:
            self._insist_on_batch(x)
        # The square of a number that is not finite is not finite either, and one product is much
        # quicker than looking at each; it may also overflow, so look again before complaining.
        flat = x if x.ndim == 1 else x.reshape(-1)
        if not math.isfinite(flat.dot(flat)) and not np.isfinite(x).all():
            raise SlacklineError("observation holds NaN or infinite values")
        return self._forward(x)

    def __call__(self, observation: Any) -> Any:
        """The deterministic action: an int (or an array of them) for discrete actions."""
        return self._to_action(self.outputs(observation))

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """(action, state) as Stable-Baselines3's models answer, for its `evaluate_policy`.

        The policy has no memory: `state` comes back as it was, and `episode_start` is not read.
        """
        if not deterministic:
            raise SlacklineError(
                "deterministic is False; trained policies only act deterministically, so it "
                "must be True"
            )
        return np.asarray(self(observation)), state

    def __repr__(self) -> str:
        seen = self._picture or self._shape
        return f"Policy: {' × '.join(map(str, seen))} numbers seen, {show_action(self._action)}"

    def _insist_on_batch(self, x: np.ndarray) -> None:
        size = self.observation_size
        if x.ndim != 2 or x.shape[-1] != size:
            raise SlacklineError(
                f"observation has shape {x.shape}; it must be ({size},) or (batch, {size})"
            )


def as_numbers(observation: Any) -> np.ndarray:
    """An observation in float32."""
    try:
        if getattr(observation, "dtype", FLOAT).kind not in "cmMV":  # complex numbers, and times
            return np.asarray(observation, np.float32)
    except (AttributeError, TypeError, ValueError, OverflowError):
        pass
    raise SlacklineError(f"observation is {observation!r}; it must be numbers")


def show_action(action: Discrete | Continuous) -> str:
    """ "3 discrete actions", "6 continuous actions" """
    kind, num = (
        ("discrete", action.num_actions)
        if isinstance(action, Discrete)
        else (
            "continuous",
            action.size,
        )
    )
    return f"{num} {kind} action{'s' * (num != 1)}"


def compiled(network: MLP) -> Forward:
    """A plain MLP as one function of observations (size,) or (batch, size), all in float32."""
    normed = isinstance(network, NormedMLP)
    *hidden, (last_weight, last_bias) = affine_maps(network)

    def forward(x: np.ndarray) -> np.ndarray:
        for weight, bias in hidden:
            x = x @ weight
            x += bias
            if normed:
                scale_to_one(x)
            np.maximum(x, 0.0, out=x)
        x = x @ last_weight
        x += last_bias
        return x

    return forward


def affine_maps(network: MLP) -> list[tuple[np.ndarray, np.ndarray]]:
    """(weight (in, out), bias (out,)) of a plain MLP's layers in float32. With LayerNorm, those
    before it give outputs of mean 0, so that all it has left to do is to scale them."""
    layers: list[Any] = [(layer.weight[0], layer.bias[0]) for layer in network.layers]
    if isinstance(network, NormedMLP):
        layers[:-1] = [centred(*layer) for layer in layers[:-1]]
    return [
        (np.ascontiguousarray(weight, np.float32), np.ascontiguousarray(bias, np.float32))
        for weight, bias in layers
    ]


def centred(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The affine map whose outputs have mean 0: LayerNorm subtracts their mean, which is linear in
    what the layer sees. In doubles, so that no precision is lost by it."""
    wide, high = np.asarray(weight, np.float64), np.asarray(bias, np.float64)
    return wide - wide.mean(axis=-1, keepdims=True), high - high.mean()


def scale_to_one(x: np.ndarray) -> None:
    """x / √(mean of x² + 1e-5) over the last axis, in place: what is left of LayerNorm for outputs
    with mean 0."""
    if x.ndim == 1:
        x *= 1.0 / math.sqrt(float(x.dot(x)) / x.size + EPSILON)
    else:
        x /= np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)


def head_of(action: Discrete | Continuous) -> Callable[[np.ndarray], Any]:
    """What turns the network's outputs, which it may overwrite, into the deterministic action."""
    if isinstance(action, Discrete):
        return most_likely
    low, high = (np.asarray(bound, np.float32) for bound in (action.low, action.high))
    half = np.float32(0.5) * (high - low)

    def squashed(outputs: np.ndarray) -> np.ndarray:
        """low + (tanh(u) + 1) (high − low) / 2"""
        np.tanh(outputs, out=outputs)
        outputs += 1.0
        outputs *= half
        outputs += low
        return outputs

    return squashed


def most_likely(logits: np.ndarray) -> Any:
    """An int for one observation, an array of them for a batch."""
    if logits.ndim == 1:
        return int(logits.argmax())
    return logits.argmax(axis=-1).astype(np.int32)


def as_pictures(observation: Any, picture: Picture) -> np.ndarray:
    """One picture or a batch, colours last; bytes, colours first or last, are accepted. (A batch of
    one picture without colours needs their axis.)"""
    x, (height, width, colours) = np.asarray(observation), picture
    if x.ndim in (3, 4) and x.dtype == np.uint8:
        if x.shape[-3:] == picture:
            return x
        if x.shape[-3:] == (colours, height, width):
            return np.moveaxis(x, -3, -1)
    if x.ndim in (2, 3) and x.dtype == np.uint8 and (*x.shape[-2:], 1) == picture:
        return x[..., None]
    raise SlacklineError(
        f"observation is {x.dtype}{list(x.shape)}; it must be a picture of uint8, "
        f"{height} × {width} × {colours}, or a batch of them"
    )
