"""The devices as a mesh of two axes, and functions compiled for it.

The axis "seed" distributes the seeds (and members of ensembles), which never communicate. The axis
"block" distributes the environments of one seed, whose gradients are averaged over the devices.
Seeds come first, since they run without synchronising; the devices that remain go to the blocks.
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
    """How many devices seeds and blocks of environments are distributed over, and whether a device
    runs its seeds vmapped or one after another."""

    seeds: int
    blocks: int
    side_by_side: bool
    """Whether the seeds of a device are vmapped, as suits small networks; with several blocks each,
    or convolutions, one seed fills a device."""

    @property
    def mesh(self) -> Mesh:
        devices = np.array(jax.local_devices()[: self.seeds * self.blocks])
        return Mesh(devices.reshape(self.seeds, self.blocks), ("seed", "block"))

    @property
    def axis(self) -> str | None:
        """The mesh axis that a learner averages gradients over."""
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
    """As many devices as can have an equal number of seeds, or of blocks, each."""
    seeds = largest_divisor(copies, jax.local_device_count())
    blocks = largest_divisor(num_blocks, jax.local_device_count() // seeds)
    return Layout(seeds, blocks, side_by_side and num_blocks == 1)


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` that is at most `limit`."""
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
