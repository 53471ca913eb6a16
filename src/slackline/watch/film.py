"""Pictures of K policies on one sheet: a film of them side by side, and a strip of stills."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from slackline.errors import SlacklineError, unknown
from slackline.report.figures import COLOURS, DPI, GRID, INK, QUIET, STYLE, WIDTH
from slackline.report.trajectories import Sheet
from slackline.store.files import write_atomic
from slackline.watch.rollout import Episodes
from slackline.watch.scenes import SKY, Label, Picture, Shape, View, Window, mix

BEST = COLOURS[3]
ENDED = 0.5
"""How far a policy whose episode is over fades."""
FILM_DPI = 100
COLOURS_OF_A_FILM = 64
"""A small palette is what keeps a GIF small; edges still look smooth with it."""
LAST_FRAME = 1.6
"""Seconds for which a film stands still before it begins anew."""
MOMENTS = 6
"""Stills of each policy in the strip."""


@dataclass(frozen=True)
class Watched:
    """K episodes and all there is to say about them."""

    title: str
    change: str
    """What is different from training, in words."""
    who: str
    """Which method and seed."""
    labels: tuple[str, ...]
    """What tells a policy from the others, (K,)."""
    episodes: Episodes
    view: View
    steps: int
    """How many steps are shown, from the start."""
    seconds: float | None = None
    """Simulated seconds of one step, where that has a meaning."""
    scale: float = 1.0
    """Returns are multiplied by this where they are shown."""

    @property
    def horizon(self) -> int:
        return len(self.episodes.rewards)

    @property
    def shown(self) -> int:
        """Steps shown: as many as were asked for, but nothing after the last policy's end."""
        return min(self.steps, int(self.episodes.lengths.max()))

    @property
    def best(self) -> np.ndarray:
        """Which policies no other beats over the whole episode; none where all are alike, (K,)."""
        returns = self.episodes.returns
        return (returns == returns.max()) & (returns.min() < returns.max())

    def returns(self, step: int | None = None) -> list[str]:
        """What the policies returned in the first `step` steps, or in the whole episode."""
        values = self.episodes.returns if step is None else self.episodes.return_until(step)
        digits = 0 if np.abs(self.scale * self.episodes.returns).max() >= 100 else 1
        return [minus(f"{self.scale * value:.{digits}f}") for value in values]

    def picture(self, policy: int, step: int) -> Picture:
        """A policy after `step` steps; faded once its episode is over."""
        picture = self.view(self.episodes.past(policy, step))
        return faded(picture) if self.over(policy, step) else picture

    def over(self, policy: int, step: int) -> bool:
        return bool(self.episodes.terminated[policy] and step >= self.episodes.lengths[policy])

    def meaning(self, policy: int, step: int) -> str:
        """What stands below the return after `step` steps."""
        if not self.partial or self.over(policy, step):
            return "return"
        return f"return so far · {self.returns()[policy]} in all"

    def clock(self, step: int) -> str:
        return f"step {step}" if self.seconds is None else f"{step * self.seconds:.1f} s"

    @property
    def subtitle(self) -> str:
        return f"{self.change} · {self.who}"

    @property
    def explanation(self) -> str:
        """What is shown, and what the returns are of."""
        one = "One episode each, from the same start"
        if self.partial:
            span = f"the first {self.shown} of {self.horizon} steps are shown"
            framed = "highest return of the whole episode"
        else:
            span, framed = "shown to the end", "highest return"
        scaled = "" if self.scale == 1.0 else f" Returns × {self.scale:g}."
        return f"{one}; {span}.{f' Framed: {framed}.' if self.best.any() else ''}{scaled}"

    @property
    def partial(self) -> bool:
        """Whether some episode goes on after what is shown."""
        return bool((self.episodes.lengths > self.shown).any())


def minus(text: str) -> str:
    return text.replace("-", "−")


def faded(picture: Picture) -> Picture:
    """The same picture as if behind thin paper."""
    shapes = [
        Shape(s.outline, mix(s.fill, SKY, ENDED), s.edge and mix(s.edge, SKY, ENDED))
        for s in picture.shapes
    ]
    return Picture(picture.window, shapes, picture.labels, picture.note)


# Sheets


def new_sheet(width: float, height: float, dpi: int) -> Sheet:
    """An empty figure on the Agg canvas, whatever backend the user has."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise SlacklineError(
            "figures need matplotlib: pip install 'slackline-rl[figures]'"
        ) from None
    sheet = Sheet(Figure(figsize=(width, height), dpi=dpi, facecolor="white"), width, height)
    FigureCanvasAgg(sheet.figure)
    return sheet


def styled() -> Any:
    """The report's style, as a context."""
    try:
        import matplotlib
    except ImportError:
        raise SlacklineError(
            "figures need matplotlib: pip install 'slackline-rl[figures]'"
        ) from None
    return matplotlib.rc_context(STYLE)


