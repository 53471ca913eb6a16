"""Brax's `spring` physics for a CPU: many environments at once, one number of a robot at a time.

Brax keeps (links, 3) and (links, 4) arrays. Under `vmap` their shortest axis is the innermost one,
which no CPU vectorises. Here every component of every link is a scalar of its own, so that under
`vmap` it is one vector over environments, and a frame is nothing but elementwise arithmetic.

Numbers of the `System` that are known while tracing (those that are not tracers) are Python floats,
and arithmetic with 0 and ±1 is left out. A caller gains much by tracing only what its variations
change. If what is known keeps a robot in the xz plane, as it does HalfCheetah, everything off that
plane drops out as well. For that gravity must be known to be vertical: an array of the `System` may
be one of objects, numbers and tracers mixed, as is `api.mixed([0.0, 0.0, -9.81], (2,), [g])`.

The physics is Brax 0.14's (`brax/spring`), in world coordinates; the tests compare it step by step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from slackline.errors import SlacklineError
from slackline.types import Array

if TYPE_CHECKING:
    from brax.base import System

Number = float | Array
"""A float is known while tracing; an array is one scalar of one environment."""


class SpringState(NamedTuple):
    """Where a robot's links are and how they move, in world coordinates."""

    q: Array
    """Joint positions, as Brax orders them."""
    qd: Array
    """Joint velocities."""
    x_pos: Array
    """(links, 3) origins of the links."""
    x_rot: Array
    """(links, 4) rotations of the links: w, x, y, z."""
    com: Array
    """(links, 3) centres of mass."""
    vel: Array
    """(links, 3) velocities of the centres of mass."""
    ang: Array
    """(links, 3) angular velocities."""


def init(sys: System, q: Array, qd: Array) -> SpringState:
    """The state with the given joint positions and velocities."""
    robot = _robot(sys)
    return _pack(robot, _forward(robot, q, qd), q, qd)


def step(sys: System, state: SpringState, act: Array, num_frames: int | Array) -> SpringState:
    """`num_frames` physics frames under the same action."""
    robot = replace(_robot(sys), one=0.0 * state.x_rot[0, 0] + 1.0)
    motors = [_motors(sys, link, act) for link in robot.links]
    parts = SPACE
    if robot.links[0].kind == "3":
        parts = PLANE if _stays_in_plane(robot, motors) else SPACE

    def frame(_: Any, numbers: list[Array]) -> Any:
        bodies = _advance(robot, _bodies(numbers, parts), motors)
        return [part for body in bodies for part in _parts(body, parts)]

    bodies = _bodies(jax.lax.fori_loop(0, num_frames, frame, _numbers(state, parts)), parts)
    return _pack(robot, bodies, *_joint_coordinates(robot, bodies))


# Arithmetic that leaves out what is known to be zero or one.


def times(a: Number, b: Number) -> Number:
    if isinstance(b, float):
        a, b = b, a
    if not isinstance(a, float) or isinstance(b, float):
        return a * b
    if a == 0.0:
        return 0.0
    return b if a == 1.0 else -b if a == -1.0 else a * b


def plus(a: Number, b: Number) -> Number:
    if isinstance(a, float) and a == 0.0:
        return b
    return a if isinstance(b, float) and b == 0.0 else a + b


def minus(a: Number, b: Number) -> Number:
    known = (isinstance(a, float) and a == 0.0) or isinstance(b, float)
    return plus(a, times(-1.0, b)) if known else a - b


def power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, float) and exponent in (0.0, 1.0):
        return 1.0 if exponent == 0.0 else base
    known = isinstance(base, float) and isinstance(exponent, float)
    return base**exponent if known else jnp.power(base, exponent)


def exp(x: Number) -> Number:
    return math.exp(x) if isinstance(x, float) else jnp.exp(x)


def sqrt(x: Number) -> Number:
    return math.sqrt(x) if isinstance(x, float) else jnp.sqrt(x)


def within(x: Number, low: Number, high: Number) -> Number:
    """x cut to [low, high]; a bound known to be infinite costs nothing."""
    x = x if isinstance(low, float) and low == -math.inf else jnp.maximum(x, low)
    return x if isinstance(high, float) and high == math.inf else jnp.minimum(x, high)


