"""A camera for environments outside JAX: what their `render()` shows, step by step.

Pools call it within a step, after the environments have moved and before those that ended are
reset, so that the last picture of an episode is not lost.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from slackline.envs.advice import advice
from slackline.errors import SlacklineError, in_one_line

MAX_SIDE = 600
"""Pixels; larger pictures are shrunk by a whole factor."""

Render = Callable[[], Sequence[Any] | np.ndarray | None]
"""The pictures of all environments of a pool, as they are now."""


class Shot(NamedTuple):
    """A picture, compressed: a film of many policies would not fit into memory otherwise."""

    data: bytes
    shape: tuple[int, int, int]

    @staticmethod
    def of(picture: np.ndarray) -> Shot:
        height, width, colours = picture.shape
        return Shot(zlib.compress(picture.tobytes(), level=1), (height, width, colours))

    def picture(self) -> np.ndarray:
        """(H, W, 3) of bytes."""
        return np.frombuffer(zlib.decompress(self.data), np.uint8).reshape(self.shape)


class Camera:
    """Keeps the first pictures of N environments, and all of their rewards."""

    def __init__(self, name: str, limit: int):
        """`name` is the environment's; `limit` the number of steps to take pictures of."""
        self.name, self.limit = name, limit
        self.shots: list[list[Shot]] = []
        """By step, the start first, and environment."""
        self.rewards: list[np.ndarray] = []
        """By step, (N,)."""
        self.fps: float | None = None
        """Steps a second that the environment wants to be shown with, if it says so."""

    def start(self, render: Render, metadata: Any = None) -> None:
        """Take the pictures of N environments that have just been reset for the first time."""
        fps = (metadata or {}).get("render_fps")
        self.fps = float(fps) if isinstance(fps, int | float) and fps > 0 else None
        self._shoot(render)

    def step(self, render: Render, rewards: Any, lost: np.ndarray | None = None) -> None:
        """Take those after a step; where the step's picture is `lost` to a reset, the last one is
        kept instead."""
        self.rewards.append(np.array(rewards, float))
        if len(self.shots) > self.limit:
            return
        self._shoot(render)
        for i in () if lost is None else np.flatnonzero(lost):
            self.shots[-1][i] = self.shots[-2][i]

    def _shoot(self, render: Render) -> None:
        try:
            with warnings.catch_warnings():  # what is wrong is said below
                warnings.simplefilter("ignore")
                drawn = render()
        except Exception as error:
            told = advice(error) or self._cannot(
                f"its render() raised {type(error).__name__}: {in_one_line(error) or 'no message'}"
            )
            raise SlacklineError(f"{self.name}: {told}") from error
        if drawn is None:
            raise SlacklineError(f"{self.name}: {self._cannot('its render() returned None')}")
        self.shots.append([Shot.of(shrunk(self._checked(picture))) for picture in drawn])

    def _checked(self, picture: Any) -> np.ndarray:
        """(H, W, 3) of bytes; grey and transparent pictures are turned into such."""
        pixels = np.asarray(picture)
        if pixels.ndim == 2:
            pixels = np.repeat(pixels[..., None], 3, axis=-1)
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[-1] not in (3, 4):
            what = "None" if picture is None else f"{pixels.dtype} of shape {pixels.shape}"
            raise SlacklineError(f"{self.name}: {self._cannot(f'its render() returned {what}')}")
        return np.ascontiguousarray(pixels[..., :3])

    @staticmethod
    def _cannot(why: str) -> str:
        return (
            f"cannot be filmed: {why}. A film needs an environment that is made with "
            'render_mode="rgb_array" and whose render() then returns a picture (H, W, 3) of bytes'
        )


def shrunk(picture: np.ndarray) -> np.ndarray:
    """By the mean of squares of pixels, until no side is too long."""
    factor = -(-max(picture.shape[:2]) // MAX_SIDE)
    if factor == 1:
        return picture
    height, width = (side // factor for side in picture.shape[:2])
    squares = picture[: height * factor, : width * factor].reshape(
        height, factor, width, factor, -1
    )
    return squares.mean(axis=(1, 3)).astype(np.uint8)
