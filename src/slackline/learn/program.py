"""Many seeds as one compiled program, spread over the devices there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.parallel.blocks import zeros_as
from slackline.parallel.mesh import BLOCK, SEED, WHOLE, Layout, compiled, layout_of
from slackline.rollout import Totals


class Progress(NamedTuple):
    """Per seed (S,): sums over the episodes that ended and means of the losses over iterations."""

    episodes: Totals
    losses: Any
    """The numbers that the algorithm logs, a NamedTuple."""


STATE = TrainState(networks=SEED, moments=SEED, running=BLOCK, key=SEED)  # type: ignore[arg-type]


class Program:
    """Initialises and advances every copy of one learner: S seeds × the members of an ensemble.

    All arrays have a leading axis of that length.
    """

    def __init__(
        self,
        learner: Learner,
        hyper: Hyper,
        seeds: Sequence[int],
        members: int = 1,
        budget: float = math.inf,
        hyper_axis: int | None = None,
    ):
        """`budget` is the number of iterations of the whole training, for its schedules. With
        `hyper_axis` 0 the hyper-parameters are stacked, and every copy has its own."""
        # Robots cache theirs, and an array made inside a trace would be bound to its mesh.
        learner.env.default_params()
        self._learner, self._hyper = learner, hyper
        self._seeds, self._members = tuple(seeds), members
        self._budget, self._hyper_axis = jnp.float32(budget), hyper_axis
        self._layout = layout_of(len(seeds) * members, hyper.num_blocks)
        self._init, self._advance = _compiled(learner, self._layout, hyper_axis)

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
        init = jax.vmap(self._learner.init, in_axes=(0, self._hyper_axis))
        return jax.eval_shape(init, self.keys, self._hyper)

    def place(self, state: TrainState) -> TrainState:
        """A state read from a file, with the sharding that `advance` returns; with another one,
        `advance` would compile twice."""
        mesh = self._layout.mesh
        return jax.device_put(state, jax.tree.map(lambda spec: NamedSharding(mesh, spec), STATE))

    def advance(self, state: TrainState, iterations: int) -> tuple[TrainState, Progress]:
        """Continue for `iterations`; it is traced, so strides of all lengths compile once."""
        return self._advance(state, self._hyper, jnp.int32(iterations), self._budget)

    def keep(self) -> Mapping[str, Any]:
        """Nothing: the environments are part of the state."""
        return {}

    def recall(self, kept: Mapping[str, Any], path: Path) -> None:
        """Nothing was kept."""

    def close(self) -> None:
        """Nothing to close; environments outside JAX have processes."""


@lru_cache(maxsize=16)
def _compiled(
    learner: Learner, layout: Layout, hyper_axis: int | None
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(init, advance) of all copies. Shared by a process's runs that differ only in seeds, budget
    or float hyper-parameters."""
    learner = replace(learner, axis=layout.axis)
    hyper_spec = WHOLE if hyper_axis is None else SEED
    init = layout.each(learner.init, (0, hyper_axis))
    go_on = layout.each(partial(advance, learner), (0, hyper_axis, None, None))
    return (
        compiled(init, layout, (SEED, hyper_spec), STATE),
        compiled(go_on, layout, (STATE, hyper_spec, WHOLE, WHOLE), (STATE, SEED), run_long=True),
    )


def advance(
    learner: Learner, state: TrainState, hyper: Hyper, iterations: jax.Array, budget: jax.Array
) -> tuple[TrainState, Progress]:
    """Train one copy for `iterations`."""

    def iterate(state: TrainState) -> tuple[TrainState, Progress]:
        state, episodes, losses = learner.iteration(state, hyper, budget)
        return state, Progress(episodes, losses)

    def body(i: jax.Array, carry: tuple[TrainState, Progress]) -> tuple[TrainState, Progress]:
        state, so_far = carry
        state, progress = iterate(state)
        before, now = so_far.episodes.sound, progress.episodes.sound
        sound = before + jnp.where(before == i * hyper.num_steps, now, 0)
        sums = jax.tree.map(jnp.add, so_far, progress)
        return state, sums._replace(episodes=sums.episodes._replace(sound=sound))

    _, nothing = zeros_as(iterate, state)
    state, total = jax.lax.fori_loop(0, iterations, body, (state, nothing))
    return state, total._replace(losses=jax.tree.map(lambda x: x / iterations, total.losses))