def angle(sine: Number, cosine: Number) -> Array:
    """arctan2, as arithmetic: XLA calls the C library's for one number at a time.

    The polynomial is a minimax fit of atan(t)/t on |t| ≤ tan(π/8), to 2e-8.
    """
    up, along = jnp.abs(sine), jnp.abs(cosine)
    low, high = jnp.minimum(up, along), jnp.maximum(up, along)
    steep = low > 0.41421356 * high  # atan(t) = π/4 + atan((t − 1)/(t + 1))
    below = jnp.where(steep, low + high, jnp.maximum(high, 1e-30))
    t = jnp.where(steep, low - high, low) / below
    s = t * t
    series = t + t * s * (ATAN[0] + s * (ATAN[1] + s * (ATAN[2] + s * ATAN[3])))
    octant = jnp.where(steep, 0.25 * math.pi, 0.0) + series
    quadrant = jnp.where(up > along, 0.5 * math.pi - octant, octant)
    half = jnp.where(cosine < 0.0, math.pi - quadrant, quadrant)
    return jnp.where(sine < 0.0, -half, half)


ATAN = (-0.33332949, 0.1997771, -0.13877679, 0.08053722)


@dataclass(frozen=True)
class Vec:
    x: Number
    y: Number
    z: Number

    def __iter__(self) -> Iterator[Number]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: Vec) -> Vec:
        return Vec(*map(plus, self, other))

    def __sub__(self, other: Vec) -> Vec:
        return Vec(*map(minus, self, other))

    def __mul__(self, scale: Number) -> Vec:
        return Vec(*(times(scale, part) for part in self))

    def __neg__(self) -> Vec:
        return self * -1.0

    def dot(self, other: Vec) -> Number:
        x, y, z = map(times, self, other)
        return plus(plus(x, y), z)

    def cross(self, other: Vec) -> Vec:
        return Vec(
            minus(times(self.y, other.z), times(self.z, other.y)),
            minus(times(self.z, other.x), times(self.x, other.z)),
            minus(times(self.x, other.y), times(self.y, other.x)),
        )


@dataclass(frozen=True)
class Mat:
    """A matrix, by its rows."""

    x: Vec
    y: Vec
    z: Vec

    def __iter__(self) -> Iterator[Vec]:
        return iter((self.x, self.y, self.z))

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(*(row.dot(v) for row in self))

    @property
    def T(self) -> Mat:  # noqa: N802
        return Mat(*(Vec(*column) for column in zip(*self, strict=True)))

    def after(self, other: Mat) -> Mat:
        """This matrix times the other."""
        return Mat(*(other.T @ row for row in self))


@dataclass(frozen=True)
class Quat:
    w: Number
    x: Number
    y: Number
    z: Number

    def __iter__(self) -> Iterator[Number]:
        return iter((self.w, self.x, self.y, self.z))

    @property
    def axis(self) -> Vec:
        return Vec(self.x, self.y, self.z)

    @property
    def inverse(self) -> Quat:
        return Quat(self.w, *-self.axis)

    def __mul__(self, other: Quat) -> Quat:
        u, v = self.axis, other.axis
        axis = v * self.w + u * other.w + u.cross(v)
        return Quat(minus(times(self.w, other.w), u.dot(v)), *axis)

    def matrix(self) -> Mat:
        """The rotation; of a quaternion that is not a unit it also scales, as it does in Brax."""
        u, double = self.axis, times(2.0, self.w)
        spin = u * double
        diagonal = minus(times(self.w, self.w), u.dot(u))
        xx, xy, xz = u * times(2.0, u.x)
        yy, yz = times(2.0, times(u.y, u.y)), times(2.0, times(u.y, u.z))
        zz = times(2.0, times(u.z, u.z))
        return Mat(
            Vec(plus(diagonal, xx), minus(xy, spin.z), plus(xz, spin.y)),
            Vec(plus(xy, spin.z), plus(diagonal, yy), minus(yz, spin.x)),
            Vec(minus(xz, spin.y), plus(yz, spin.x), plus(diagonal, zz)),
        )

    def normalised(self) -> Quat:
        w, axis = self.w, self.axis
        scale = 1.0 / sqrt(plus(times(w, w), axis.dot(axis)))
        return Quat(times(w, scale), *(axis * scale))


