"""How an environment looks: a scene turns the states so far into one flat picture.

A scene is one function `(params, usual) -> view`, where `params` are the changed parameters,
`usual` those of training, and `view(past)` draws the last of the states (t + 1, ...). A new one is
such a function and a line in `SCENES`. Pictures are plain polygons in painter's order, in metres
around a camera that follows the body; nothing here knows matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np

from slackline.drawing.sheet import COLOURS, FREE, GRID, INK, QUIET, WALL
from slackline.envs.acrobot import Acrobot
from slackline.envs.api import Env, Params, State
from slackline.envs.cartpole import CartPole
from slackline.envs.impaired import Impaired
from slackline.envs.maze import GOAL, SIGHT, START, Maze
from slackline.envs.pendulum import Pendulum
from slackline.errors import SlacklineError
from slackline.watch.geometry import Camera, box, capsule, disc, looking, rotate

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

    def add(self, outline: np.ndarray, fill: str, edge: str = "") -> None:
        self.shapes.append(Shape(outline, fill, edge))

    def solid(self, outline: np.ndarray, fill: str) -> None:
        """A shape with a thin outline in a darker shade of itself."""
        self.add(outline, fill, mix(fill, INK, 0.55))


View = Callable[[State], Picture]
Scene = Callable[[Any, Any], View]


def view_of(env: Env, params: Params, usual: Params) -> View:
    """How this environment is drawn, or an error that names those that can be."""
    if isinstance(env, Impaired):
        inside = view_of(env.env, params.inner, usual.inner)
        return lambda past: inside(past.inner)
    for kind, scene in SCENES.items():
        if isinstance(env, kind):
            return scene(params, usual)
    if hasattr(env, "bones") and hasattr(env, "pose"):
        return body(env, params, usual)
    known = ", ".join(kind.__name__ for kind in SCENES)
    raise SlacklineError(
        f"{type(env).__name__} has no scene to watch it in; "
        f"{known} and every environment with bones() and pose() have one"
    )


@lru_cache(maxsize=4096)
def mix(colour: str, other: str, share: float) -> str:
    """A colour with a share of another one in it, as #rrggbb."""
    parts = [(int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in parts)


def now(past: State) -> State:
    """The last of the states so far."""
    return jax.tree.map(lambda leaf: leaf[-1], past)


def changed_fields(params: Any, usual: Any) -> set[str]:
    """The fields in which two NamedTuples of numbers differ."""
    pairs = zip(params._fields, params, usual, strict=True)
    return {name for name, a, b in pairs if not np.array_equal(a, b)}


def tint(changed: set[str], *fields: str, usual: str = BODY) -> str:
    """The accent where one of these fields was changed."""
    return ACCENT if changed & set(fields) else usual


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


def body(env: Any, params: Any, usual: Any) -> View:
    """A robot of capsules, its true sizes, what was changed in the accent colour."""
    bones, normal = env.bones(params), env.bones(usual)
    changed = changed_bones(bones, normal)
    planar = np.ptp(np.concatenate([bones.start[:, 1], bones.end[:, 1]])) < 1e-6
    draw = from_the_side if planar else in_perspective

    def view(past: State) -> Picture:
        begin = np.asarray(env.pose(jax.tree.map(lambda leaf: leaf[0], past))[0])
        pos, rot = map(np.asarray, env.pose(now(past)))
        start, end = (
            pos[bones.link] + rotate(rot[bones.link], ends) for ends in (bones.start, bones.end)
        )
        posed = Posed(start, end, bones.radius, behind(begin)[bones.link], changed)
        picture = draw(posed, pos[0])
        picture.note = metres(pos[0, 0] - begin[0, 0])
        return picture

    return view


def changed_bones(bones: Any, normal: Any) -> np.ndarray:
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


def floor(picture: Picture, camera: Camera, torso: np.ndarray) -> None:
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


def shadow(picture: Picture, camera: Camera, posed: Posed) -> None:
    """Every capsule flat on the ground, a wide pale one first and a narrower darker one on top."""
    for grown, colour in ((1.35, mix(GRID, INK, 0.24)), (0.95, mix(GRID, INK, 0.4))):
        for start, end, radius in zip(*posed[:3], strict=True):
            flat = [p[:2] - LIGHT * p[2] for p in (start, end)]
            outline = capsule(flat[0], flat[1], grown * radius)
            on_ground = np.concatenate([outline, np.zeros((len(outline), 1))], axis=-1)
            picture.add(camera.project(on_ground)[0], colour)


# The classic environments


def cartpole(params: Any, usual: Any) -> View:
    """A cart on its rail between the two stops, and its pole."""
    changed = changed_fields(params, usual)
    stop = float(params.max_position)

    def view(past: State) -> Picture:
        state = now(past)
        x, angle = float(state.position), float(state.angle)
        picture = Picture((-2.9, -0.5, 2.9, 2.5))
        picture.add(box(-stop, -0.03, stop, 0.03), mix(GRID, INK, 0.3))
        for end in (-stop, stop):
            picture.add(box(end - 0.04, -0.16, end + 0.04, 0.16), QUIET)
        cart, pole = tint(changed, "cart_mass", "force"), tint(changed, "pole_mass", "length")
        for side in (-0.22, 0.22):
            picture.solid(disc(np.array([x + side, 0.08]), 0.09), QUIET)
        picture.solid(box(x - 0.4, 0.1, x + 0.4, 0.42), mix(cart, SKY, FAR))
        hinge = np.array([x, 0.42])
        tip = hinge + 2.0 * float(params.length) * np.array([np.sin(angle), np.cos(angle)])
        picture.solid(capsule(hinge, tip, 0.055), mix(pole, SKY, NEAR))
        picture.solid(disc(hinge, 0.05), SKY)
        return picture

    return view


def pendulum(params: Any, usual: Any) -> View:
    """A rod on a pivot; the ring is where its tip should be."""
    changed = changed_fields(params, usual)
    length = float(params.length)

    def view(past: State) -> Picture:
        angle = float(now(past).angle)
        picture = Picture((-1.9, -1.75, 1.9, 1.75))
        picture.add(disc(np.array([0.0, length]), 0.15), SKY, mix(GRID, INK, 0.3))
        # Gymnasium counts the angle against the clock from upright.
        tip = length * np.array([-np.sin(angle), np.cos(angle)])
        rod = tint(changed, "mass", "length")
        picture.solid(capsule(np.zeros(2), tip, 0.1), mix(rod, SKY, NEAR))
        picture.solid(disc(np.zeros(2), 0.05), SKY)
        return picture

    return view


def acrobot(params: Any, usual: Any) -> View:
    """Two links below a pivot and the line to be reached."""
    changed = changed_fields(params, usual)

    def view(past: State) -> Picture:
        state = now(past)
        first = float(state.angle_1)
        second = first + float(state.angle_2)
        picture = Picture((-2.4, -2.25, 2.4, 2.25))
        picture.add(box(-2.4, 0.985, 2.4, 1.015), mix(COLOURS[3], SKY, 0.3))
        links = tint(changed, "mass", "length", "inertia", "centre")
        # The end is judged with links of one metre, whatever their length is in the dynamics.
        elbow = np.array([np.sin(first), -np.cos(first)])
        tip = elbow + np.array([np.sin(second), -np.cos(second)])
        picture.solid(capsule(np.zeros(2), elbow, 0.11), mix(links, SKY, FAR))
        picture.solid(capsule(elbow, tip, 0.09), mix(links, SKY, NEAR))
        for joint in (np.zeros(2), elbow):
            picture.solid(disc(joint, 0.05), SKY)
        return picture

    return view


def maze(params: Any, usual: Any) -> View:
    """The corridor lying on its side, its walls, and the way walked so far."""
    walls, changed = np.asarray(params.walls), np.asarray(params.walls) != np.asarray(usual.walls)
    cut = SIGHT - 1
    height, width = walls.shape

    def place(row: float, column: float) -> np.ndarray:
        return np.array([row - cut + 0.5, width - 1 - column - cut + 0.5])

    def tiles() -> Iterator[Shape]:
        for row, column in np.argwhere(walls):
            colour = ACCENT if changed[row, column] else WALL
            x, y = place(row, column)
            yield Shape(box(x - 0.5, y - 0.5, x + 0.5, y + 0.5), colour)

    fixed = list(tiles())

    def view(past: State) -> Picture:
        picture = Picture((0.0, 0.0, height - 2.0 * cut, width - 2.0 * cut))
        picture.add(box(*picture.window), FREE)
        picture.shapes += fixed
        picture.add(disc(place(*START), 0.3), COLOURS[3])
        x, y = place(*GOAL)
        picture.add(box(x - 0.38, y - 0.38, x + 0.38, y + 0.38), COLOURS[3])
        way = [place(r, c) for r, c in zip(past.row, past.column, strict=True)]
        for a, b in pairwise(way):
            if (a != b).any():
                picture.add(capsule(a, b, 0.13), mix(BODY, SKY, FAR))
        picture.solid(disc(way[-1], 0.32), mix(BODY, SKY, NEAR))
        return picture

    return view


SCENES: dict[type, Scene] = {
    CartPole: cartpole,
    Acrobot: acrobot,
    Pendulum: pendulum,
    Maze: maze,
}
"""By the environment's class; one with `bones` and `pose` needs no line here."""
