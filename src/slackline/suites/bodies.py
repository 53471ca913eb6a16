"""What can be changed about a Brax robot and its world, each by a free factor.

Each function returns a function from parameters to changed parameters, so changes can be chained
and given to `line.adapt` as they are: `line.adapt(gravity(0.8))`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import jax.numpy as jnp
import numpy as np

from slackline.envs.brax import (
    BACKENDS,
    Ant,
    Array,
    BraxParams,
    HalfCheetah,
    Robot,
    System,
    compiled,
    long_axis,
)
from slackline.envs.mjcf import PARTS
from slackline.envs.spring import WIDTHS
from slackline.errors import SlacklineError, require_count, require_number, unknown
from slackline.suites.suite import Protocol, Suite, Variation

BLOCK = 128
"""Robots stepped together when policies are evaluated; see benchmarks/spring.py."""

TORSO = 0
"""The torso's number among the links of both robots."""

LONG = 2
"""A link's long axis in its inertial frame, whose axes MuJoCo orders by moments, largest first."""
STIFF = 10_000.0
"""N m per radian that hold a locked joint: a motor of either robot bends it by less than 1°."""

Change = Callable[[BraxParams], BraxParams]


def gravity(factor: float) -> Change:
    """Gravity × factor."""
    return _scaled("gravity", factor, ("gravity", "opt.gravity"))


def friction(factor: float) -> Change:
    """Every friction coefficient × factor.

    A contact has the larger coefficient of the two that touch, so floor and robot both change.
    """
    return _scaled("friction", factor, ("geom_friction",))


def part_size(part: str, factor: float, *, softened: bool = False) -> Change:
    """Mass and radius of a part of the half-cheetah × factor; lengths stay.

    Its capsules stay uniform inside and keep their shares of the link's mass, so the centre of
    mass stays where it is and the inertia is that of the new capsules.

    Brax's spring and positional engines integrate powers of mass and inertia, and the change acts
    in full on those: × 1.25 is × 1.25 of what the engine integrates. `softened` multiplies the
    model's own numbers instead, so that the engine softens the change as well (× 1.17).
    """
    if part not in PARTS:
        raise unknown("part", part, PARTS)
    require_number(f"factor of {part}", factor, above=0.0, high=100.0)

    def change(params: BraxParams) -> BraxParams:
        sys = params.sys
        links = _links(sys, part)
        geoms = np.flatnonzero(np.isin(np.asarray(sys.geom_bodyid) - 1, links))
        of_mass, of_inertia = (1.0, 1.0) if softened else powers(sys)
        thicker = [_thicker(sys, link, factor, of_inertia) for link in links]
        inertia = sys.link.inertia
        resized = sys.tree_replace(
            {
                "geom_size": sys.geom_size.at[geoms, 0].multiply(factor),
                "link.inertia.mass": inertia.mass.at[links].multiply(factor ** (1.0 / of_mass)),
                "link.inertia.i": inertia.i.at[links].set(np.array(thicker, np.float32)),
            }
        )
        return params._replace(sys=_with_invweights(resized, sys))

    return change


def powers(sys: System) -> tuple[float, float]:
    """The powers of mass and inertia that the engine integrates."""
    return 1.0 - float(sys.spring_mass_scale), 1.0 - float(sys.spring_inertia_scale)


def _thicker(sys: System, link: int, factor: float, power: float) -> np.ndarray:
    """The inertia (3, 3) to write into the model for mass and radii × factor.

    Its `power` changes by the true ratio of the capsules' inertias. Engines that take a power of an
    inertia take that of its diagonal, and read nothing else. About its long axis, about which the
    half-cheetah's joints do not turn it, the engine softens the change: joints are stiff springs,
    and a link that resisted so little would be shaken out of the plane it moves in.
    """
    now = np.asarray(sys.link.inertia.i[link], np.float64)
    old, new = link_inertia(sys, link, 1.0), link_inertia(sys, link, factor)
    if power == 1.0:
        return now + new - old
    across = np.arange(3) != LONG
    ratio = np.diagonal(new) / np.diagonal(old)
    return np.diag(np.diagonal(now) * ratio ** np.where(across, 1.0 / power, 1.0))