class Stage:
    """The axes of one policy: polygons and labels that are replaced from picture to picture."""

    def __init__(self, axes: Any, window: Window, *, line: float, size: float):
        from matplotlib.collections import PolyCollection

        left, bottom, right, top = window
        axes.set_axis_off()
        axes.set(xlim=(left, right), ylim=(bottom, top))
        self.axes, self.line = axes, line
        self.words = {"ha": "center", "va": "top", "color": QUIET, "size": size, "clip_on": True}
        self.texts: list[Any] = []
        self.polygons = PolyCollection([], closed=True, joinstyle="round")
        axes.add_collection(self.polygons, autolim=False)

    def show(self, picture: Picture) -> None:
        """Replace what is on stage."""
        shapes = [s for s in picture.shapes if is_seen(s.outline, picture.window)]
        self.polygons.set_verts([s.outline for s in shapes])
        self.polygons.set_facecolor([s.fill for s in shapes])
        # A shape without an outline gets a hair of its own colour, or neighbours would show seams.
        self.polygons.set_edgecolor([s.edge or s.fill for s in shapes])
        self.polygons.set_linewidth([self.line if s.edge else 0.3 for s in shapes])
        while len(self.texts) < len(picture.labels):
            self.texts.append(self.axes.text(0, 0, "", **self.words))
        blank = [Label(0, 0, "")] * len(self.texts)
        for text, (x, y, words) in zip(self.texts, [*picture.labels, *blank], strict=False):
            text.set(position=(x, y), text=words)

    @property
    def artists(self) -> list[Any]:
        return [self.polygons, *self.texts]


def is_seen(outline: np.ndarray, window: Window) -> bool:
    """Whether a polygon's bounding box meets the window."""
    left, bottom, right, top = window
    (low_x, low_y), (high_x, high_y) = outline.min(axis=0), outline.max(axis=0)
    return bool(low_x < right and high_x > left and low_y < top and high_y > bottom)


def aspect_of(window: Window) -> float:
    """Height over width."""
    left, bottom, right, top = window
    return (top - bottom) / (right - left)


def frame(sheet: Sheet, x: float, y: float, width: float, height: float, *, best: bool) -> None:
    """A panel's border, in inches from the top left corner; green and strong for the best."""
    from matplotlib.patches import FancyBboxPatch

    place = (x, sheet.height - y - height)
    colour, line = (BEST, 2.6) if best else (mix(GRID, INK, 0.12), 1.0)
    patch = FancyBboxPatch(
        place,
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.06",
        transform=sheet.figure.dpi_scale_trans,
        facecolor=SKY,
        edgecolor=colour,
        linewidth=line,
        zorder=-1,
    )
    sheet.figure.add_artist(patch)


# The film

MARGIN, GAP, HEAD, TOP, BOTTOM = 0.16, 0.14, 0.52, 0.86, 0.5
"""Inches: around the sheet, between panels, above a picture, above and below all panels."""


class Timing(NamedTuple):
    """Which steps are frames, and how fast they play."""

    every: int
    fps: float

    @staticmethod
    def of(seconds: float | None, every: int | None, fps: float | None) -> Timing:
        """In real time where that can be watched (10 to 25 frames a second), but for what is given.

        An environment without seconds plays ten steps a second.
        """
        seconds = seconds or 0.1
        if every is None:
            every = max(1, round(1.0 / ((fps or 25.0) * seconds)))
        return Timing(every, fps or float(np.clip(1.0 / (every * seconds), 10.0, 25.0)))

    def steps(self, shown: int) -> list[int]:
        """The steps that are drawn: every so many, and the last."""
        return sorted({*range(0, shown + 1, self.every), shown})


class Panel(NamedTuple):
    """One policy of a film: its stage and the words that change."""

    stage: Stage
    total: Any
    """The return so far."""
    meaning: Any
    """What that number is, and what the whole episode returns."""
    note: Any

    @property
    def artists(self) -> list[Any]:
        return [*self.stage.artists, self.total, self.meaning, self.note]


