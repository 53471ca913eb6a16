"""How what an environment's `view()` says is painted: states so far to one flat picture.

Pictures are plain polygons, later ones over earlier ones, in metres around a camera that follows
the body; nothing here knows matplotlib, or an environment by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from slackline.drawing.sheet import COLOURS, FREE, GRID, INK, QUIET, WALL
from slackline.envs.api import Env, Params, State
from slackline.envs.view import Bones, Box, Mechanism, Rod, Role, Skeleton, Tiles
from slackline.errors import SlacklineError
from slackline.watch.geometry import Pinhole, box, capsule, disc, looking, rotate

BODY, ACCENT = COLOURS[2], COLOURS[0]
"""What is as it was in training, and what was changed."""
SKY = "#fbfaf7"
"""Behind everything; the pages' paper, a little lighter."""
NEAR, FAR = 0.12, 0.42
"""How much paler than their colour things in front and behind are."""


Window = tuple[float, float, float, float]
"""Left, bottom, right, top."""


class Shape(NamedTuple):
    """A filled polygon; an empty edge has no outline."""

    outline: np.ndarray
    """(n, 2)"""
    fill: str
    edge: str = ""


class Label(NamedTuple):
    """A few small words, centred below a point."""

    x: float
    y: float
    text: str


@dataclass
class Picture:
    """What one panel shows. Shapes later in the list hide earlier ones."""

    window: Window
    shapes: list[Shape] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    note: str = ""
    """What the eye cannot tell, such as the distance covered."""
    image: np.ndarray | None = None
    """Pixels (H, W, 3) that fill the window, behind the shapes."""

    def add(self, outline: np.ndarray, fill: str, edge: str = "") -> None:
        self.shapes.append(Shape(outline, fill, edge))

    def solid(self, outline: np.ndarray, fill: str) -> None:
        """A shape with a thin outline in a darker shade of itself."""
        self.add(outline, fill, mix(fill, INK, 0.55))


Painter = Callable[[State], Picture]
"""The states so far (t + 1, ...) to the picture of the last of them."""


def painter_of(env: Env, params: Params, usual: Params) -> Painter:
    """How an environment with changed parameters is drawn; `usual` are those of training."""
    view = env.view()
    if view is None:
        raise SlacklineError(
            f"{type(env).__name__} has no view() to watch it by (slackline.envs.view)"
        )
    paint = KINDS[type(view.scene)](view.scene, view.unwrap(params), view.unwrap(usual))
    return lambda past: paint(view.unwrap(past))


@lru_cache(maxsize=4096)
def mix(colour: str, other: str, share: float) -> str:
    """A colour with a share of another one in it, as #rrggbb."""
    parts = zip(rgb(colour), rgb(other), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in parts)


def rgb(colour: str) -> list[int]:
    """#rrggbb as three numbers up to 255."""
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def now(past: State) -> State:
    """The last of the states so far."""
    return jax.tree.map(lambda leaf: leaf[-1], past)


def changed_fields(params: Any, usual: Any) -> set[str]:
    """The fields in which two NamedTuples of numbers differ."""
    pairs = zip(params._fields, params, usual, strict=True)
    return {name for name, a, b in pairs if not np.array_equal(a, b)}


def metres(distance: float) -> str:
    return f"{round(distance, 1) + 0.0:.1f} m".replace("-", "−")  # + 0.0: no minus zero


# Bodies of capsules: from the side where they move in a plane, in perspective elsewhere


class Posed(NamedTuple):
    """A body's capsules in the world."""

    start: np.ndarray
    """(G, 3)"""
    end: np.ndarray
    radius: np.ndarray
    """(G,)"""
    hind: np.ndarray
    """Which belong to a link behind the torso's middle, (G,)."""
    changed: np.ndarray
    """Which are not as in training, (G,)."""


def body(scene: Skeleton, params: Any, usual: Any) -> Painter:
    """A robot of capsules, its true sizes, what was changed in the accent colour."""
    bones = scene.bones(params)
    changed = changed_bones(bones, scene.bones(usual))
    planar = np.ptp(np.concatenate([bones.start[:, 1], bones.end[:, 1]])) < 1e-6
    draw = from_the_side if planar else in_perspective

    def paint(past: State) -> Picture:
        begin = np.asarray(scene.pose(jax.tree.map(lambda leaf: leaf[0], past))[0])
        pos, rot = map(np.asarray, scene.pose(now(past)))
        start, end = (
            pos[bones.link] + rotate(rot[bones.link], ends) for ends in (bones.start, bones.end)
        )
        posed = Posed(start, end, bones.radius, behind(begin)[bones.link], changed)
        picture = draw(posed, pos[0])
        picture.note = metres(pos[0, 0] - begin[0, 0])
        return picture

    return paint


