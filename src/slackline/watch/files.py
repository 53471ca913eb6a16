"""Writing what is watched: a film and, beside it, a strip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from slackline.drawing.sheet import styled
from slackline.errors import SlacklineError, unknown
from slackline.io.files import write_atomic
from slackline.watch.encode import FORMATS
from slackline.watch.film import FilmSheet, Timing
from slackline.watch.strip import strip_png
from slackline.watch.watched import Watched

MAX_FRAMES = 600
SAMPLES = 8
"""Frames that a film's palette is made from."""

OnFrame = Callable[[int, int], None]
"""Told how many frames are drawn, and of how many."""


def check_target(path: Path) -> None:
    """Refuse a film that could not be written before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise unknown("kind of film", path.suffix or path.name, FORMATS)
    if path.is_dir():
        raise SlacklineError(f"{path}: is a folder; the film must be a file")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise SlacklineError(f"{path}: cannot be written, because {there} is not a folder of yours")


def write_film(
    watched: Watched, timing: Timing, path: Path, on_frame: OnFrame | None = None
) -> Path:
    """Draw and write the film; the ending of `path` says which kind."""
    steps = timing.steps(watched.shown)
    if len(steps) > MAX_FRAMES:
        raise SlacklineError(
            f"the film would have {len(steps)} frames; it must have at most {MAX_FRAMES}: "
            "raise every or lower steps"
        )
    with styled():
        film = FilmSheet(watched)
        sample = [film.draw(step) for step in steps[:: -(-len(steps) // SAMPLES)]]

        def frames() -> Iterator[np.ndarray]:
            for i, step in enumerate(steps, 1):
                yield film.draw(step)
                if on_frame is not None:
                    on_frame(i, len(steps))

        encode = FORMATS[path.suffix.lower()]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, encode(frames(), sample, timing.durations(len(steps))))
    return path


def write_strip(watched: Watched, film: Path) -> Path:
    """Draw and write the strip of stills beside the film."""
    path = film.with_suffix(".png")
    write_atomic(path, strip_png(watched))
    return path