def payload(share: float) -> Change:
    """A load at the torso's centre of mass that weighs `share` of the whole robot.

    Of the masses that the engine integrates. Where it takes all for 1, as spring and positional do
    of the ant's, the model is made to say so and then to be taken as it is.
    """
    require_number("share of the payload", share, low=0.0, high=100.0)

    def change(params: BraxParams) -> BraxParams:
        sys = params.sys
        power, mass = powers(sys)[0], np.asarray(sys.link.inertia.mass, np.float64)
        if share == 0.0:
            return params
        felt = mass**power
        loaded = felt + share * felt.sum() * (np.arange(len(felt)) == TORSO)
        if power == 0.0:
            mass, sys = felt, sys.replace(spring_mass_scale=jnp.float32(0.0))
        new = mass * (loaded / felt) ** (1.0 / (power or 1.0))
        heavy = sys.tree_replace({"link.inertia.mass": jnp.asarray(new, jnp.float32)})
        return params._replace(sys=_with_invweights(heavy, sys))

    return change


def slope(degrees: float) -> Change:
    """The floor rises towards +x, where the robots run to: gravity, seen from it, is tilted."""
    require_number("slope", degrees, low=-60.0, high=60.0)
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    turn = np.array([[cosine, 0.0, sine], [0.0, 1.0, 0.0], [-sine, 0.0, cosine]])

    def change(params: BraxParams) -> BraxParams:
        tilted = {
            path: jnp.asarray(turn @ np.asarray(_leaf(params.sys, path), np.float64), jnp.float32)
            for path in ("gravity", "opt.gravity")
        }
        return params._replace(sys=params.sys.tree_replace(tilted))

    return change


def locked_joint(motor: int) -> Change:
    """The joint of one motor stays where it is in the robot's first pose.

    Both of its limits are there. They are springs, so hard blows move it by a few degrees, and what
    a reset's noise moved it by it swings back. Motors are numbered as actions are.
    """

    def change(params: BraxParams) -> BraxParams:
        sys = params.sys
        require_count("motor", motor, low=0, high=len(sys.actuator.qd_id) - 1)
        dof, rest = int(sys.actuator.qd_id[motor]), sys.init_q[sys.actuator.q_id[motor]]
        link = np.repeat(np.arange(sys.num_links()), [WIDTHS[k][1] for k in sys.link_types])[dof]
        low, high = sys.dof.limit
        stiffness = sys.link.constraint_limit_stiffness
        held = {
            "dof.limit": (low.at[dof].set(rest), high.at[dof].set(rest)),
            "link.constraint_limit_stiffness": stiffness.at[link].max(STIFF),
        }
        return params._replace(sys=sys.tree_replace(held))

    return change


def dead_sensors(fraction: float, seed: int = 0) -> Change:
    """A share of the observation is always 0; the robot itself is as it was.

    round(fraction × size) of the sensors die, at least one unless fraction is 0; which ones is
    drawn by `np.random.default_rng(seed)`.
    """
    require_number("fraction of dead sensors", fraction, low=0.0, high=1.0)
    require_count("seed of dead sensors", seed, low=0, high=2**32 - 1)

    def change(params: BraxParams) -> BraxParams:
        dead = drawn_dead(fraction, params.sensors.shape[-1], seed)
        return params._replace(sensors=params.sensors.at[dead].set(0.0))

    return change


def drawn_dead(fraction: float, size: int, seed: int) -> np.ndarray:
    """Which of `size` sensors are dead."""
    count = max(1, round(fraction * size)) if fraction > 0.0 else 0
    return np.random.default_rng(seed).choice(size, count, replace=False)


def robot_suite(robot: type[Robot], engine: str, **rest: Any) -> Suite:
    """A robot on one of Brax's engines: what HalfCheetah's and Ant's suites have in common."""
    bare = engine == BACKENDS[0]
    name, title = robot.__name__.lower(), robot.__name__
    return Suite(
        name=name if bare else f"{name}-{engine}",
        title=title if bare else f"{title}, {engine} physics",
        env=robot(engine),
        horizon=1000,
        protocol=Protocol(steps=10_000_000, shots=10, episodes=1, score_episodes=10),
        block=BLOCK,
        **rest,
    )


