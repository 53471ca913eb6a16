"""What an environment looks like, as data: what is where, never how it is painted.

An environment that can be watched returns a `View` from `view()`; films, strips and reports draw
from it and know no environment by name. There are three kinds of scene: a mechanism in a plane, a
robot of capsules, and a grid of tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

Place = tuple[float, float]


class Box(NamedTuple):
    """An upright rectangle."""

    left: float
    bottom: float
    right: float
    top: float


class Rod(NamedTuple):
    """A line with round ends; a disc where it ends where it starts."""

    start: Place
    end: Place
    radius: float


Role = Literal["ground", "stop", "wheel", "far", "near", "joint", "target", "goal"]
"""What a part is: painters choose colours by it. Of moving parts, `far` ones are paler."""


class Part(NamedTuple):
    role: Role
    shape: Box | Rod
    fields: tuple[str, ...] = ()
    """Parameters that, where they are not as in training, mark this part as changed."""


@dataclass(frozen=True)
class Mechanism:
    """Moving parts in a plane, in metres; later parts hide earlier ones."""

    window: Box
    parts: Callable[[Any, Any], list[Part]]
    """(params, state) to what is seen."""


class Bones(NamedTuple):
    """A robot's G capsules in the frames of their links; a sphere starts where it ends."""

    link: np.ndarray
    """(G,) which link each belongs to."""
    start: np.ndarray
    """(G, 3)"""
    end: np.ndarray
    """(G, 3)"""
    radius: np.ndarray
    """(G,)"""


@dataclass(frozen=True)
class Skeleton:
    """A robot of capsules."""

    bones: Callable[[Any], Bones]
    """params to its sizes."""
    pose: Callable[[Any], tuple[Any, Any]]
    """A state to its links' positions (L, 3) and quaternions (L, 4), scalar first."""


@dataclass(frozen=True)
class Tiles:
    """A grid on which one agent walks from a start to a goal."""

    start: tuple[int, int]
    """(row, column)"""
    goal: tuple[int, int]
    border: int
    """Outermost rows and columns that are walls always and need not be shown."""
    walls: Callable[[Any], Any]
    """params to (H, W), True for a wall."""
    place: Callable[[Any], tuple[Any, Any]]
    """A state, or many, to the agent's row and column."""


@dataclass(frozen=True)
class View:
    """What `Env.view` returns."""

    scene: Mechanism | Skeleton | Tiles
    seconds: Callable[[Any], float] | None = None
    """params to the simulated seconds of a step; None where steps are only counted."""
    unwrap: Callable[[Any], Any] = lambda wrapped: wrapped
    """Params and states to those that the scene knows, where a wrapper has its own around them."""