ZERO = Vec(0.0, 0.0, 0.0)
UNTURNED = Quat(1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class LinkMotion:
    """A link's centre of mass, rotation, velocity and angular velocity."""

    com: Vec
    rot: Quat
    vel: Vec
    ang: Vec


WORLD = LinkMotion(ZERO, UNTURNED, ZERO, ZERO)

SPACE = range(13)
"""All parts of a body: com 0-2, rot 3-6, vel 7-9, ang 10-12."""
PLANE = (0, 2, 3, 5, 7, 9, 11)
"""The parts of a body that moves in the xz plane and turns about y."""


# What the physics reads of a `System`, worked out once for all frames of a step.


@dataclass(frozen=True)
class Frame:
    """A hinge's axis and two directions across it: axis = first × second."""

    axis: Vec
    first: Vec
    second: Vec

    def turned(self, turn: Mat) -> Frame:
        return Frame(turn @ self.axis, turn @ self.first, turn @ self.second)


@dataclass(frozen=True)
class Touch:
    """A ball of a link that may touch the ground."""

    centre: Vec
    """From the link's centre of mass, in the link's coordinates."""
    radius: Number
    friction: Number
    bounce: Number
    normal: Vec
    height: Number
    """Of the ground, along its normal."""


@dataclass(frozen=True)
class Link:
    kind: str
    parent: int
    q: int
    """Where its joint's positions begin."""
    dof: int
    """Where its joint's velocities begin."""
    pos: Vec
    """Of its origin in its parent's coordinates, as is `rot`."""
    rot: Quat
    joint_pos: Vec
    """Of its joint in its own coordinates, as is `joint_rot`."""
    joint_rot: Quat
    com: Vec
    inverse_mass: Number
    inverse_inertia: Number | Mat
    """In its own coordinates; a number if the same about every axis."""
    hinge: Frame
    """In the joint's coordinates."""
    slides: tuple[Vec, ...]
    """In the joint's coordinates."""
    slides_in_world: tuple[Vec, ...]
    anchor: Vec
    """The joint, seen from the centre of mass in its own coordinates."""
    parent_anchor: Vec
    """The joint, seen from its parent's centre of mass in its parent's coordinates."""
    hinge_here: Frame
    hinge_on_parent: Frame
    stiffness: Number
    limit_stiffness: Number
    vel_damping: Number
    ang_damping: Number
    limits: tuple[Number, Number]
    touches: tuple[Touch, ...]


@dataclass(frozen=True)
class SpringModel:
    links: tuple[Link, ...]
    gravity: Vec
    time_step: Number
    push_out: Number
    """Velocity out of the ground for each metre inside it."""
    vel_left: Number
    """The share of velocity that damping leaves in a frame."""
    ang_left: Number
    one: Number = 1.0

    def kept(self, x: Number) -> Number:
        """The same number, computed once.

        XLA computes a number anew in every kernel that reads it unless it is expensive, as a
        division is. Dividing by a one that it cannot see through is exact, halves the program and
        makes it half as fast again.
        """
        known = isinstance(x, float) or isinstance(self.one, float)
        return x if known else x / self.one

    def kept_vec(self, v: Vec) -> Vec:
        return Vec(*map(self.kept, v))


@dataclass(frozen=True)
class Motor:
    force: Number
    gear: Number
    of_position: Number
    of_velocity: Number
    low: Number
    high: Number

    def torque(self, position: Number, velocity: Number) -> Number:
        felt = plus(times(self.of_position, position), times(self.of_velocity, velocity))
        force = plus(self.force, times(self.gear, felt))
        return times(self.gear, within(force, self.low, self.high))


def _read(leaf: Any, *index: int) -> Number:
    number = leaf[index] if isinstance(leaf, Tracer) else np.asarray(leaf)[index]
    return number.astype(float) if isinstance(number, Tracer) else float(number)


def _vec(leaf: Any, *index: int) -> Vec:
    return Vec(*(_read(leaf, *index, i) for i in range(3)))


def _quat(leaf: Any, *index: int) -> Quat:
    return Quat(*(_read(leaf, *index, i) for i in range(4)))


def _rounded(x: Number) -> Number:
    """A known 0 or ±1 that single precision blurred."""
    return float(round(x)) if isinstance(x, float) and abs(x - round(x)) < 1e-6 else x


def _turn(quat: Quat) -> Mat:
    return Mat(*(Vec(*map(_rounded, row)) for row in quat.matrix()))


SLIDE, HINGE = 2, 3
"""MuJoCo's numbers for kinds of joints."""
JOINTS = {"f": (0,), "1": (HINGE,), "3": (SLIDE, SLIDE, HINGE)}
WIDTHS = {"f": (7, 6), "1": (1, 1), "3": (3, 3)}
"""How many positions and velocities a joint has."""
PLANE_GEOM, SPHERE_GEOM, CAPSULE_GEOM = 0, 2, 3
"""MuJoCo's numbers for shapes."""


def _robot(sys: System) -> SpringModel:
    _check(sys)
    links: list[Link] = []
    touches = _touches(sys)
    q = dof = 0
    for i, kind in enumerate(sys.link_types):
        links.append(_link(sys, links, i, q, dof, touches[i]))
        q, dof = q + WIDTHS[kind][0], dof + WIDTHS[kind][1]
    time_step = _read(sys.opt.timestep)
    return SpringModel(
        tuple(links),
        _vec(sys.gravity),
        time_step,
        times(_read(sys.baumgarte_erp), 1.0 / time_step),
        exp(times(_read(sys.vel_damping), time_step)),
        exp(times(_read(sys.ang_damping), time_step)),
    )


def _check(sys: System) -> None:
    """Refuse a robot for which this file would not compute what Brax does."""
    joints = np.asarray(sys.jnt_type)
    bodies = np.asarray(sys.jnt_bodyid)
    for i, (kind, parent) in enumerate(zip(sys.link_types, sys.link_parents, strict=True)):
        if kind not in JOINTS or tuple(joints[bodies == i + 1]) != JOINTS[kind]:
            raise _unsupported(
                f"link {i}, whose joint is neither free, a hinge, nor two slides and a hinge"
            )
        if (kind == "1") != (parent >= 0) or parent >= i:
            raise _unsupported(f"link {i}, since only links of the world may be free or slide")
        if kind == "3" and np.asarray(sys.jnt_limited)[bodies == i + 1].any():
            raise _unsupported(f"link {i}, whose slides have limits")
    if sys.enable_fluid:
        raise _unsupported("fluid forces")
    if sys.nu and not (
        (np.asarray(sys.actuator_trntype) == 0).all()
        and (joints[np.asarray(sys.actuator_trnid)[:, 0]] == HINGE).all()
    ):
        raise _unsupported("actuators of anything but hinges")


def _unsupported(what: str) -> SlacklineError:
    return SlacklineError(f"the spring physics here does not support {what}; use Brax's own")


def _link(
    sys: System, before: Sequence[Link], i: int, q: int, dof: int, touches: Sequence[Touch]
) -> Link:
    link, kind, parent = sys.link, sys.link_types[i], int(sys.link_parents[i])
    com = _vec(link.inertia.transform.pos, i)
    pos, rot = _vec(link.transform.pos, i), _quat(link.transform.rot, i)
    joint_pos, joint_rot = _vec(link.joint.pos, i), _quat(link.joint.rot, i)
    turn = _turn(rot)
    axis_dof = {"f": dof + 3, "1": dof, "3": dof + 2}[kind]
    hinge = _across(_vec(sys.dof.motion.ang, axis_dof))
    on_parent = turn.after(_turn(joint_rot))
    slides = tuple(_vec(sys.dof.motion.vel, dof + k) for k in range(2)) if kind == "3" else ()
    return Link(
        kind=kind,
        parent=parent,
        q=q,
        dof=dof,
        pos=pos,
        rot=rot,
        joint_pos=joint_pos,
        joint_rot=joint_rot,
        com=com,
        inverse_mass=power(_read(link.inertia.mass, i), minus(_read(sys.spring_mass_scale), 1.0)),
        inverse_inertia=_inverse_inertia(sys, i),
        hinge=hinge,
        slides=slides,
        slides_in_world=tuple(on_parent @ slide for slide in slides),
        anchor=joint_pos - com,
        parent_anchor=pos + turn @ joint_pos - (before[parent].com if parent >= 0 else ZERO),
        hinge_here=hinge.turned(_turn(joint_rot)),
        hinge_on_parent=hinge.turned(on_parent),
        stiffness=_read(link.constraint_stiffness, i),
        limit_stiffness=_read(link.constraint_limit_stiffness, i),
        vel_damping=_read(link.constraint_vel_damping, i),
        ang_damping=_read(link.constraint_ang_damping, i),
        limits=_limits(sys, axis_dof),
        touches=tuple(touches),
    )


def _limits(sys: System, dof: int) -> tuple[Number, Number]:
    if sys.dof.limit is None:
        return -math.inf, math.inf
    low, high = sys.dof.limit
    return _read(low, dof), _read(high, dof)


def _across(axis: Vec) -> Frame:
    """The two directions from which Brax measures a hinge's angle."""
    if isinstance(axis.y, float):
        upright = float(abs(axis.y) >= 0.5)
    else:
        upright = (jnp.abs(axis.y) >= 0.5).astype(float)
    start = Vec(0.0, minus(1.0, upright), upright)
    first = start - axis * axis.dot(start)
    first = first * (1.0 / sqrt(first.dot(first)))
    return Frame(axis, first, axis.cross(first))


def _inverse_inertia(sys: System, i: int) -> Number | Mat:
    inertia = sys.link.inertia
    exponent = minus(_read(sys.spring_inertia_scale), 1.0)
    x, y, z = (power(_read(inertia.i, i, k, k), exponent) for k in range(3))
    if all(isinstance(moment, float) for moment in (x, y, z)) and x == y == z:
        return x
    turn = _turn(_quat(inertia.transform.rot, i))
    return turn.after(Mat(turn.T.x * x, turn.T.y * y, turn.T.z * z))


def _touches(sys: System) -> list[list[Touch]]:
    """The balls of each link that may touch the ground; a capsule has one at either end."""
    found: list[list[Touch]] = [[] for _ in sys.link_types]
    for ground, geom in _pairs(sys):
        turn = _turn(_quat(sys.geom_quat, ground))
        normal = turn.T.z
        one, other = (_read(sys.geom_friction, g, 0) for g in (ground, geom))
        both_known = isinstance(one, float) and isinstance(other, float)
        friction = max(one, other) if both_known else jnp.maximum(one, other)
        bounce = times(0.5, plus(_read(sys.elasticity, ground), _read(sys.elasticity, geom)))
        height = normal.dot(_vec(sys.geom_pos, ground))
        i = int(sys.geom_bodyid[geom]) - 1
        centre = _vec(sys.geom_pos, geom) - _vec(sys.link.inertia.transform.pos, i)
        ends = [ZERO]
        if sys.geom_type[geom] == CAPSULE_GEOM:
            end = _turn(_quat(sys.geom_quat, geom)).T.z * _read(sys.geom_size, geom, 1)
            ends = [end, -end]
        radius = _read(sys.geom_size, geom, 0)
        found[i] += [Touch(centre + e, radius, friction, bounce, normal, height) for e in ends]
    return found


def _pairs(sys: System) -> Iterator[tuple[int, int]]:
    """(ground, geom) for all geoms that collide, as MuJoCo's bit masks have it."""
    body, kind = np.asarray(sys.geom_bodyid), np.asarray(sys.geom_type)
    contype, conaffinity = np.asarray(sys.geom_contype), np.asarray(sys.geom_conaffinity)
    if sys.npair or len(sys.exclude_signature) or b"max_contact_points" in sys.names:
        raise _unsupported("contacts listed or limited by the model")
    if int(sys.opt.disableflags):
        raise _unsupported("disabled parts of the physics")
    for a in range(len(body)):
        for b in range(a + 1, len(body)):
            if body[a] == body[b] or not (
                contype[a] & conaffinity[b] | contype[b] & conaffinity[a]
            ):
                continue
            if body[a] or kind[a] != PLANE_GEOM or kind[b] not in (SPHERE_GEOM, CAPSULE_GEOM):
                raise _unsupported("contacts other than of spheres and capsules with the ground")
            if sys.geom_priority[a] != sys.geom_priority[b]:
                raise _unsupported("geoms of unequal priority")
            yield a, b


def _motors(sys: System, link: Link, act: Array) -> list[Motor]:
    """The motors of a link's hinge."""
    mine = (
        []
        if link.kind != "1"
        else [i for i in range(sys.nu) if sys.jnt_dofadr[sys.actuator_trnid[i, 0]] == link.dof]
    )
    return [_motor(sys.actuator, i, act[i]) for i in mine]


def _motor(actuator: Any, i: int, act: Array) -> Motor:
    force = within(act, *(_read(actuator.ctrl_range, i, side) for side in range(2)))
    return Motor(
        times(_read(actuator.gain, i), force),
        _read(actuator.gear, i),
        _read(actuator.bias_q, i),
        _read(actuator.bias_qd, i),
        *(_read(actuator.force_range, i, side) for side in range(2)),
    )


# One frame.


@dataclass(frozen=True)
class Joint:
    """A link's joint in world coordinates: what holds it and how far it has come loose."""

    on_child: Frame
    on_parent: Frame
    lever: Vec
    """From the child's centre of mass to the joint, and from the parent's."""
    parent_lever: Vec
    gap: Vec
    slip: Vec
    """The child's velocity relative to the parent's at the joint."""
    spin: Vec

    def position(self) -> Number:
        """The hinge's angle."""
        across = self.on_child.second
        sine = times(-1.0, across.dot(self.on_parent.first))
        return angle(sine, across.dot(self.on_parent.second))

    def velocity(self) -> Number:
        return self.on_child.axis.dot(self.spin)


def _joint(
    link: Link, parent_com: Vec, body: LinkMotion, turn: Mat, parent: LinkMotion, parent_turn: Mat
) -> Joint:
    lever, parent_lever = turn @ link.anchor, parent_turn @ link.parent_anchor
    # Brax takes the child's velocity at its origin instead of the joint, and the parent's at the
    # joint's mirror image in the parent's origin.
    here = turn @ -link.com
    there = parent_turn @ (parent_com * -2.0) - parent_lever
    return Joint(
        link.hinge_here.turned(turn),
        link.hinge_on_parent.turned(parent_turn),
        lever,
        parent_lever,
        body.com - parent.com + lever - parent_lever,
        body.vel - parent.vel + body.ang.cross(here) - parent.ang.cross(there),
        body.ang - parent.ang,
    )


def _joints(robot: SpringModel, bodies: Sequence[LinkMotion], turns: Sequence[Mat]) -> list[Joint]:
    found = []
    for link, body, turn in zip(robot.links, bodies, turns, strict=True):
        p = link.parent
        parent = (bodies[p], turns[p]) if p >= 0 else (WORLD, WORLD.rot.matrix())
        parent_com = robot.links[p].com if p >= 0 else ZERO
        found.append(_joint(link, parent_com, body, turn, *parent))
    return found


def _joint_force(
    robot: SpringModel, link: Link, joint: Joint, motors: Sequence[Motor]
) -> tuple[Vec, Vec]:
    """Force and torque on the link, at the joint: springs, dampers, limits and motors."""
    if link.kind == "f":
        return ZERO, ZERO
    force = -(joint.gap * link.stiffness + joint.slip * link.vel_damping)
    for unopposed in [slide * slide.dot(force) for slide in link.slides_in_world]:
        force = force - unopposed
    bend = joint.on_parent.axis.cross(joint.on_child.axis)
    torque = -(bend * link.stiffness + joint.spin * link.ang_damping)
    if link.kind == "1":
        torque = torque + joint.on_parent.axis * robot.kept(_drive(link, joint, motors))
    return force, torque


def _drive(link: Link, joint: Joint, motors: Sequence[Motor]) -> Number:
    """Torque about the hinge from motors and limits."""
    position = joint.position()
    beyond = minus(position, within(position, *link.limits))
    drive = times(-1.0, times(link.limit_stiffness, beyond))
    for motor in motors:
        drive = plus(drive, motor.torque(position, joint.velocity()))
    return drive


def _advance(
    robot: SpringModel, bodies: Sequence[LinkMotion], motors: Sequence[list[Motor]]
) -> list[LinkMotion]:
    turns = [body.rot.matrix() for body in bodies]
    forces, torques = _forces(robot, bodies, turns, motors)
    moved = []
    for i, link in enumerate(robot.links):
        pull = robot.gravity + forces[i] * link.inverse_mass
        twist = _unresisted(link.inverse_inertia, turns[i], torques[i])
        vel = robot.kept_vec(bodies[i].vel + pull * robot.time_step)
        ang = robot.kept_vec(bodies[i].ang + twist * robot.time_step)
        body = LinkMotion(bodies[i].com, bodies[i].rot, vel, ang)
        if link.touches:
            kick, whirl = _landing(robot, i, body, turns)
        else:
            kick, whirl = ZERO, ZERO
        moved.append(_moved(robot, body, kick, whirl))
    return moved


def _forces(
    robot: SpringModel,
    bodies: Sequence[LinkMotion],
    turns: Sequence[Mat],
    motors: Sequence[list[Motor]],
) -> tuple[list[Vec], list[Vec]]:
    """Force and torque on each link at its centre of mass, its own joint's and its children's."""
    forces, torques = [ZERO] * len(bodies), [ZERO] * len(bodies)
    for i, (link, joint) in enumerate(zip(robot.links, _joints(robot, bodies, turns), strict=True)):
        force, torque = map(robot.kept_vec, _joint_force(robot, link, joint, motors[i]))
        forces[i] = forces[i] + force
        torques[i] = torques[i] + torque + joint.lever.cross(force)
        if link.parent >= 0:
            p = link.parent
            forces[p] = forces[p] - force
            torques[p] = torques[p] - torque - joint.parent_lever.cross(force)
    return forces, torques


def _unresisted(inverse_inertia: Number | Mat, turn: Mat, torque: Vec) -> Vec:
    """The angular acceleration that a torque causes, in world coordinates."""
    if isinstance(inverse_inertia, Mat):
        return turn @ (inverse_inertia @ (turn.T @ torque))
    return torque * inverse_inertia


def _landing(robot: SpringModel, i: int, body: LinkMotion, turns: Sequence[Mat]) -> tuple[Vec, Vec]:
    """Change of velocity and of angular velocity by contacts, averaged over those that touch."""
    link = robot.links[i]
    roll = _contact_inertia(robot, i, turns)
    impulse, twist, count = ZERO, ZERO, 0.0
    for touch in link.touches:
        lever, push, touching = _contact(robot, link, touch, body, turns[i], roll)
        impulse, twist = impulse + push, twist + lever.cross(push)
        count = plus(count, touching)
    if len(link.touches) > 1:
        share = 1.0 / jnp.maximum(count, 1.0)
        impulse, twist = impulse * share, twist * share
    return impulse * link.inverse_mass, _unresisted(link.inverse_inertia, turns[i], twist)


def _contact_inertia(robot: SpringModel, i: int, turns: Sequence[Mat]) -> Number:
    """What Brax takes for a link's inverse inertia in contacts.

    It indexes the flattened (links, 3, 3) array by the link, so it finds one entry of the first
    link's matrix. We have to do the same to move as Brax does.
    """
    owner, row, column = i // 9, i % 9 // 3, i % 3
    inverse = robot.links[owner].inverse_inertia
    if not isinstance(inverse, Mat):
        return inverse if row == column else 0.0
    rows = tuple(turns[owner])
    return rows[row].dot(inverse @ rows[column])


def _contact(
    robot: SpringModel, link: Link, touch: Touch, body: LinkMotion, turn: Mat, roll: Number
) -> tuple[Vec, Vec, Array]:
    """Where a ball touches, seen from the centre of mass; the impulse there; 1 if it touches."""
    n = touch.normal
    centre = turn @ touch.centre
    depth = minus(minus(n.dot(body.com + centre), touch.height), touch.radius)
    lever = centre - n * plus(touch.radius, times(0.5, depth))
    vel = body.vel + body.ang.cross(lever)
    fall = n.dot(vel)
    arm = lever.cross(n)
    rebound = times(-1.0, plus(times(plus(1.0, touch.bounce), fall), times(robot.push_out, depth)))
    push = rebound / plus(link.inverse_mass, times(roll, arm.dot(arm)))
    touching = (depth < 0.0) & (fall < 0.0) & (push > 0.0)

    slide = n * fall - vel
    speed = sqrt(slide.dot(slide))
    way = slide * (1.0 / plus(1e-6, speed))
    arm = lever.cross(way)
    drag = speed / plus(link.inverse_mass, times(roll, arm.dot(arm)))
    drag = jnp.minimum(drag, times(touch.friction, push))
    drag = jnp.where(touching & (speed > 1e-3), drag, 0.0)
    push = jnp.where(touching, push, 0.0)
    return lever, n * push + way * drag, jnp.where(touching, 1.0, 0.0)


def _moved(robot: SpringModel, body: LinkMotion, kick: Vec, whirl: Vec) -> LinkMotion:
    vel = body.vel * robot.vel_left + kick
    ang = body.ang * robot.ang_left + whirl
    half_turn = Quat(0.0, *(ang * times(0.5, robot.time_step))) * body.rot
    rot = Quat(*map(plus, body.rot, half_turn)).normalised()
    return LinkMotion(body.com + vel * robot.time_step, rot, vel, ang)


# Between arrays, joint coordinates and bodies.


def _parts(body: LinkMotion, parts: Iterable[int]) -> list[Number]:
    every = [*body.com, *body.rot, *body.vel, *body.ang]
    return [every[k] for k in parts]


def _body(numbers: Sequence[Number], parts: Iterable[int]) -> LinkMotion:
    every: list[Number] = [0.0] * 13
    for k, number in zip(parts, numbers, strict=True):
        every[k] = number
    return LinkMotion(Vec(*every[:3]), Quat(*every[3:7]), Vec(*every[7:10]), Vec(*every[10:]))


def _bodies(numbers: Sequence[Number], parts: Sequence[int]) -> list[LinkMotion]:
    size = len(parts)
    return [_body(numbers[k : k + size], parts) for k in range(0, len(numbers), size)]


def _numbers(state: SpringState, parts: Sequence[int]) -> list[Array]:
    every = jnp.concatenate([state.com, state.x_rot, state.vel, state.ang], axis=-1)
    return [every[i, k] for i in range(every.shape[0]) for k in parts]


def _pack(robot: SpringModel, bodies: Sequence[LinkMotion], q: Array, qd: Array) -> SpringState:
    pos = [
        body.com - body.rot.matrix() @ link.com
        for link, body in zip(robot.links, bodies, strict=True)
    ]
    return SpringState(
        q,
        qd,
        _array(pos),
        _array([body.rot for body in bodies]),
        _array([body.com for body in bodies]),
        _array([body.vel for body in bodies]),
        _array([body.ang for body in bodies]),
    )


def _array(rows: Sequence[Iterable[Number]]) -> Array:
    rows = [list(row) for row in rows]
    return jnp.stack([jnp.asarray(x, float) for row in rows for x in row]).reshape(len(rows), -1)


def _stays_in_plane(robot: SpringModel, motors: Sequence[list[Motor]]) -> bool:
    """Whether a frame that starts in the xz plane ends there, by what is known while tracing."""
    off_plane = [k for k in SPACE if k not in PLANE]
    still: list[bool] = []

    def probe(numbers: list[Array]) -> list[Array]:
        moved = _advance(robot, _bodies(numbers, PLANE), motors)
        off = [x for body in moved for x in _parts(body, off_plane)]
        still.append(all(isinstance(x, float) and x == 0.0 for x in off))
        return numbers

    jax.eval_shape(probe, [jnp.zeros(())] * (len(PLANE) * len(robot.links)))
    return still[0]


def _joint_coordinates(robot: SpringModel, bodies: Sequence[LinkMotion]) -> tuple[Array, Array]:
    turns = [body.rot.matrix() for body in bodies]
    q: list[Number] = []
    qd: list[Number] = []
    for link, joint, body in zip(robot.links, _joints(robot, bodies, turns), bodies, strict=True):
        if link.kind == "1":
            here, moving = [joint.position()], [joint.velocity()]
        elif link.kind == "f":
            here, moving = _free_coordinates(link, joint, body.rot)
        else:
            here, moving = _planar_coordinates(link, joint, body.rot)
        q, qd = q + here, qd + moving
    return _array([q])[0], _array([qd])[0]


def _free_coordinates(link: Link, joint: Joint, rot: Quat) -> tuple[list[Number], list[Number]]:
    back = (link.rot * link.joint_rot).inverse
    rot = back * rot * link.joint_rot
    home = back.matrix()
    turning = rot.matrix().T @ (home @ joint.spin)
    return [*(home @ joint.gap), *rot], [*(home @ joint.slip), *turning]


def _planar_coordinates(link: Link, joint: Joint, rot: Quat) -> tuple[list[Number], list[Number]]:
    first = joint.on_parent.first
    turned = angle(times(-1.0, first.dot(joint.on_child.second)), first.dot(joint.on_child.first))
    home = (link.rot * link.joint_rot).inverse.matrix()
    inside = (rot * link.joint_rot).inverse.matrix()
    turning = (home @ joint.on_child.axis).dot(inside @ joint.spin)
    slides = link.slides_in_world
    return (
        [*(slide.dot(joint.gap) for slide in slides), turned],
        [*(slide.dot(joint.slip) for slide in slides), turning],
    )


def _forward(robot: SpringModel, q: Array, qd: Array) -> list[LinkMotion]:
    """Joint coordinates to bodies.

    Until the end quaternions are as long as q makes them: Ant's reset does not normalise its own,
    and Brax stretches the robot accordingly.
    """
    found: list[tuple[Vec, Quat, Vec, Vec]] = []
    for link in robot.links:
        pos, rot, vel, ang = _in_joint(link, q, qd)
        pos = pos + link.joint_pos - rot.matrix() @ link.joint_pos
        pos, rot = link.pos + link.rot.matrix() @ pos, link.rot * rot
        if link.parent < 0:
            found.append((pos, rot, vel, rot.matrix() @ ang))
            continue
        parent_pos, parent_rot, parent_vel, parent_ang = found[link.parent]
        turn = parent_rot.matrix()
        offset, rot = turn @ pos, parent_rot * rot
        vel = parent_vel + parent_ang.cross(offset) + turn @ vel
        found.append((parent_pos + offset, rot, vel, parent_ang + rot.matrix() @ ang))
    return [_at_com(link, *each) for link, each in zip(robot.links, found, strict=True)]


def _at_com(link: Link, pos: Vec, rot: Quat, vel: Vec, ang: Vec) -> LinkMotion:
    rot = rot.normalised()
    com = rot.matrix() @ link.com
    return LinkMotion(pos + com, rot, vel + ang.cross(com), ang)


def _in_joint(link: Link, q: Array, qd: Array) -> tuple[Vec, Quat, Vec, Vec]:
    """A joint's position, rotation, velocity and angular velocity in its own coordinates."""
    mine, moving = q[link.q :], qd[link.dof :]
    if link.kind == "f":
        return Vec(*mine[:3]), Quat(*mine[3:7]), Vec(*moving[:3]), Vec(*moving[3:6])
    pos = vel = ZERO
    for k, slide in enumerate(link.slides):
        pos, vel = pos + slide * mine[k], vel + slide * moving[k]
    k = len(link.slides)
    rot = Quat(jnp.cos(0.5 * mine[k]), *(link.hinge.axis * jnp.sin(0.5 * mine[k]))).normalised()
    return pos, rot, vel, link.hinge.axis * moving[k]
