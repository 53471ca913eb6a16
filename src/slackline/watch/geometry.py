"""The geometry of drawing: turning, outlines, perspective. NumPy only, nothing about colours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ARC = 9
"""Corners of half a circle: enough to look round at the size of a panel."""


def rotate(rot: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Turn vectors (..., 3) by unit quaternions (..., 4), real part first: v + 2 u × (u × v + w v).

    w is the quaternion's real part, u the other three.
    """
    w, u = rot[..., :1], rot[..., 1:]
    return vectors + 2.0 * np.cross(u, np.cross(u, vectors) + w * vectors)


def disc(centre: np.ndarray, radius: float) -> np.ndarray:
    """The outline of a circle, (2 ARC, 2)."""
    return centre + radius * _directions(np.linspace(0.0, 2.0 * np.pi, 2 * ARC, endpoint=False))


def capsule(start: np.ndarray, end: np.ndarray, r0: float, r1: float | None = None) -> np.ndarray:
    """The outline of a capsule whose ends have radii r0 and r1: the hull of two circles, (n, 2).

    The two straight sides leave the circles at ±φ from the axis, cos φ = (r0 − r1) / distance.
    """
    r1 = r0 if r1 is None else r1
    axis = np.asarray(end, float) - start
    distance = float(np.hypot(*axis))
    if distance <= abs(r0 - r1) + 1e-9:
        return disc(np.asarray(start if r0 >= r1 else end, float), max(r0, r1))
    towards, side = np.arctan2(axis[1], axis[0]), np.arccos((r0 - r1) / distance)
    at_end = towards + np.linspace(-side, side, ARC)
    at_start = towards + np.linspace(side, 2.0 * np.pi - side, ARC)
    return np.concatenate([end + r1 * _directions(at_end), start + r0 * _directions(at_start)])


def box(left: float, bottom: float, right: float, top: float) -> np.ndarray:
    """The outline of an upright rectangle, (4, 2)."""
    return np.array([(left, bottom), (right, bottom), (right, top), (left, top)], float)


def _directions(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


class Pinhole(NamedTuple):
    """A pinhole: what lies one metre in front of it is drawn at `focal` of its size."""

    eye: np.ndarray
    axes: np.ndarray
    """Rows: to the right, up, and into the picture; (3, 3)."""
    focal: float

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(places in the picture (..., 2), depths (...)) of points (..., 3).

        x = focal · right / depth, y = focal · up / depth.
        """
        seen = (points - self.eye) @ self.axes.T
        depth = seen[..., 2]
        return self.focal * seen[..., :2] / depth[..., None], depth


def looking(eye: np.ndarray, target: np.ndarray) -> Pinhole:
    """A camera at `eye`, upright, that draws `target` in the middle and at its true size."""
    ahead = np.asarray(target, float) - eye
    distance = float(np.linalg.norm(ahead))
    ahead = ahead / distance
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    return Pinhole(
        np.asarray(eye, float), np.stack([right, np.cross(right, ahead), ahead]), distance
    )