class Film:
    """A sheet of which only what moves is drawn anew for every frame."""

    def __init__(self, watched: Watched):
        self.watched = watched
        num = len(watched.labels)
        window = watched.picture(0, 0).window
        columns = num if num <= 3 else math.ceil(math.sqrt(num))
        rows = -(-num // columns)
        self.wide = {1: 4.8, 2: 3.4}.get(columns, 2.7)
        self.tall = self.wide * aspect_of(window)
        width = 2 * MARGIN + columns * self.wide + (columns - 1) * GAP
        height = TOP + rows * (HEAD + self.tall + GAP) - GAP + BOTTOM
        self.sheet = new_sheet(width, height, FILM_DPI)
        self.clock = self.write_around()
        self.panels = []
        for k in range(num):
            row, column = divmod(k, columns)
            empty = max(0, (row + 1) * columns - num)
            x = MARGIN + (column + empty / 2) * (self.wide + GAP)
            self.panels.append(self.panel(k, x, TOP + row * (HEAD + self.tall + GAP), window))
        self.canvas: Any = self.sheet.figure.canvas
        self.canvas.draw()
        self.still = self.canvas.copy_from_bbox(self.sheet.figure.bbox)

    def write_around(self) -> Any:
        """The title above and the explanation below; returns the clock's text."""
        sheet, watched = self.sheet, self.watched
        sheet.write(MARGIN, 0.13, watched.title, fontsize=17, weight="bold")
        sheet.write(MARGIN, 0.5, watched.subtitle, fontsize=11.5, color=QUIET)
        words = fill(watched.explanation, max(40, int(sheet.width * 12.5)))
        style = {"fontsize": 9.5, "color": QUIET, "linespacing": 1.3}
        sheet.write(MARGIN, sheet.height - BOTTOM + 0.13, words, **style)
        return self.moving(sheet.width - MARGIN, 0.2, fontsize=14, color=QUIET, ha="right")

    def panel(self, k: int, x: float, y: float, window: Window) -> Panel:
        sheet, watched, best = self.sheet, self.watched, bool(self.watched.best[k])
        frame(sheet, x, y, self.wide, HEAD + self.tall, best=best)
        axes = sheet.axes(x + 0.03, y + HEAD, self.wide - 0.06, self.tall - 0.03)
        big, small = {"fontsize": 14, "weight": "bold"}, {"fontsize": 9, "color": QUIET}
        name = f"{watched.labels[k]}  best" if best else watched.labels[k]
        sheet.write(x + 0.1, y + 0.08, name, **big, color=BEST if best else INK)
        right = x + self.wide - 0.1
        return Panel(
            Stage(axes, window, line=0.9, size=9),
            self.moving(right, y + 0.08, **big, ha="right"),
            self.moving(right, y + 0.325, **small, ha="right"),
            self.moving(x + 0.1, y + 0.325, **small),
        )

    def moving(self, x: float, y: float, **style: Any) -> Any:
        """An empty text at a place of the sheet, in inches, to be filled frame by frame."""
        self.sheet.write(x, y, "", **style)
        return self.sheet.figure.texts[-1]

    def draw(self, step: int) -> Any:
        """The frame after `step` steps, as a Pillow image."""
        from PIL import Image

        self.clock.set_text(self.watched.clock(step))
        returns = self.watched.returns(step)
        for k, panel in enumerate(self.panels):
            picture = self.watched.picture(k, step)
            panel.stage.show(picture)
            panel.total.set_text(returns[k])
            panel.meaning.set_text(self.watched.meaning(k, step))
            panel.note.set_text(self.note(k, step, picture))
        self.canvas.restore_region(self.still)
        for artist in [self.clock, *(a for panel in self.panels for a in panel.artists)]:
            self.sheet.figure.draw_artist(artist)
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())[..., :3])

    def note(self, k: int, step: int, picture: Picture) -> str:
        ended = f"ended at {self.watched.clock(int(self.watched.episodes.lengths[k]))}"
        words = [picture.note, ended if self.watched.over(k, step) else ""]
        return " · ".join(word for word in words if word)


def film_bytes(
    watched: Watched, timing: Timing, kind: str, on_frame: Callable[[int, int], None] | None = None
) -> tuple[bytes, int]:
    """(an animated file, its number of frames); `on_frame(drawn, of)` is told of every frame."""
    with styled():
        film = Film(watched)
        steps = timing.steps(watched.shown)
        images = []
        for i, step in enumerate(steps, 1):
            images.append(film.draw(step))
            if on_frame is not None:
                on_frame(i, len(steps))
    delay = round(1000.0 / timing.fps)
    durations = [delay] * (len(images) - 1) + [round(1000 * LAST_FRAME)]
    return FORMATS[kind](images, durations), len(images)


