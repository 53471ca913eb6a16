"""Many seeds as one compiled program, spread over the devices there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from slackline.learn.collect import Episodes
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, Losses, TrainState


class Progress(NamedTuple):
    """Per seed (S,): sums over the episodes that ended and means of the losses over iterations."""

    episodes: Episodes
    losses: Losses


class Program:
    """Initialises and advances every copy of one learner: S seeds × the members of an ensemble.

    All arrays have a leading axis of that length.
    """

    def __init__(self, learner: Learner, hyper: Hyper, seeds: Sequence[int], members: int = 1):
        self._learner, self._hyper = learner, hyper
        self._seeds, self._members = tuple(seeds), members
        self._init, self._advance = _compiled(learner, len(seeds) * members)

    @property
    def keys(self) -> jax.Array:
        """One PRNG key for every copy."""
        keys = [jax.random.key(seed) for seed in self._seeds]
        if self._members > 1:
            keys = [jax.random.fold_in(key, i) for key in keys for i in range(self._members)]
        return jnp.stack(keys)

    def init(self) -> TrainState:
        return self._init(self.keys, self._hyper)

    def shapes(self) -> TrainState:
        """The train state's shapes and types, without computing it."""
        init = jax.vmap(self._learner.init, in_axes=(0, None))
        return jax.eval_shape(init, self.keys, self._hyper)

    def advance(self, state: TrainState, iterations: int) -> tuple[TrainState, Progress]:
        """Train on; `iterations` is traced, so every length of stride shares one compilation."""
        return self._advance(state, self._hyper, jnp.int32(iterations))


@lru_cache(maxsize=16)
def _compiled(learner: Learner, copies: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Shared by a process's runs that differ only in seeds, budget or float hyper-parameters."""
    init = over_seeds(copies, jax.vmap(learner.init, in_axes=(0, None)), "s-")
    return init, over_seeds(copies, partial(advance, learner, None), "s--", run_long=True)


def advance(
    learner: Learner,
    axis: int | None,
    state: TrainState,
    hyper: Hyper,
    iterations: jax.Array,
) -> tuple[TrainState, Progress]:
    """Iterate every copy; `axis` 0 gives each its own hyper-parameters, None the same to all."""

    def iterate(state: TrainState) -> tuple[TrainState, Progress]:
        state, episodes, losses = jax.vmap(learner.iteration, in_axes=(0, axis))(state, hyper)
        return state, Progress(episodes, losses)

    def body(_: Any, carry: tuple[TrainState, Progress]) -> tuple[TrainState, Progress]:
        state, total = carry
        state, progress = iterate(state)
        return state, jax.tree.map(jnp.add, total, progress)

    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(iterate, state)[1])
    state, total = jax.lax.fori_loop(0, iterations, body, (state, nothing))
    return state, total._replace(losses=jax.tree.map(lambda x: x / iterations, total.losses))


def over_seeds(
    num_seeds: int, function: Callable[..., Any], axes: str, *, run_long: bool = False
) -> Callable[..., Any]:
    """Jit `function` with the arguments marked "s" split by seed over as many devices as divide S.

    Seeds never talk to each other, so the devices run without synchronising. Arguments marked "-"
    are the same everywhere. Every output is split by seed. What will not `run_long` is compiled
    with less optimisation, in about a third of the time.
    """
    num_devices = max(n for n in range(1, jax.local_device_count() + 1) if num_seeds % n == 0)
    mesh = Mesh(np.array(jax.local_devices()[:num_devices]), ("seed",))
    by_seed, whole = PartitionSpec("seed"), PartitionSpec()
    specs = tuple(by_seed if axis == "s" else whole for axis in axes)
    sharded = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=by_seed, check_vma=False)
    options = {} if run_long else {"xla_backend_optimization_level": 1}
    return jax.jit(sharded, compiler_options=options)
