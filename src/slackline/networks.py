"""Multi-layer perceptrons whose weights are a combination of N anchors, chosen per sample.

Per-sample coefficients mean per-sample weights; those are never built. For one layer

    y = Σ_k c_k (x W_k + b_k)  =  concat_k(c_k · x) @ stack_k(W_k)  +  c @ stack_k(b_k)

so a batch with a different policy in every row costs one matrix product. When one policy acts
alone, `mix` combines the weights once and leaves a plain network (N = 1).
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
        scaled = coefficients[..., :, None] * x[..., None, :]
        stacked = scaled.reshape(*x.shape[:-1], num_anchors * fan_in)
        return (
            stacked @ self.weight.reshape(num_anchors * fan_in, fan_out) + coefficients @ self.bias
        )


class MLP(NamedTuple):
    """ReLU layers ending in an affine one."""

    layers: tuple[Layer, ...]

    def __call__(self, x: Array, coefficients: Array | None = None) -> Array:
        """Outputs for x (..., in); a network of one anchor needs no coefficients (..., N)."""

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
