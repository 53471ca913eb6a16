"""Animated files: GIF, WebP and APNG, all by Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

FLAT, SOFT = 48, 48
"""Colours of a GIF: so many of its surfaces, exactly, and so many for the edges between them.

A small palette keeps the file small.
"""
SAMPLES = 8
"""Frames that a GIF's palette is made from."""
UNKNOWN = 255

Encoder = Callable[[list[np.ndarray], list[int]], bytes]
"""(frames (H, W, 3) of bytes, milliseconds for which each is shown) to the file."""


def gif(frames: list[np.ndarray], durations: list[int]) -> bytes:
    """One palette for all frames, so that what stands still is stored once."""
    colours = palette_of(frames[:: max(1, len(frames) // SAMPLES)])
    images = []
    for indices in nearest(map(codes, frames), colours):
        image = _image(indices)
        image.putpalette(colours.astype(np.uint8).tobytes())
        images.append(image)
    return _animated(images, durations, format="GIF", optimize=True)


def webp(frames: list[np.ndarray], durations: list[int]) -> bytes:
    return _animated(list(map(_image, frames)), durations, format="WEBP", quality=60, method=2)


def apng(frames: list[np.ndarray], durations: list[int]) -> bytes:
    return _animated(list(map(_image, frames)), durations, format="PNG")


FORMATS: dict[str, Encoder] = {".gif": gif, ".webp": webp, ".apng": apng}
"""By the file's ending."""


def palette_of(frames: list[np.ndarray]) -> np.ndarray:
    """The commonest colours as they are, and a median cut of all others; at most (96, 3)."""
    pixels = np.concatenate([codes(frame).ravel() for frame in frames])
    found, counts = np.unique(pixels, return_counts=True)
    by_count = colours_of(found[np.argsort(-counts, kind="stable")])
    flat, others = by_count[:FLAT], by_count[FLAT:]
    if not len(others):
        return flat
    # Pillow's own way of mapping to a palette is inexact: white would become a light grey.
    cut = _image(others[None].astype(np.uint8)).quantize(SOFT).getpalette()
    return np.concatenate([flat, np.array(cut[: 3 * SOFT]).reshape(-1, 3)])


def nearest(frames: Iterable[np.ndarray], colours: np.ndarray) -> Iterable[np.ndarray]:
    """For each frame of codes, the indices of the nearest colours; every code is judged once."""
    known = np.full(1 << 24, UNKNOWN, np.uint8)
    for frame in frames:
        new = np.unique(frame[known[frame] == UNKNOWN])
        apart = colours_of(new)[:, None] - colours[None]
        known[new] = np.square(apart).sum(axis=-1).argmin(axis=1)
        yield known[frame]


def codes(frame: np.ndarray) -> np.ndarray:
    """A frame (H, W, 3) as one number a pixel: red · 2¹⁶ + green · 2⁸ + blue."""
    return frame.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)


def colours_of(numbers: np.ndarray) -> np.ndarray:
    """The way back: (n,) to (n, 3)."""
    return (numbers[:, None] >> np.array([16, 8, 0])).astype(np.int64) & 255


def _image(array: np.ndarray) -> Any:
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(array))


def _animated(images: list[Any], durations: list[int], **options: Any) -> bytes:
    file, (first, *rest) = io.BytesIO(), images
    how = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    first.save(file, **how, **options)
    return file.getvalue()
