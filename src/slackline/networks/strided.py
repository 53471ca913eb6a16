"""The cheap block of networks that see pictures: one convolution at every second pixel.

It halves the size as a block of `impala` does, for about a tenth of the arithmetic. Written for
XLA on CPUs as one matrix product with all windows side by side, whose gradients are matrix products
as well; those of convolutions with strides are slow there. NumPy computes it by the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackline.arrays import namespace
from slackline.networks.mlp import Layer, relu
from slackline.types import Array

SIDE = 3
"""Of a window, in pixels."""


class Strided(NamedTuple):
    """3 × 3 at every second pixel, then ReLU; per anchor: weight (N, 3, 3, in, out), bias
    (N, out)."""

    weight: Array
    bias: Array

    def __call__(self, x: Array, coefficients: Array | None) -> Array:
        """Map x (B, H, W, in) to (B, ⌈H/2⌉, ⌈W/2⌉, out), with anchors combined by coefficients
        (B, N)."""
        num_anchors, *_, fan_out = self.weight.shape
        layer = Layer(self.weight.reshape(num_anchors, -1, fan_out), self.bias)
        if num_anchors == 1 or coefficients is None:
            return relu(layer.plain(windows(x)))
        return relu(layer.mixed(windows(x), coefficients[:, None, None]))

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
        return self.weight.shape == (*self.bias.shape[:-1], SIDE, SIDE, inputs, self.outputs)

    @staticmethod
    def shapes(inputs: int, outputs: int) -> list[tuple[tuple[int, ...], int]]:
        """(shape, fan-in) of everything in it."""
        fan_in = SIDE * SIDE * inputs
        return [((SIDE, SIDE, inputs, outputs), fan_in), ((outputs,), fan_in)]

    @classmethod
    def of(cls, tensors: Iterator[Array]) -> Strided:
        """From its tensors, in the order of `shapes`."""
        return cls(next(tensors), next(tensors))


def windows(x: Array) -> Array:
    """What every second pixel of x (B, H, W, C) and its eight neighbours are, zeros around the
    picture: (B, ⌈H/2⌉, ⌈W/2⌉, 9 C)."""
    _, height, width, _ = x.shape
    xp = namespace(x)
    around = xp.pad(x, ((0, 0), (1, height % 2), (1, width % 2), (0, 0)))
    down, right = height + height % 2, width + width % 2
    parts = [around[:, i : i + down : 2, j : j + right : 2] for i in range(3) for j in range(3)]
    return xp.concatenate([part[:, : down // 2, : right // 2] for part in parts], axis=-1)
