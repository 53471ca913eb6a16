"""The spring physics against Brax's own, step by step from the states that Brax is in."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from slackline.envs import api, spring
from slackline.envs.spring import SpringState
from slackline.errors import SlacklineError

with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")
    from brax.envs.ant import Ant
    from brax.envs.half_cheetah import Halfcheetah
    from brax.spring import pipeline

ROBOTS = {"halfcheetah": Halfcheetah, "ant": Ant}
FEET = {"halfcheetah": (5, 8), "ant": (8, 11, 14, 17)}
VARIED = ("gravity", "geom_friction", "geom_size", "link.inertia.mass", "link.inertia.i")
CHANGES = ("none", "gravity", "friction", "mass", "feet")
NUM_ENVS, NUM_STEPS = 40, 30

FRAME_TOLERANCE = {"q": 2e-6, "x": 2e-6, "velocity": 6e-5}
"""Positions agree to single precision. Joints are springs, so an error of one unit in the last
place of a position (2.4e-7 between 2 m and 4 m) times stiffness × time step / mass (about 70 for
HalfCheetah's foot: 20000 × 0.003125 / 0.92) is an error of 2e-5 in its velocity."""
STEP_TOLERANCE = {"q": 2e-5, "x": 1e-5, "velocity": 2e-3}
"""Over 10 or 16 frames that adds up. A foot within rounding of touching the ground may touch in one
and not in the other, so a few states are allowed to differ more; see `agree`."""


class Replay(NamedTuple):
    """What Brax does, by environment and (but for resets) by step."""

    resets: SpringState
    actions: Any
    before: SpringState
    after_frame: SpringState
    after_step: SpringState


@contextlib.contextmanager
def as_brax_needs_it() -> Iterator[None]:
    """Brax warns of deprecations and promotes ranks and dtypes."""
    with (
        warnings.catch_warnings(),
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
    ):
        warnings.simplefilter("ignore")
        yield


@cache
def robot(name: str) -> Any:
    silence: Any = mujoco
    silence.set_mju_user_warning(lambda _: None)  # else it leaves a log where the tests run
    with as_brax_needs_it():
        return ROBOTS[name](backend="spring")


def from_brax(state: Any) -> SpringState:
    return SpringState(
        state.q, state.qd, state.x.pos, state.x.rot, state.x_i.pos, state.xd_i.vel, state.xd_i.ang
    )


def leaf(sys: Any, path: str) -> Any:
    for part in path.split("."):
        sys = getattr(sys, part)
    return sys


def changed(name: str, change: str) -> dict[str, Any]:
    """What variations change of a robot, after one of them."""
    varied = {path: jnp.asarray(leaf(robot(name).sys, path)) for path in VARIED}
    if change == "gravity":
        varied["gravity"] *= 0.5
    if change == "friction":
        varied["geom_friction"] *= 1.5
    if change == "mass":
        varied["link.inertia.mass"] *= 1.25
        varied["link.inertia.i"] *= 1.25
    if change == "feet":
        feet = np.array(FEET[name])
        varied["geom_size"] = varied["geom_size"].at[feet, 0].multiply(1.25)
    return varied


def mixed(name: str) -> dict[str, Any]:
    """Environments whose systems take turns through the changes."""
    systems = [changed(name, CHANGES[i % len(CHANGES)]) for i in range(NUM_ENVS)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *systems)


@cache
def replay(name: str) -> Replay:
    """Random actions, held for some steps so that joints reach their limits."""
    env = robot(name)

    def one(key: jax.Array, varied: dict[str, Any]) -> Replay:
        sys = env.sys.tree_replace(varied)
        noise_key, action_key, push_key, speed_key = jax.random.split(key, 4)
        noise = jax.random.uniform(noise_key, sys.init_q.shape, minval=-0.1, maxval=0.1)
        speed = jax.random.uniform(speed_key, minval=0.1, maxval=4.0)  # resets of both have 0.1
        push = speed * jax.random.normal(push_key, (sys.qd_size(),))
        state = pipeline.init(sys, sys.init_q + noise, push)
        size = (NUM_STEPS // 5, env.sys.act_size())
        held = jax.random.uniform(action_key, size, minval=-1.3, maxval=1.3)
        actions = jnp.repeat(held, 5, axis=0)

        def frame(state: Any, action: jax.Array) -> tuple[Any, SpringState]:
            state = pipeline.step(sys, state, action)
            return state, from_brax(state)

        def step(state: Any, action: jax.Array) -> tuple[Any, Any]:
            last, frames = jax.lax.scan(frame, state, jnp.stack([action] * env._n_frames))
            return last, (from_brax(state), jax.tree.map(lambda leaf: leaf[0], frames))

        last, (before, after_frame) = jax.lax.scan(step, state, actions)
        after_step = jax.tree.map(
            lambda all_but_last, end: jnp.concatenate([all_but_last[1:], end[None]]),
            before,
            from_brax(last),
        )
        return Replay(from_brax(state), actions, before, after_frame, after_step)

    keys = jax.random.split(jax.random.key(0), NUM_ENVS)
    with as_brax_needs_it():
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(keys, mixed(name)))


@cache
def our_step(name: str) -> Any:
    """Steps of every environment from every state of its replay, each with its own system.

    The number of frames is an argument, so that one program does for a frame and for a step.
    """

    def one(varied: Any, state: SpringState, action: jax.Array, num_frames: jax.Array) -> Any:
        sys = robot(name).sys.tree_replace(varied)
        sys = sys.replace(gravity=api.mixed(np.zeros(3), (2,), [varied["gravity"][2]]))
        return spring.step(sys, state, action, num_frames)

    each_step = jax.vmap(one, in_axes=(None, 0, 0, None))
    return jax.jit(jax.vmap(each_step, in_axes=(0, 0, 0, None)))


def ours_after(name: str, num_frames: int) -> SpringState:
    found = replay(name)
    return our_step(name)(mixed(name), found.before, found.actions, jnp.int32(num_frames))


def errors(ours: SpringState, theirs: SpringState) -> dict[str, np.ndarray]:
    """The largest error of each state, relative to 1 + the size of what is compared."""

    def error(field: str) -> np.ndarray:
        a, b = (np.asarray(getattr(state, field)) for state in (ours, theirs))
        off = np.abs(a - b)
        if field == "q":  # an angle may be read as π or −π
            off = np.minimum(off, np.abs(2 * np.pi - off))
        off = off / (1.0 + np.abs(b))
        return off.reshape(*off.shape[:2], -1).max(axis=-1)

    return {
        "q": error("q"),
        "x": np.maximum.reduce([error("x_pos"), error("x_rot"), error("com")]),
        "velocity": np.maximum.reduce([error("qd"), error("vel"), error("ang")]),
    }


def agree(
    ours: SpringState, theirs: SpringState, tolerance: dict[str, float], apart: float
) -> None:
    """All but a fraction `apart` of states agree."""
    for what, off in errors(ours, theirs).items():
        assert np.isfinite(off).all()
        assert (off > tolerance[what]).mean() <= apart, (what, np.quantile(off, [0.5, 0.99, 1.0]))


@pytest.mark.parametrize("name", ROBOTS)
def test_a_frame_is_as_brax_makes_it(name: str) -> None:
    agree(ours_after(name, 1), replay(name).after_frame, FRAME_TOLERANCE, apart=0.0)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_step_is_as_brax_makes_it(name: str) -> None:
    ours = ours_after(name, robot(name)._n_frames)
    agree(ours, replay(name).after_step, STEP_TOLERANCE, apart=0.005)


def test_halfcheetah_is_computed_in_its_plane() -> None:
    """Brax's own leaves it by rounding errors."""
    found = ours_after("halfcheetah", 1)
    off_plane = [
        found.x_pos[..., 1],
        found.vel[..., 1],
        found.x_rot[..., 1::2],
        found.ang[..., ::2],
    ]
    assert all((np.asarray(part) == 0.0).all() for part in off_plane)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_replay_visits_contacts_limits_and_speed(name: str) -> None:
    """Else the tests above would compare too little."""
    states, sys = replay(name).before, robot(name).sys
    assert states.q.shape[0] * states.q.shape[1] >= 1000
    low, high = (np.asarray(side)[-6:] for side in sys.dof.limit)
    joints = states.q[..., -6:]
    assert (joints < low).any(axis=(0, 1)).mean() > 0.6
    assert (joints > high).any(axis=(0, 1)).mean() > 0.6
    assert np.abs(states.vel).max() > 5.0
    assert np.abs(states.ang).max() > 10.0
    for foot in FEET[name]:
        assert touches(states, sys, foot).mean() > 0.05


def touches(states: SpringState, sys: Any, geom: int) -> np.ndarray:
    """Whether the lower end of a foot is below the ground."""
    link = int(sys.geom_bodyid[geom]) - 1
    w, x, y, z = np.moveaxis(np.asarray(states.x_rot)[:, :, link], -1, 0)
    down = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z], -1)
    half = np.array([0.0, 0.0, float(sys.geom_size[geom, 1])])
    v, u = float(sys.geom_quat[geom, 0]), np.asarray(sys.geom_quat[geom, 1:])
    end = half + 2 * np.cross(u, np.cross(u, half) + v * half)
    centre = np.asarray(sys.geom_pos[geom])
    heights = [down @ (centre + e) for e in (end, -end)]
    lowest = np.asarray(states.x_pos)[:, :, link, 2] + np.minimum(heights[0], heights[1])
    return lowest < float(sys.geom_size[geom, 0])


