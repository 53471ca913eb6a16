"""Multi-layer perceptrons whose weights are a combination of N anchors, chosen per sample.

Per-sample coefficients mean per-sample weights; those are never built. The coefficients sum to 1,
so that for one layer (biases left out)

    y = Σ_k c_k x W_k  =  x W_N + Σ_{k<N} c_k x (W_k − W_N)

and a batch with a different policy in every row costs one matrix product, of x with the matrices
[W_N, W_1 − W_N, …] side by side, and a weighted sum. (Scaling x by c_k before the product instead
is slower on tiny networks, about a tenth of a training iteration.) When one policy acts alone,
`mix` combines the weights once and leaves a plain network (N = 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp

from slackline.envs.api import Array


class Layer(NamedTuple):
    """An affine map per anchor: weight (N, in, out), bias (N, out)."""

    weight: Array
    bias: Array

    def plain(self, x: Array) -> Array:
        """Map x (..., in) to (..., out) with the only anchor there is."""
        bias = jnp.broadcast_to(self.bias[0], (*x.shape[:-1], self.bias.shape[-1]))
        return x @ self.weight[0] + bias

    def mixed(self, x: Array, coefficients: Array) -> Array:
        """Map x (..., in) to (..., out) with the anchors combined by coefficients (..., N)."""
        num_anchors, fan_in, fan_out = self.weight.shape
        weight, bias = (
            jnp.concatenate([anchors[-1:], anchors[:-1] - anchors[-1:]])
            for anchors in (self.weight, self.bias)
        )
        stacked = jnp.moveaxis(weight, 0, 1).reshape(fan_in, num_anchors * fan_out)
        shape = (*x.shape[:-1], num_anchors, fan_out)
        parts = (x @ stacked).reshape(shape) + jnp.broadcast_to(bias, shape)
        return parts[..., 0, :] + jnp.sum(coefficients[..., :-1, None] * parts[..., 1:, :], axis=-2)


class MLP(NamedTuple):
    """ReLU layers ending in an affine one."""

    layers: tuple[Layer, ...]

    def __call__(self, x: Array, coefficients: Array | None = None) -> Array:
        """Outputs for x (..., in); only several anchors need coefficients (..., N), of sum 1."""

        def affine(layer: Layer, x: Array) -> Array:
            if coefficients is None or coefficients.shape[-1] == 1:
                return layer.plain(x)
            return layer.mixed(x, coefficients)

        for layer in self.layers[:-1]:
            x = jax.nn.relu(affine(layer, x))
        return affine(self.layers[-1], x)

    def mix(self, coefficients: Array) -> MLP:
        """The one plain network at these coefficients (N,)."""
        return jax.tree.map(lambda a: jnp.tensordot(coefficients, a, axes=1)[None], self)


def init_mlp(key: Array, sizes: Sequence[int], num_anchors: int = 1) -> MLP:
    """Independent anchors, each drawn from U(±1/√fan_in) as the authors' (PyTorch) layers are.

    All numbers come from one draw: every further one would add half a second of compilation.
    """
    shapes = list(pairwise(sizes))
    total = sum((fan_in + 1) * fan_out for fan_in, fan_out in shapes)
    draw = jax.random.uniform(key, (num_anchors, total), minval=-1.0, maxval=1.0)
    layers, used = [], 0
    for fan_in, fan_out in shapes:
        numbers = draw[:, used : used + (fan_in + 1) * fan_out] * max(fan_in, 1) ** -0.5
        used += (fan_in + 1) * fan_out
        weight, bias = numbers[:, : fan_in * fan_out], numbers[:, fan_in * fan_out :]
        layers.append(Layer(weight.reshape(num_anchors, fan_in, fan_out), bias))
    return MLP(tuple(layers))