def as_gif(images: list[Any], durations: list[int]) -> bytes:
    """One palette for all frames, so that what stands still is stored once."""
    from PIL import Image

    sample = images[:: max(1, len(images) // 6)]
    sheet = Image.new("RGB", (sample[0].width, sample[0].height * len(sample)))
    for i, image in enumerate(sample):
        sheet.paste(image, (0, i * image.height))
    palette = sheet.quantize(COLOURS_OF_A_FILM, dither=Image.Dither.NONE)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    return _animated(flat, durations, format="GIF", optimize=True)


def as_webp(images: list[Any], durations: list[int]) -> bytes:
    return _animated(images, durations, format="WEBP", quality=60, method=2)


def as_apng(images: list[Any], durations: list[int]) -> bytes:
    return _animated(images, durations, format="PNG")


def _animated(images: list[Any], durations: list[int], **options: Any) -> bytes:
    file, (first, *rest) = io.BytesIO(), images
    how = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    first.save(file, **how, **options)
    return file.getvalue()


FORMATS: dict[str, Callable[[list[Any], list[int]], bytes]] = {
    ".gif": as_gif,
    ".webp": as_webp,
    ".apng": as_apng,
}
"""By the file's ending."""


# The strip


def strip_bytes(watched: Watched) -> bytes:
    """A PNG: a row a policy, time to the right."""
    moments = strip_moments(watched.shown)
    window = watched.picture(0, 0).window
    label, gap, above = 1.55, 0.06, 1.2
    wide = (WIDTH - 2 * MARGIN - label) / MOMENTS
    tall = (wide - gap) * aspect_of(window)
    pitch = tall + 0.22
    num = len(watched.labels)
    with styled():
        sheet = new_sheet(WIDTH, above + num * pitch + 0.36, DPI)
        sheet.write(MARGIN, 0.14, watched.title, fontsize=16, weight="bold")
        sheet.write(MARGIN, 0.5, watched.subtitle, fontsize=10.5, color=QUIET)
        for j, step in enumerate(moments):
            x = MARGIN + label + (j + 0.5) * wide
            sheet.write(x, above - 0.3, watched.clock(step), ha="center", color=QUIET)
        for k in range(num):
            y = above + k * pitch
            frame(sheet, MARGIN, y - 0.06, WIDTH - 2 * MARGIN, pitch - 0.1, best=watched.best[k])
            _write_row(sheet, watched, k, y)
            for j, step in enumerate(moments):
                axes = sheet.axes(MARGIN + label + j * wide, y, wide - gap, tall)
                Stage(axes, window, line=0.7, size=6).show(watched.picture(k, step))
        sheet.write(MARGIN, sheet.height - 0.3, watched.explanation, color=QUIET)
        file = io.BytesIO()
        sheet.figure.savefig(file, format="png")
    return file.getvalue()


def strip_moments(shown: int) -> list[int]:
    """Steps evenly over what is shown, both ends included."""
    return [round(step) for step in np.linspace(0, shown, MOMENTS)]


def _write_row(sheet: Sheet, watched: Watched, k: int, y: float) -> None:
    """z and the return, at the left of a policy's row."""
    best = bool(watched.best[k])
    colour = BEST if best else INK
    x = MARGIN + 0.12
    mark = "  best" if best else ""
    sheet.write(x, y + 0.04, f"{watched.labels[k]}{mark}", fontsize=12, weight="bold", color=colour)
    lines = [f"return {watched.returns()[k]}"]
    if watched.partial:
        until = watched.clock(watched.shown)
        lines.append(f"until {until}: {watched.returns(watched.shown)[k]}")
    elif watched.over(k, watched.shown):
        lines.append(f"ended at {watched.clock(int(watched.episodes.lengths[k]))}")
    note = watched.picture(k, watched.shown).note
    lines += [note] if note else []
    sheet.write(x, y + 0.3, "\n".join(lines), color=QUIET, linespacing=1.35)


# Files


def check_target(path: Path) -> None:
    """Refuse a film that could not be written before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise unknown("kind of film", path.suffix or path.name, FORMATS)
    if path.is_dir():
        raise SlacklineError(f"{path}: is a folder; the film must be a file")
    path.parent.mkdir(parents=True, exist_ok=True)


def write_film(
    watched: Watched, timing: Timing, path: Path, on_frame: Callable[[int, int], None] | None = None
) -> Iterator[tuple[str, Path, int]]:
    """Write the film and, beside it, the strip."""
    content, frames = film_bytes(watched, timing, path.suffix.lower(), on_frame)
    write_atomic(path, content)
    yield "film", path, frames
    strip = path.with_suffix(".png")
    write_atomic(strip, strip_bytes(watched))
    yield "strip", strip, 1