@pytest.mark.parametrize("name", ROBOTS)
def test_a_reset_is_as_brax_makes_it(name: str) -> None:
    theirs = replay(name).resets
    reset = jax.vmap(lambda q, qd: spring.init(robot(name).sys, q, qd))
    with jax.disable_jit():
        ours = reset(jnp.asarray(theirs.q), jnp.asarray(theirs.qd))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=2e-6)


@pytest.mark.usefixtures("strict_dtypes")
@pytest.mark.parametrize("name", ROBOTS)
def test_what_is_known_while_tracing_only_saves_work(name: str) -> None:
    """All of the system is traced. Without compiling, which takes long if nothing is known."""
    found = replay(name)
    state, theirs, action = jax.tree.map(
        lambda leaf: jnp.asarray(leaf[:, -1]), (found.before, found.after_frame, found.actions)
    )
    base = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * NUM_ENVS), robot(name).sys)
    systems = base.tree_replace(mixed(name))

    def one(sys: Any, state: SpringState, action: jax.Array) -> SpringState:
        return spring.step(sys, state, action, 1)

    with jax.disable_jit():
        ours = jax.vmap(one)(systems, state, action)
    agree(with_step_axis(ours), with_step_axis(theirs), FRAME_TOLERANCE, apart=0.0)


