"""Animated files: GIF, WebP and APNG, all by Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

FLAT, SOFT = 48, 48
"""Colours of a GIF: so many of its surfaces, exactly, and so many for the edges between them.

A small palette keeps the file small.
"""
UNKNOWN = 255
TOGETHER = 8192
"""Colours that are judged at once: a photograph has a hundred thousand, and each is compared with
all of the palette."""

Frames = Iterable[np.ndarray]
"""Each (H, W, 3) of bytes."""
Encoder = Callable[[Frames, Frames, list[int]], bytes]
"""(frames, a sample of them for the palette, milliseconds that each frame is shown) to a file."""


def gif(frames: Frames, sample: Frames, durations: list[int]) -> bytes:
    """One palette for all frames, so that what stands still is stored once."""
    colours = palette_of(sample)

    def images() -> Iterator[Any]:
        for indices in nearest(map(codes, frames), colours):
            image = _image(indices)
            image.putpalette(colours.astype(np.uint8).tobytes())
            yield image

    return _animated(images(), durations, format="GIF", optimize=True)


def webp(frames: Frames, _sample: Frames, durations: list[int]) -> bytes:
    return _animated(map(_image, frames), durations, format="WEBP", quality=60, method=2)


def apng(frames: Frames, _sample: Frames, durations: list[int]) -> bytes:
    return _animated(map(_image, frames), durations, format="PNG")


FORMATS: dict[str, Encoder] = {".gif": gif, ".webp": webp, ".apng": apng}
"""By the file's ending."""


def palette_of(frames: Frames) -> np.ndarray:
    """The commonest colours as they are, and a median cut of all others; at most (96, 3)."""
    pixels = np.concatenate([codes(frame).ravel() for frame in frames])
    found, counts = np.unique(pixels, return_counts=True)
    by_count = colours_of(found[np.argsort(-counts, kind="stable")])
    flat, others = by_count[:FLAT], by_count[FLAT:]
    if not len(others):
        return flat
    cut = _image(others[None].astype(np.uint8)).quantize(SOFT).getpalette()
    return np.concatenate([flat, np.array(cut[: 3 * SOFT]).reshape(-1, 3)])


def nearest(frames: Frames, colours: np.ndarray) -> Iterator[np.ndarray]:
    """For each frame of codes, the indices of the nearest colours; every code is judged once.

    Pillow's own mapping rounds, and white becomes a light grey.
    """
    known = np.full(1 << 24, UNKNOWN, np.uint8)
    for frame in frames:
        new = np.unique(frame[known[frame] == UNKNOWN])
        for some in np.array_split(new, -(-len(new) // TOGETHER) or 1):
            apart = colours_of(some)[:, None] - colours[None]
            known[some] = np.square(apart).sum(axis=-1).argmin(axis=1)
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


def _animated(images: Iterator[Any], durations: list[int], **options: Any) -> bytes:
    file, first = io.BytesIO(), next(images)
    # Pillow asks for a GIF's frames one by one, so that they are drawn one by one; it goes through
    # those of the other formats twice.
    rest = images if options["format"] == "GIF" else list(images)
    how = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    first.save(file, **how, **options)
    return file.getvalue()
