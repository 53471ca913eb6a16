"""Writing what is watched: a film and, beside it, a strip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slackline.errors import SlacklineError, unknown
from slackline.store.files import write_atomic
from slackline.watch.encode import FORMATS
from slackline.watch.film import Film, Timing
from slackline.watch.stage import styled
from slackline.watch.strip import strip_png
from slackline.watch.watched import Watched

OnFrame = Callable[[int, int], None]
"""Told how many frames are drawn, and of how many."""


def check_target(path: Path) -> None:
    """Refuse a film that could not be written before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise unknown("kind of film", path.suffix or path.name, FORMATS)
    if path.is_dir():
        raise SlacklineError(f"{path}: is a folder; the film must be a file")
    path.parent.mkdir(parents=True, exist_ok=True)


def write_film(
    watched: Watched, timing: Timing, path: Path, on_frame: OnFrame | None = None
) -> Path:
    """Draw and write the film; the ending of `path` says which kind."""
    steps, frames = timing.steps(watched.shown), []
    with styled():
        film = Film(watched)
        for step in steps:
            frames.append(film.draw(step))
            if on_frame is not None:
                on_frame(len(frames), len(steps))
    encode = FORMATS[path.suffix.lower()]
    write_atomic(path, encode(frames, timing.durations(len(frames))))
    return path


def write_strip(watched: Watched, film: Path) -> Path:
    """Draw and write the strip of stills beside the film."""
    path = film.with_suffix(".png")
    write_atomic(path, strip_png(watched))
    return path