def changed_bones(bones: Bones, normal: Bones) -> np.ndarray:
    """Which capsules are thicker, thinner, longer or elsewhere than in training, (G,)."""
    same = np.isclose(bones.radius, normal.radius)
    for ours, theirs in ((bones.start, normal.start), (bones.end, normal.end)):
        same &= np.isclose(ours, theirs).all(axis=-1)
    return ~same


def behind(begin: np.ndarray) -> np.ndarray:
    """Which links start behind the torso's middle: the hind legs of a planar body, (L,)."""
    return begin[:, 0] < begin[0, 0] - 1e-6


SIDE = (-1.3, -0.24, 1.3, 1.75)
"""What is seen around the torso of a planar body, a half-cheetah on its hind leg included."""
CEILING = 0.8
"""A torso that jumps higher takes the camera with it."""


def from_the_side(posed: Posed, torso: np.ndarray) -> Picture:
    """Along y, the camera beside the torso; the hind leg is drawn first and paler."""
    lift = max(0.0, torso[2] - CEILING)
    shift = np.array([torso[0], lift])
    picture = Picture(SIDE)
    track(picture, torso[0], -lift)
    for i in np.argsort(~posed.hind, kind="stable"):
        ends = posed.start[i, ::2] - shift, posed.end[i, ::2] - shift
        colour = ACCENT if posed.changed[i] else BODY
        paler = FAR if posed.hind[i] else NEAR
        picture.solid(capsule(*ends, float(posed.radius[i])), mix(colour, SKY, paler))
    return picture


def track(picture: Picture, middle: float, ground: float) -> None:
    """The ground from the side: a lighter and a darker metre in turn, numbered."""
    left, bottom, right, _ = picture.window
    depth = min(bottom, ground) - 1.0
    picture.add(box(left, depth, right, ground), GRID)
    for mark in range(int(np.floor(middle + left)) - 1, int(np.ceil(middle + right)) + 1):
        x = mark - middle
        if mark % 2 == 0:
            picture.add(box(x, ground - 0.09, x + 1.0, ground), mix(GRID, INK, 0.2))
        if left + 0.2 < x < right - 0.2:  # whole words only
            picture.labels.append(Label(x, ground - 0.1, f"{mark} m".replace("-", "−")))
    picture.add(box(left, ground - 0.012, right, ground), QUIET)


EYE = np.array([-1.7, -3.6, 2.1])
"""Where the camera stands, seen from the body's middle: beside it, a little behind, above."""
FRAME = (-1.7, -1.05, 1.7, 1.05)
TILES = 7
"""Tiles of one metre are drawn this far around the body."""
FADES = 5
"""Shades between the nearest tile and the sky: few, so that a film's palette suffices."""
LIGHT = np.array([-0.25, -0.25])
"""Where a point one metre up throws its shadow, seen from below it."""


def in_perspective(posed: Posed, torso: np.ndarray) -> Picture:
    """From above and beside, the nearest part drawn last."""
    middle = np.array([torso[0], torso[1], 0.35])
    camera = looking(middle + EYE, middle)
    picture = Picture(FRAME)
    floor(picture, camera, torso)
    shadow(picture, camera, posed)
    start, start_depth = camera.project(posed.start)
    end, end_depth = camera.project(posed.end)
    for i in np.argsort(-(start_depth + end_depth)):
        radii = camera.focal * posed.radius[i] / np.array([start_depth[i], end_depth[i]])
        colour = ACCENT if posed.changed[i] else BODY
        distance = 0.5 * (start_depth[i] + end_depth[i]) - camera.focal
        haze = round(float(np.clip(0.2 + 0.28 * distance, 0.05, 0.5)), 1)
        picture.solid(capsule(start[i], end[i], *radii), mix(colour, SKY, haze))
    return picture


