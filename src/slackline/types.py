"""Types that every layer shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jax import Array
else:
    Array = Any  # JAX takes a second to import, and a trained line does without it


class Transition(NamedTuple):
    """Steps of N environments, (T, N, ...). z is constant within an episode."""

    observation: Array
    z: Array
    action: Array
    log_prob: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_observation: Array
    """The observation after the step, before any reset: the final one where an episode ended."""
    real: Array | None = None
    """False where an environment outside JAX spent the step on a reset; None: all of them are
    real."""
    value: Array | None = None
    """V(s, z), where it was computed while acting."""
