"""The devices as a mesh of two axes, and functions compiled for it.

Along "seed" the copies are shared out: they never talk to each other. Along "block" the
environments of one copy are: its gradients are averaged over the devices. Seeds come first, since
they run without synchronising; what is left over goes to the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

SEED, BLOCK, WHOLE = PartitionSpec("seed"), PartitionSpec("seed", "block"), PartitionSpec()
"""Of an argument: (seeds, ...) on the devices of the axis "seed"; (seeds, blocks, ...) on those of
both; whole on every device."""


class Layout(NamedTuple):
    """How copies and their blocks of environments lie on the devices, and in which order a device
    takes the copies it has."""

    seeds: int
    blocks: int
    side_by_side: bool
    """Vmapped copies suit small networks; with several blocks each, or convolutions, one copy
    fills a device."""

    @property
    def mesh(self) -> Mesh:
        devices = np.array(jax.local_devices()[: self.seeds * self.blocks])
        return Mesh(devices.reshape(self.seeds, self.blocks), ("seed", "block"))

    @property
    def axis(self) -> str | None:
        """What a learner averages over."""
        return "block" if self.blocks > 1 else None

    def each(
        self, function: Callable[..., Any], axes: tuple[int | None, ...]
    ) -> Callable[..., Any]:
        """`function` for every copy a device has; `axes` as in vmap."""
        if self.side_by_side:
            return jax.vmap(function, in_axes=axes)

        def in_turn(*arguments: Any) -> Any:
            def one(own: list[Any]) -> Any:
                rest = iter(own)
                pairs = zip(arguments, axes, strict=True)
                return function(*(x if axis is None else next(rest) for x, axis in pairs))

            pairs = zip(arguments, axes, strict=True)
            return jax.lax.map(one, [x for x, axis in pairs if axis is not None])

        return in_turn


def layout_of(copies: int, num_blocks: int = 1, *, side_by_side: bool = True) -> Layout:
    """As many devices as can be used: a number of seeds, or of blocks, on each alike."""
    seeds = largest_divisor(copies, jax.local_device_count())
    blocks = largest_divisor(num_blocks, jax.local_device_count() // seeds)
    return Layout(seeds, blocks, side_by_side and num_blocks == 1)


def largest_divisor(number: int, limit: int) -> int:
    """How many of `number` things to take at once, at most `limit` and always as many."""
    return max(n for n in range(1, limit + 1) if number % n == 0)


def compiled(
    function: Callable[..., Any],
    layout: Layout,
    in_specs: tuple[Any, ...],
    out_specs: Any,
    *,
    run_long: bool = False,
) -> Callable[..., Any]:
    """Jit `function` with its arguments laid out on the mesh.

    What will not `run_long` is compiled with less optimisation, in about a third of the time.
    """
    sharded = jax.shard_map(
        function, mesh=layout.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
    )
    options = {} if run_long else {"xla_backend_optimization_level": 1}
    return jax.jit(sharded, compiler_options=options)