def floor(picture: Picture, camera: Pinhole, torso: np.ndarray) -> None:
    """A chessboard of metres that fades into the distance."""
    around = np.arange(-TILES, TILES + 1)
    tiles = np.stack(np.meshgrid(around, around), axis=-1).reshape(-1, 2)
    tiles = tiles[np.hypot(*tiles.T) <= TILES] + np.floor(torso[:2])
    corners = tiles[:, None] + np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    outlines, depths = camera.project(np.pad(corners, ((0, 0), (0, 0), (0, 1))))
    away = np.hypot(*(tiles + 0.5 - torso[:2]).T) / TILES
    fading = np.round(np.clip(away, 0.0, 1.0) * FADES) / FADES
    for tile, outline, depth, faint in zip(tiles, outlines, depths, fading, strict=True):
        if depth.min() > 0.5:  # behind the camera a perspective turns inside out
            colour = mix(GRID, INK, 0.13) if tile.sum() % 2 else GRID
            picture.add(outline, mix(colour, SKY, float(faint)))


def shadow(picture: Picture, camera: Pinhole, posed: Posed) -> None:
    """Every capsule flat on the ground, a wide pale one first and a narrower darker one on top."""
    for grown, colour in ((1.35, mix(GRID, INK, 0.24)), (0.95, mix(GRID, INK, 0.4))):
        for start, end, radius in zip(*posed[:3], strict=True):
            flat = [p[:2] - LIGHT * p[2] for p in (start, end)]
            outline = capsule(flat[0], flat[1], grown * radius)
            on_ground = np.concatenate([outline, np.zeros((len(outline), 1))], axis=-1)
            picture.add(camera.project(on_ground)[0], colour)


# Mechanisms in a plane

LOOKS: dict[Role, tuple[str, str | None]] = {
    "ground": (mix(GRID, INK, 0.3), ""),
    "stop": (QUIET, ""),
    "goal": (mix(COLOURS[3], SKY, 0.3), ""),
    "target": (SKY, mix(GRID, INK, 0.3)),
    "wheel": (QUIET, None),
    "joint": (SKY, None),
    "far": (mix(BODY, SKY, FAR), None),
    "near": (mix(BODY, SKY, NEAR), None),
}
"""Fill and edge by role; None: an edge in a darker shade of the fill."""
MARKED = {"far": mix(ACCENT, SKY, FAR), "near": mix(ACCENT, SKY, NEAR)}
"""The fill of a part that was changed."""


def mechanism(scene: Mechanism, params: Any, usual: Any) -> Painter:
    """What was changed in the accent colour."""
    changed = changed_fields(params, usual)

    def paint(past: State) -> Picture:
        picture = Picture(scene.window)
        for role, shape, fields in scene.parts(params, now(past)):
            fill, edge = LOOKS[role]
            if changed & set(fields):
                fill = MARKED[role]
            outline = box(*shape) if isinstance(shape, Box) else rod(shape)
            picture.add(outline, fill, mix(fill, INK, 0.55) if edge is None else edge)
        return picture

    return paint


def rod(shape: Rod) -> np.ndarray:
    return capsule(np.array(shape.start), np.array(shape.end), shape.radius)


# Grids


def tiles(scene: Tiles, params: Any, usual: Any) -> Painter:
    """The grid lying on its side, its walls, and the way walked so far."""
    walls, before = np.asarray(scene.walls(params)), np.asarray(scene.walls(usual))
    cut, (height, width) = scene.border, walls.shape

    def place(row: float, column: float) -> np.ndarray:
        return np.array([row - cut + 0.5, width - 1 - column - cut + 0.5])

    def square(row: int, column: int, half: float = 0.5) -> np.ndarray:
        x, y = place(row, column)
        return box(x - half, y - half, x + half, y + half)

    fixed = [
        Shape(square(*at), ACCENT if walls[tuple(at)] != before[tuple(at)] else WALL)
        for at in np.argwhere(walls)
    ]

    def paint(past: State) -> Picture:
        picture = Picture((0.0, 0.0, height - 2.0 * cut, width - 2.0 * cut))
        picture.add(box(*picture.window), FREE)
        picture.shapes += fixed
        picture.add(disc(place(*scene.start), 0.3), COLOURS[3])
        picture.add(square(*scene.goal, half=0.38), COLOURS[3])
        way = [place(r, c) for r, c in zip(*scene.place(past), strict=True)]
        for a, b in pairwise(way):
            if (a != b).any():
                picture.add(capsule(a, b, 0.13), mix(BODY, SKY, FAR))
        picture.solid(disc(way[-1], 0.32), mix(BODY, SKY, NEAR))
        return picture

    return paint


KINDS: dict[type, Callable[[Any, Any, Any], Painter]] = {
    Mechanism: mechanism,
    Skeleton: body,
    Tiles: tiles,
}
"""How each kind of scene is painted."""