def with_step_axis(state: SpringState) -> SpringState:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:, None], state)


def test_angles() -> None:
    around = np.linspace(-np.pi, np.pi, 4001)[1:-1]
    radii = np.array([1e-6, 0.3, 1.0, 7.0])[:, None]
    sine, cosine = ((radii * f(around)).astype(np.float32) for f in (np.sin, np.cos))
    expected = np.arctan2(sine.astype(np.float64), cosine)
    found = spring.angle(jnp.asarray(sine), jnp.asarray(cosine))
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-12)
    literal = spring.angle(jnp.array([0.0, 0.0, 1.0, -1.0]), jnp.array([0.0, -1.0, 0.0, 0.0]))
    np.testing.assert_allclose(literal, [0.0, np.pi, 0.5 * np.pi, -0.5 * np.pi], rtol=1e-6)


def test_arithmetic_leaves_out_what_is_known() -> None:
    x = jnp.float32(3.0)
    assert spring.times(0.0, x) == 0.0
    assert isinstance(spring.times(x, 0.0), float)
    assert spring.times(1.0, x) is x
    assert spring.plus(0.0, x) is x
    assert spring.minus(x, 0.0) is x
    assert spring.minus(0.0, x) == -3.0
    assert spring.power(x, 0.0) == 1.0
    assert spring.within(x, -np.inf, np.inf) is x
    assert spring.within(x, -1.0, 2.0) == 2.0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"enable_fluid": True}, "fluid"),
        ({"link_types": "2111111"}, "link 0"),
        ({"geom_conaffinity": np.ones(9, np.int32)}, "contacts other than"),
        ({"geom_type": np.array([0, 3, 3, 3, 3, 6, 3, 3, 3])}, "contacts other than"),
        ({"geom_priority": np.arange(9)}, "priority"),
        ({"jnt_limited": np.ones(9, bool)}, "limits"),
        ({"actuator_trnid": np.zeros((6, 2), np.int32)}, "actuators"),
        ({"npair": 1}, "contacts listed"),
    ],
)
def test_refuses_what_it_would_get_wrong(change: dict[str, Any], complaint: str) -> None:
    sys = robot("halfcheetah").sys.replace(**change)
    with pytest.raises(SlacklineError, match=complaint):
        spring.init(sys, jnp.zeros(9), jnp.zeros(9))