def times(name: str, what: str, factor: float, change: Callable[[float], Any]) -> Variation:
    """A variation that multiplies something."""
    return Variation(name, f"{what} × {factor:g}", change(factor))


def link_inertia(sys: System, link: int, factor: float) -> np.ndarray:
    """The inertia (3, 3) of a link with mass and radii × factor, in its inertial frame.

    Of uniform capsules that share the link's mass by the volumes they have now, about the link's
    centre of mass.
    """
    geoms = np.flatnonzero(np.asarray(sys.geom_bodyid) - 1 == link)
    radius, half = np.asarray(sys.geom_size, np.float64)[geoms, :2].T
    volume = _volume(radius, half)
    mass = factor * volume / volume.sum() * float(sys.link.inertia.mass[link])
    centre = np.asarray(sys.link.inertia.transform.pos, np.float64)[link]
    offset = np.asarray(sys.geom_pos, np.float64)[geoms] - centre
    axis = long_axis(np.asarray(sys.geom_quat, np.float64)[geoms])
    along, across = _capsule_inertia(mass, factor * radius, half)
    eye = np.eye(3)
    total = np.zeros((3, 3))
    for a, d, m, i, j in zip(axis, offset, mass, along, across, strict=True):
        total += i * np.outer(a, a) + j * (eye - np.outer(a, a))
        total += m * (d @ d * eye - np.outer(d, d))
    frame = _rotation(np.asarray(sys.link.inertia.transform.rot[link], np.float64))
    return frame.T @ total @ frame


def _volume(radius: np.ndarray, half: np.ndarray) -> np.ndarray:
    return math.pi * radius**2 * (2.0 * half + 4.0 / 3.0 * radius)


def _capsule_inertia(
    mass: np.ndarray, radius: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """About the long axis, and about any axis across it: a cylinder and two half balls."""
    ball = mass * 4.0 / 3.0 * math.pi * radius**3 / _volume(radius, half)
    cylinder = mass - ball
    along = (cylinder / 2.0 + ball * 2.0 / 5.0) * radius**2
    across = cylinder * (radius**2 / 4.0 + half**2 / 3.0) + ball * (
        2.0 / 5.0 * radius**2 + half**2 + 3.0 / 4.0 * radius * half
    )
    return along, across


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """The matrix (3, 3) of a quaternion, scalar first."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _scaled(what: str, factor: float, paths: tuple[str, ...]) -> Change:
    require_number(f"factor of {what}", factor, above=0.0, high=100.0)

    def change(params: BraxParams) -> BraxParams:
        sys = params.sys
        return params._replace(
            sys=sys.tree_replace({path: _leaf(sys, path) * factor for path in paths})
        )

    return change


def _leaf(sys: System, path: str) -> Array:
    for name in path.split("."):
        sys = getattr(sys, name)
    return sys


def _links(sys: System, part: str) -> np.ndarray:
    missing = [name for name in PARTS[part] if name not in sys.link_names]
    if missing or "bfoot" not in sys.link_names:
        raise SlacklineError(f"part is {part!r}; only the half-cheetah has the parts this changes")
    return np.array([sys.link_names.index(name) for name in PARTS[part]])


def _with_invweights(sys: System, before: System) -> System:
    """With the inverse weights (how easily links and joints move at rest) of the new masses.

    Only the generalized backend reads them, to scale the softness of contacts and limits.
    """
    (link, dof), (link_before, dof_before) = _invweights(sys), _invweights(before)
    return sys.tree_replace(
        {
            "link.invweight": sys.link.invweight * jnp.float32(link / link_before),
            "dof.invweight": sys.dof.invweight * jnp.float32(dof / dof_before),
        }
    )


def _invweights(sys: System) -> tuple[np.ndarray, np.ndarray]:
    """As MuJoCo works them out for the masses and inertias of `sys`."""
    mujoco: Any = import_module("mujoco")
    robot = HalfCheetah if "bfoot" in sys.link_names else Ant
    model = copy.copy(compiled(robot.asset))
    model.body_mass[1:] = sys.link.inertia.mass
    model.body_inertia[1:] = np.diagonal(sys.link.inertia.i, axis1=-2, axis2=-1)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model.body_invweight0[1:, 0], model.dof_invweight0
