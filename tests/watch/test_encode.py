"""Palettes and animated files."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest

from slackline.watch.encode import FLAT, FORMATS, SOFT, codes, colours_of, nearest, palette_of

Image = pytest.importorskip("PIL.Image")


def moving_square(num: int) -> list[np.ndarray]:
    frames = np.full((num, 40, 60, 3), 255, np.uint8)
    for i, frame in enumerate(frames):
        frame[10:20, 2 * i : 2 * i + 10] = (213, 94, 0)
    return list(frames)


def test_a_colour_and_its_number() -> None:
    frame = np.array([[[1, 2, 3], [255, 0, 16]]], np.uint8)
    np.testing.assert_array_equal(codes(frame), [[66051, 16711696]])
    np.testing.assert_array_equal(colours_of(codes(frame)[0]), frame[0])


def test_surfaces_keep_their_exact_colours_and_the_palette_stays_small() -> None:
    frames = moving_square(3)
    np.testing.assert_array_equal(palette_of(frames), [(255, 255, 255), (213, 94, 0)])
    noise = np.random.default_rng(0).integers(0, 256, (30, 30, 3), np.uint8)
    palette = palette_of([*frames, noise])
    assert len(palette) <= FLAT + SOFT
    np.testing.assert_array_equal(palette[:2], [(255, 255, 255), (213, 94, 0)])


def test_every_pixel_gets_the_nearest_colour() -> None:
    colours = np.array([(0, 0, 0), (255, 255, 255), (250, 0, 0)])
    frame = np.array([[[10, 9, 8], [200, 200, 201], [200, 20, 20]]], np.uint8)
    (indices,) = nearest([codes(frame)], colours)
    np.testing.assert_array_equal(indices, [[0, 1, 2]])


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_animated_files_open_with_every_frame_in_its_place(kind: str) -> None:
    frames = moving_square(7)
    content = FORMATS[kind](iter(frames), frames[:2], [50] * 6 + [900])
    with Image.open(io.BytesIO(content)) as image:
        assert (image.n_frames, image.size) == (7, (60, 40))
        assert image.is_animated
        shown = []
        for i in range(7):
            image.seek(i)
            shown.append(np.asarray(image.convert("RGB")).astype(int))
    for ours, theirs in zip(frames, shown, strict=True):
        assert np.abs(ours - theirs).mean() < (6 if kind == ".webp" else 1e-9)
    assert all((a != b).any() for a, b in pairwise(shown))
