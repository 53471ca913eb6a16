"""IMPALA's residual network for pictures, of which only the last block and the heads have anchors.

Its blocks may also be those of `strided`, each a single convolution.

Pictures are (..., H, W, C), uint8. A network may see further numbers beside the picture: they are
constant planes of it. As in `mlp`, a convolution whose weights differ from row to row is one
convolution with the anchors side by side and a weighted sum.

Written for XLA on CPUs, where it was measured: maxima of neighbours instead of `reduce_window`,
whose gradient is slow; see benchmarks/pixels.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from slackline.arrays import jax, namespace
from slackline.networks.mlp import (
    MLP,
    Layer,
    combined,
    draw,
    from_the_last,
    init_mlp,
    mix,
    relu,
    repeated,
)
from slackline.networks.strided import Strided
from slackline.types import Array

WHITE = 255.0


class Convolution(NamedTuple):
    """3 × 3 at every pixel, per anchor: weight (N, 3, 3, in, out), bias (N, out)."""

    weight: Array
    bias: Array

    def __call__(self, x: Array, coefficients: Array | None) -> Array:
        """Map x (B, H, W, in) to (B, H, W, out), with anchors combined by coefficients (B, N)."""
        num_anchors, *_, fan_in, fan_out = self.weight.shape
        if num_anchors == 1 or coefficients is None:
            return convolved(x, self.weight[0]) + self.bias[0][None, None, None]
        stacked = namespace(self.weight).moveaxis(from_the_last(self.weight), 0, -2)
        parts = convolved(x, stacked.reshape(3, 3, fan_in, num_anchors * fan_out))
        parts = parts.reshape(*x.shape[:-1], num_anchors, fan_out)
        bias = from_the_last(self.bias)[None, None, None]
        return combined(parts + bias, coefficients[:, None, None])

    def fits(self, inputs: int, outputs: int) -> bool:
        """Whether it maps so many channels to so many."""
        shape = (*self.bias.shape[:-1], 3, 3, inputs, outputs)
        return self.weight.shape == shape and self.bias.shape[-1:] == (outputs,)


class Block(NamedTuple):
    """A convolution, half the size, and residual pairs of convolutions."""

    entry: Convolution
    residual: tuple[tuple[Convolution, Convolution], ...]

    def __call__(self, x: Array, coefficients: Array | None) -> Array:
        x = halved(halved(self.entry(x, coefficients), axis=1), axis=2)
        for first, second in self.residual:
            x = x + second(relu(first(relu(x), coefficients)), coefficients)
        return x

    def weighing(self, gains: np.ndarray) -> Block:
        """Anchor k sees its channels multiplied by gains[k], of gains (N, in)."""
        entry = self.entry._replace(weight=self.entry.weight * gains[:, None, None, :, None])
        return self._replace(entry=entry)

    @property
    def inputs(self) -> int:
        """How many channels it sees."""
        return self.entry.weight.shape[-2]

    @property
    def outputs(self) -> int:
        """How many channels it has."""
        return self.entry.bias.shape[-1]

    def fits(self, inputs: int) -> bool:
        """Whether its shapes fit each other and what it sees."""
        outputs = self.outputs
        inner = [convolution for pair in self.residual for convolution in pair]
        return self.entry.fits(inputs, outputs) and all(c.fits(outputs, outputs) for c in inner)

    @property
    def halves(self) -> bool:
        """Whether height and width are halved, and rounded up."""
        return True

    @staticmethod
    def shapes(
        inputs: int,
        outputs: int,
        first: bool,  # noqa: ARG004 (for the other kind)
    ) -> list[tuple[tuple[int, ...], int]]:
        """(shape, fan-in) of everything in it."""
        entry, other = (
            [((3, 3, size, outputs), 9 * size), ((outputs,), 9 * size)]
            for size in (inputs, outputs)
        )
        return entry + 2 * RESIDUALS * other

    @classmethod
    def of(cls, tensors: Iterator[Array]) -> Block:
        """From its tensors, in the order of `shapes`."""

        def convolution() -> Convolution:
            return Convolution(next(tensors), next(tensors))

        entry = convolution()
        return cls(entry, tuple((convolution(), convolution()) for _ in range(RESIDUALS)))


RESIDUALS = 2
"""Pairs of convolutions in a block."""


class Impala(NamedTuple):
    """Blocks that all anchors share, a last one and a head that each has its own of."""

    shared: tuple[Block | Strided, ...]
    last: Block | Strided
    head: MLP
    planes: Array | None = None
    """Constant numbers (1, size) seen beside every picture; the rest of the network as well has a
    leading axis for anchors, of length 1 where they share."""

    def __call__(self, picture: Array, coefficients: Array | None = None) -> Array:
        """Outputs (..., out) for pictures; only several anchors need coefficients (..., N)."""
        planes = self.planes
        if planes is not None:
            lead = picture.shape[:-3]
            planes = namespace(picture).broadcast_to(planes[0], (*lead, planes.shape[-1]))
        return self._outputs(picture, planes, coefficients)

    def beside(self, picture: Array, z: Array) -> Array:
        """Outputs for pictures with z (..., size) stacked to them as planes."""
        return self._outputs(picture, z, None)

    def given(self, z: Array) -> Impala:
        """The network of the picture alone that `beside` is at one z (size,)."""
        return self._replace(planes=z[None])

    def mix(self, coefficients: Array) -> Impala:
        """The one plain network at these coefficients (N,)."""
        return mix(self, coefficients)

    @property
    def anchored(self) -> Any:
        """What differs from anchor to anchor."""
        return self.last, self.head

    @property
    def num_weighed(self) -> int:
        """How many channels `weighing` has gains for."""
        return self.last.inputs

    def weighing(self, gains: np.ndarray) -> Impala:
        """N anchors alike, but that the channels which the last block sees are multiplied by gains
        (N, channels)."""
        last, head = repeated(self.anchored, len(gains))
        return self._replace(last=last.weighing(gains), head=head)

    def without_value(self) -> Impala:
        """The policy alone: the last output is the value of what is seen."""
        *layers, (weight, bias) = self.head.layers
        return self._replace(head=MLP((*layers, Layer(weight[..., :-1], bias[..., :-1]))))

    def patch(self, colours: int, extra: int) -> int:
        """Side of the squares of pixels that become one, of pictures with so many colours and
        `extra` planes beside them."""
        return math.isqrt(max(self.inputs - extra, 0) // max(colours, 1))

    def fits(self, picture: tuple[int, int, int], extra: int) -> bool:
        """Whether its shapes fit each other and such pictures with `extra` planes beside them."""
        height, width, colours = picture
        patch = self.patch(colours, extra)
        if min(picture) < 1 or colours * patch**2 + extra != self.inputs:
            return False
        if height % patch or width % patch:
            return False
        channels, sides = self.inputs, [height // patch, width // patch]
        for block in (*self.shared, self.last):
            if not block.fits(channels):
                return False
            channels = block.outputs
            sides = [-(-side // 2) for side in sides] if block.halves else sides
        return self.head.layers[0].weight.shape[-2] == math.prod(sides) * channels

    def _outputs(self, picture: Array, planes: Array | None, coefficients: Array | None) -> Array:
        lead, size = picture.shape[:-3], math.prod(picture.shape[:-3])
        x = picture.reshape(size, *picture.shape[-3:])
        extra = 0 if planes is None else planes.shape[-1]
        x = in_patches(x, self.inputs - extra).astype(np.float32) / WHITE
        if planes is not None:
            flat, library = planes.reshape(size, 1, 1, extra), namespace(x)
            wide = library.broadcast_to(flat, (*x.shape[:-1], extra))
            x = library.concatenate([x, wide], axis=-1)
        if coefficients is not None:
            coefficients = coefficients.reshape(size, -1)
        for block in (*self.shared, self.last):
            x = block(x, coefficients)
        return self.head(relu(x).reshape(size, -1), coefficients).reshape(*lead, -1)

    @property
    def inputs(self) -> int:
        """How many channels its first convolution sees."""
        return (self.shared[0] if self.shared else self.last).inputs


Network = MLP | Impala


def convolved(x: Array, weight: Array) -> Array:
    """3 × 3 convolution of x (B, H, W, in), zeros around it, with weight (3, 3, in, out)."""
    if isinstance(x, np.ndarray):
        around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(around, (3, 3), axis=(1, 2))  # type: ignore[call-overload]
        return np.tensordot(windows, weight, axes=([4, 5, 3], [0, 1, 2]))  # type: ignore[return-value]
    return (_on_cpu() if jax.default_backend() == "cpu" else plain_convolved)(x, weight)


def plain_convolved(x: Array, weight: Array) -> Array:
    layout = ("NHWC", "HWIO", "NHWC")
    around = ((1, 1), (1, 1))
    return jax.lax.conv_general_dilated(x, weight, (1, 1), around, dimension_numbers=layout)


@cache
def _on_cpu() -> Callable[[Array, Array], Array]:
    convolve = jax.custom_vjp(plain_convolved)
    convolve.defvjp(lambda x, weight: (plain_convolved(x, weight), (x, weight)), _slopes)
    return convolve


def _slopes(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    """Both gradients as convolutions in the layout above: within loops on CPUs, XLA is twenty to
    forty times slower at the one of the weights that it would write itself."""
    x, weight = kept
    of_x = plain_convolved(slope, weight[::-1, ::-1].swapaxes(2, 3))
    of_weight = plain_convolved(x.transpose(3, 1, 2, 0), slope.transpose(1, 2, 0, 3))
    return of_x, of_weight.transpose(1, 2, 0, 3)


def halved(x: Array, axis: int) -> Array:
    """The maximum of every second pixel and its two successors, as far as there are any."""
    library = namespace(x)

    def at(x: Array, index: Any, axis: int = axis) -> Array:
        return x[(*(slice(None),) * axis, index)]

    if x.shape[axis] % 2:
        x = library.concatenate([x, at(x, slice(-1, None))], axis=axis)
    pairs = x.reshape(*x.shape[:axis], -1, 2, *x.shape[axis + 1 :])
    even, odd = at(pairs, 0, axis + 1), at(pairs, 1, axis + 1)
    after = library.concatenate([at(even, slice(1, None)), at(odd, slice(-1, None))], axis=axis)

    # Not `maximum`: its gradient asks which of the two equals the result, and where XLA computes
    # these anew, differently rounded, the answer can be neither.
    def larger(a: Array, b: Array) -> Array:
        return library.where(a >= b, a, b)

    return larger(larger(even, odd), after)


def in_patches(picture: Array, channels: int) -> Array:
    """(B, H, W, C) as (B, H/p, W/p, C·p²): squares of p × p pixels become the channels of one."""
    size, height, width, colours = picture.shape
    p = math.isqrt(channels // colours)
    if p == 1:
        return picture
    squares = picture.reshape(size, height // p, p, width // p, p, colours)
    return squares.swapaxes(2, 3).reshape(size, height // p, width // p, channels)


def init_impala(
    key: Array,
    seen: tuple[int, ...],
    extra: int,
    patch: int,
    channels: Sequence[int],
    widths: Sequence[int],
    num_anchors: int = 1,
    kind: type[Block] | type[Strided] = Block,
) -> Impala:
    """Drawn as `init_mlp` draws; the anchors' own parts are independent of each other."""
    height, width, colours = seen
    sizes = list(pairwise((colours * patch**2 + extra, *channels)))
    *shared, last = [kind.shapes(*size, first=i == 0) for i, size in enumerate(sizes)]
    shared_key, last_key, head_key = jax.random.split(key, 3)
    tensors = iter(draw(shared_key, list(chain(*shared)), 1))
    blocks = [kind.of(tensors) for _ in shared]
    blocks.append(kind.of(iter(draw(last_key, last, num_anchors))))
    sides = [side // patch for side in (height, width)]
    for _ in (block for block in blocks if block.halves):
        sides = [-(-side // 2) for side in sides]
    head = init_mlp(head_key, (math.prod(sides) * channels[-1], *widths), num_anchors)
    return Impala(tuple(blocks[:-1]), blocks[-1], head)
