"""The cheap blocks of networks that see pictures: one convolution each.

The first one sees every patch of pixels by itself; those after it see the 3 × 3 neighbourhood of
every second pixel and halve the size, as a block of `impala` does. Written for XLA on CPUs as one
matrix product with all windows side by side, whose gradients are matrix products as well; those of
convolutions with strides are slow there. NumPy computes it by the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from slackline.arrays import jax, namespace
from slackline.networks.mlp import Layer, relu
from slackline.types import Array

SIDE = 3
"""Of a window, in pixels."""


class Strided(NamedTuple):
    """1 × 1 at every pixel or 3 × 3 at every second one, then ReLU; per anchor: weight
    (N, side, side, in, out), bias (N, out)."""

    weight: Array
    bias: Array

    def __call__(self, x: Array, coefficients: Array | None) -> Array:
        """Map x (B, H, W, in) to (B, H', W', out), with anchors combined by coefficients (B, N)."""
        num_anchors, *_, fan_out = self.weight.shape
        layer = Layer(self.weight.reshape(num_anchors, -1, fan_out), self.bias)
        seen = windows(x) if self.halves else x
        if num_anchors == 1 or coefficients is None:
            return relu(layer.plain(seen))
        return relu(layer.mixed(seen, coefficients[:, None, None]))

    def weighing(self, gains: np.ndarray) -> Strided:
        """Anchor k sees its channels multiplied by gains[k], of gains (N, in)."""
        return self._replace(weight=self.weight * gains[:, None, None, :, None])

    @property
    def halves(self) -> bool:
        """Whether height and width are halved, and rounded up."""
        return self.weight.shape[-3] > 1

    @property
    def inputs(self) -> int:
        """How many channels it sees."""
        return self.weight.shape[-2]

    @property
    def outputs(self) -> int:
        """How many channels it has."""
        return self.bias.shape[-1]

    def fits(self, inputs: int) -> bool:
        """Whether its shapes fit each other and what it sees."""
        side = SIDE if self.halves else 1
        return self.weight.shape == (*self.bias.shape[:-1], side, side, inputs, self.outputs)

    @staticmethod
    def shapes(inputs: int, outputs: int, first: bool) -> list[tuple[tuple[int, ...], int]]:
        """(shape, fan-in) of everything in it."""
        side = 1 if first else SIDE
        fan_in = side * side * inputs
        return [((side, side, inputs, outputs), fan_in), ((outputs,), fan_in)]

    @classmethod
    def of(cls, tensors: Iterator[Array]) -> Strided:
        """From its tensors, in the order of `shapes`."""
        return cls(next(tensors), next(tensors))


def windows(x: Array) -> Array:
    """Every second pixel of x (B, H, W, C) with its eight neighbours, zeros around the picture:
    (B, ⌈H/2⌉, ⌈W/2⌉, 9 C)."""
    _, height, width, _ = x.shape
    if height % 2 or width % 2:
        x = namespace(x).pad(x, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)))
    return _windows(x) if isinstance(x, np.ndarray) else _traced()(x)


def _windows(x: Array) -> Array:
    """Of even sizes: a window's rows are the one before, the even one and the odd one."""
    _, height, width, _ = x.shape
    xp = namespace(x)
    around = xp.pad(x, ((0, 0), (1, 0), (1, 0), (0, 0)))
    parts = [
        around[:, i : i + height - 1 : 2, j : j + width - 1 : 2]
        for i in range(SIDE)
        for j in range(SIDE)
    ]
    return xp.concatenate(parts, axis=-1)


@cache
def _traced() -> Callable[[Array], Array]:
    found = jax.custom_vjp(_windows)
    found.defvjp(lambda x: (_windows(x), None), lambda _, slope: (_gathered(slope),))
    return found


def _gathered(slope: Array) -> Array:
    """The gradient of `_windows`, as sums of neighbours: XLA's own scatters each of nine parts."""
    size, height, width, channels = slope.shape
    parts = slope.reshape(size, height, width, SIDE, SIDE, channels // SIDE**2)
    columns = _joined(parts, axis=2)
    return _joined(columns, axis=1).reshape(size, 2 * height, 2 * width, -1)


def _joined(parts: Array, axis: int) -> Array:
    """Pixels along an axis of windows (…, 3, C), stacked behind it as even and odd ones: pixel 2i
    is the middle of window i, 2i + 1 the last of window i and the first of window i + 1."""
    xp = namespace(parts)
    first, middle, last = (parts[..., tap, :] for tap in range(SIDE))
    following = first[(*(slice(None),) * axis, slice(1, None))]
    width = [(0, 1 if each == axis else 0) for each in range(first.ndim)]
    return xp.stack([middle, last + xp.pad(following, width)], axis=axis + 1)
