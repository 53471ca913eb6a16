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

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from slackline.arrays import jax, jnp, namespace, tree_map
from slackline.types import Array


class Layer(NamedTuple):
    """An affine map per anchor: weight (N, in, out), bias (N, out)."""

    weight: Array
    bias: Array

    def plain(self, x: Array) -> Array:
        """Map x (..., in) to (..., out) with the only anchor there is."""
        shape = (*x.shape[:-1], self.bias.shape[-1])
        return x @ self.weight[0] + namespace(x, self.bias).broadcast_to(self.bias[0], shape)

    def mixed(self, x: Array, coefficients: Array) -> Array:
        """Map x (..., in) to (..., out) with the anchors combined by coefficients (..., N)."""
        num_anchors, fan_in, fan_out = self.weight.shape
        weight, bias, xp = (
            from_the_last(self.weight),
            from_the_last(self.bias),
            namespace(x, self.bias),
        )
        stacked = xp.moveaxis(weight, 0, 1).reshape(fan_in, num_anchors * fan_out)
        shape = (*x.shape[:-1], num_anchors, fan_out)
        parts = (x @ stacked).reshape(shape) + xp.broadcast_to(bias, shape)
        return combined(parts, coefficients)


def from_the_last(anchors: Array) -> Array:
    """θ_N, θ_1 − θ_N, …, θ_{N−1} − θ_N"""
    return namespace(anchors).concatenate([anchors[-1:], anchors[:-1] - anchors[-1:]])


def combined(parts: Array, coefficients: Array) -> Array:
    """y_N + Σ_{k<N} c_k (y_k − y_N), of parts (..., N, out) and coefficients (..., N)."""
    xp = namespace(parts, coefficients)
    return parts[..., 0, :] + xp.sum(coefficients[..., :-1, None] * parts[..., 1:, :], axis=-2)


class MLP(NamedTuple):
    """ReLU layers ending in an affine one. On NumPy arrays it needs no JAX."""

    layers: tuple[Layer, ...]

    def __call__(self, x: Array, coefficients: Array | None = None) -> Array:
        """Outputs for x (..., in); only several anchors need coefficients (..., N), of sum 1."""

        def affine(layer: Layer, x: Array) -> Array:
            if coefficients is None or coefficients.shape[-1] == 1:
                return layer.plain(x)
            return layer.mixed(x, coefficients)

        for layer in self.layers[:-1]:
            x = self.activation(affine(layer, x))
        return affine(self.layers[-1], x)

    def activation(self, x: Array) -> Array:
        """The non-linearity between two affine maps."""
        return relu(x)

    def beside(self, x: Array, z: Array) -> Array:
        """Outputs for x (..., in) and z (..., size) side by side."""
        return self(namespace(x, z).concatenate([x, z], axis=-1))

    def given(self, z: Array) -> MLP:
        """The network of x alone that `beside` is at one z (size,): a constant input is a bias,
        x W_x + z W_z + b."""
        first, *rest = self.layers
        size = first.weight.shape[-2] - z.shape[-1]
        weight, for_z = first.weight[:, :size], first.weight[:, size:]
        xp = namespace(z, for_z)
        absorbed = Layer(weight, first.bias + xp.einsum("i,nio->no", z, for_z))
        return self._replace(layers=(absorbed, *rest))

    def mix(self, coefficients: Array) -> MLP:
        """The one plain network at these coefficients (N,)."""
        return mix(self, coefficients)

    @property
    def anchored(self) -> MLP:
        """What differs from anchor to anchor: everything."""
        return self

    @property
    def num_weighed(self) -> int:
        """How many inputs `weighing` has gains for."""
        return self.layers[0].weight.shape[-2]

    def weighing(self, gains: np.ndarray) -> Self:
        """N copies of the only anchor, whose inputs are multiplied by gains (N, in)."""
        copies: Any = repeated(self, len(gains))
        first, *rest = copies.layers
        weighed = Layer(first.weight * gains[..., None], first.bias)
        return copies._replace(layers=(weighed, *rest))


class NormedMLP(MLP):
    """An MLP with LayerNorm (no parameters) before each ReLU. A type of its own, because a network
    is a pytree of arrays and cannot hold a flag."""

    __slots__ = ()

    def activation(self, x: Array) -> Array:
        return relu(layer_norm(x))


def layer_norm(x: Array) -> Array:
    """(x − mean) / √(variance + 1e-5) over the last axis; also works on NumPy arrays."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / (variance + EPSILON) ** 0.5


EPSILON = 1e-5
"""What LayerNorm adds to the variance."""


def mix(anchors: Any, coefficients: Array) -> Any:
    """Every tensor (N, ...) combined to (1, ...); those that the anchors share (1, ...) stay."""

    def mixed(x: Any) -> Any:
        if x.shape[0] == 1 < len(coefficients):
            return x
        return namespace(coefficients, x).tensordot(coefficients, x, 1)[None]

    return tree_map(mixed, anchors)


def repeated(anchor: Any, num: int) -> Any:
    """Every tensor (1, ...) of a network of one anchor, `num` times: (num, ...), on NumPy."""
    return tree_map(lambda x: np.repeat(x, num, axis=0), anchor)


def drawn_together(anchors: Any, apart: float | Array) -> Any:
    """Independent anchors θ_k made alike: √(1 − a²) θ_1 + a θ_k. a = 1 leaves them alone, a = 0
    makes them equal; the size of their numbers stays."""
    return jax.tree.map(
        lambda x: jnp.concatenate(
            [x[:1], jnp.sqrt(1.0 - jnp.square(apart)) * x[:1] + apart * x[1:]]
        ),
        anchors,
    )


def relu(x: Array) -> Array:
    return np.maximum(x, 0.0) if isinstance(x, np.ndarray) else jax.nn.relu(x)  # type: ignore[return-value]


def init_mlp(key: Array, sizes: Sequence[int], num_anchors: int = 1) -> MLP:
    """Independent anchors, each drawn from U(±1/√fan_in) as the authors' (PyTorch) layers are."""
    shapes = [
        (shape, fan_in)
        for fan_in, fan_out in pairwise(sizes)
        for shape in ((fan_in, fan_out), (fan_out,))
    ]
    numbers = iter(draw(key, shapes, num_anchors))
    return MLP(tuple(map(Layer._make, zip(numbers, numbers, strict=True))))


def draw(
    key: Array, shapes: Sequence[tuple[tuple[int, ...], int]], num_anchors: int
) -> list[Array]:
    """Tensors (N, *shape) from U(±1/√fan_in), for each (shape, fan_in).

    All numbers come from one draw: every further one would add half a second of compilation.
    """
    total = sum(math.prod(shape) for shape, _ in shapes)
    numbers = jax.random.uniform(key, (num_anchors, total), minval=-1.0, maxval=1.0)
    tensors, used = [], 0
    for shape, fan_in in shapes:
        part = numbers[:, used : used + math.prod(shape)] * max(fan_in, 1) ** -0.5
        used += math.prod(shape)
        tensors.append(part.reshape(num_anchors, *shape))
    return tensors
