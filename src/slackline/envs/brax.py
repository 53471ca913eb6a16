"""Brax's HalfCheetah and Ant, on the contract of `envs/api.py`.

Reset, observation, reward and termination are those of Brax 0.14.2's own environments with their
default arguments; the tests replay them against Brax. Brax itself is imported by the first
`default_params`, so naming these environments costs nothing.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs import spring
from slackline.envs.api import Continuous, Env, whole
from slackline.envs.view import Bones, Skeleton, View
from slackline.errors import needed, unknown
from slackline.types import Array

BACKENDS = ("spring", "positional", "generalized")
"""Brax's physics engines; the first, by far the fastest, is meant by a robot's bare name."""

RESET_NOISE = 0.1
"""Half-width of the uniform noise on positions, and standard deviation of that on velocities."""

System = Any
"""A `brax.base.System`."""


class BraxParams(NamedTuple):
    """The robot with its world, and which of its sensors work."""

    sys: System
    sensors: Array
    """(observation_size,) that multiplies the observation: 1 alive, 0 dead."""


class Engine(NamedTuple):
    """Physics as the environments use it. A state has `q` and `qd`; the rest is the engine's."""

    init: Callable[[System, Array, Array], Any]
    """(system, q, qd) to a state."""
    step: Callable[[System, Any, Array, int], Any]
    """(system, state, action, number of frames) to the state that many frames later."""
    pose: Callable[[Any], tuple[Array, Array]]
    """A state to its links' positions (L, 3) and quaternions (L, 4) in the world."""


@dataclass(frozen=True)
class Robot(Env):
    """What the two robots share; equal and hashed by value, because environments are jit-static."""

    backend: str = "spring"

    asset: ClassVar[str]
    """The robot's file among Brax's assets."""
    hidden_positions: ClassVar[int]
    """How many leading coordinates the observation leaves out: where the robot is."""
    frames: ClassVar[dict[str, int]]
    """Physics steps in one step of the environment, by backend."""
    time_step: ClassVar[dict[str, float]] = {}
    """Of the physics, where it is not the asset's."""
    gear: ClassVar[dict[str, tuple[float, ...]]] = {}
    """Of the motors, where it is not the asset's."""

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise unknown("backend", self.backend, BACKENDS)

    @property
    def reads_elements(self) -> bool:  # type: ignore[override]
        return self.backend == "spring"

    def default_params(self) -> BraxParams:
        return _default_params(type(self), self.backend)

    def reset(self, key: Array, params: BraxParams) -> tuple[Array, Any]:
        _, position_key, velocity_key = jax.random.split(key, 3)  # Brax's own use of the key
        sys = params.sys
        noise = jax.random.uniform(position_key, (sys.nq,), minval=-RESET_NOISE, maxval=RESET_NOISE)
        velocity = RESET_NOISE * jax.random.normal(velocity_key, (sys.nv,))
        state = engine_of(self.backend).init(sys, whole(sys.init_q) + noise, velocity)
        return self.observe(state, params), state

    def step(
        self, key: Array, state: Any, action: Array, params: BraxParams
    ) -> tuple[Array, Any, Array, Array]:
        num_frames = self.frames[self.backend]

        def advance(state: Any) -> tuple[Array, Any, Array, Array]:
            after = engine_of(self.backend).step(params.sys, state, action, num_frames)
            moved = self.pose(after)[0][0] - self.pose(state)[0][0]
            speed = moved[0] / (params.sys.opt.timestep * num_frames)
            reward = self.reward(speed, action)
            return self.observe(after, params), after, reward, self.fallen(after)

        if self.backend != "spring" or jax.default_backend() != "cpu":
            return advance(state)
        # A loop is one kernel (see runtime.py); without it, between the policy's matrix products, a
        # step would be a hundred small ones. XLA unrolls loops that it knows to turn only once.
        once = jax.lax.optimization_barrier(jnp.int32(1))
        before = jnp.zeros(self.observation_size), state, jnp.zeros(()), jnp.zeros((), bool)
        return jax.lax.fori_loop(0, once, lambda _, now: advance(now[1]), before)

    def observe(self, state: Any, params: BraxParams) -> Array:
        seen = jnp.concatenate([state.q[self.hidden_positions :], state.qd])
        return seen * whole(params.sensors)

    def pose(self, state: Any) -> tuple[Array, Array]:
        """The links' positions (L, 3) and quaternions (L, 4), scalar first, in the world."""
        return engine_of(self.backend).pose(state)

    def bones(self, params: BraxParams) -> Bones:
        """What the robot looks like; the floor is left out."""
        sys = params.sys
        ours = np.flatnonzero(np.asarray(sys.geom_bodyid) > 0)
        size = np.asarray(sys.geom_size)[ours]
        half = long_axis(np.asarray(sys.geom_quat)[ours]) * size[:, 1:2]
        centre = np.asarray(sys.geom_pos)[ours]
        link = np.asarray(sys.geom_bodyid)[ours] - 1
        return Bones(link, centre - half, centre + half, size[:, 0])

    def view(self) -> View:
        frames = self.frames[self.backend]
        return View(
            Skeleton(self.bones, self.pose), lambda params: float(params.sys.opt.timestep) * frames
        )

    def reward(self, speed: Array, action: Array) -> Array:
        raise NotImplementedError

    def fallen(self, state: Any) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class HalfCheetah(Robot):
    """Observation: height, pitch and six joint angles, then the nine velocities.

    Reward: forward speed − 0.1 |action|². It never terminates.
    """

    observation_size = 17
    action = Continuous(6)
    asset = "half_cheetah.xml"
    hidden_positions = 1
    frames = {"spring": 16, "positional": 16, "generalized": 5}  # noqa: RUF012
    time_step = {"spring": 0.003125, "positional": 0.003125}  # noqa: RUF012
    gear = dict.fromkeys(("spring", "positional"), (120.0, 90.0, 60.0, 120.0, 100.0, 100.0))

    def reward(self, speed: Array, action: Array) -> Array:
        return speed - 0.1 * jnp.sum(action**2)

    def fallen(self, state: Any) -> Array:
        return jnp.zeros((), bool)


@dataclass(frozen=True)
class Ant(Robot):
    """Observation: height, orientation and eight joint angles, then the fourteen velocities.

    Reward: 1 + forward speed − 0.5 |action|². It terminates when the torso's height leaves
    [0.2, 1.0].
    """

    observation_size = 27
    action = Continuous(8)
    asset = "ant.xml"
    hidden_positions = 2
    frames = {"spring": 10, "positional": 10, "generalized": 5}  # noqa: RUF012
    time_step = {"spring": 0.005, "positional": 0.005}  # noqa: RUF012
    gear = {"positional": (200.0,) * 8}  # noqa: RUF012

    def reward(self, speed: Array, action: Array) -> Array:
        return 1.0 + speed - 0.5 * jnp.sum(action**2)

    def fallen(self, state: Any) -> Array:
        height = self.pose(state)[0][0, 2]
        return (height < 0.2) | (height > 1.0)


_OVERWRITTEN = {
    "positional": ("contact", "xd"),
    "generalized": ("contact", "xd", "mass_mx", "qf_smooth", "qf_constraint", "qdd"),
}
"""Fields of a Brax state that a step writes before it reads them: nothing to carry."""


@lru_cache
def engine_of(backend: str) -> Engine:
    """The physics behind a backend's name; spring's is our own, which agrees with Brax's."""
    if backend == "spring":
        return Engine(spring.init, spring.step, lambda state: (state.x_pos, state.x_rot))
    with quiet_brax():
        pipeline = import_module(f"brax.{backend}.pipeline")
    unread = dict.fromkeys(_OVERWRITTEN[backend])

    def init(sys: System, q: Array, qd: Array) -> Any:
        with quiet_brax():
            return pipeline.init(sys, q, qd).replace(**unread)

    def step(sys: System, state: Any, action: Array, num_frames: int) -> Any:
        def frame(state: Any, _: None) -> tuple[Any, None]:
            return pipeline.step(sys, state, action).replace(**unread), None

        with quiet_brax():
            return jax.lax.scan(frame, state, None, num_frames)[0]

    return Engine(init, step, lambda state: (state.x.pos, state.x.rot))


@contextlib.contextmanager
def quiet_brax() -> Iterator[None]:
    """Use Brax without its messages on the user's screen.

    Importing it prints that Warp is missing, and it warns that it and JAXopt are no longer
    maintained. It also broadcasts freely, which JAX's strict mode (our tests') would refuse.
    """
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        jax.numpy_rank_promotion("allow"),
    ):
        warnings.simplefilter("ignore")
        yield


_READ = {
    *("opt", "gravity", "link", "dof", "actuator", "init_q", "qpos0", "elasticity"),
    *("geom_friction", "geom_margin", "geom_pos", "geom_quat", "geom_size"),
    *("geom_solimp", "geom_solmix", "geom_solref", "vel_damping", "ang_damping"),
    *("baumgarte_erp", "spring_mass_scale", "spring_inertia_scale"),
    *("joint_scale_ang", "joint_scale_pos", "collide_scale"),
}
"""The arrays of a system that the three backends read."""


@lru_cache
def _default_params(robot: type[Robot], backend: str) -> BraxParams:
    # The first call may come from inside a trace, and what is cached must not be its tracers.
    with jax.ensure_compile_time_eval():
        sys = load(robot.asset)
        if backend in robot.time_step:
            sys = sys.tree_replace({"opt.timestep": robot.time_step[backend]})
        if backend in robot.gear:
            sys = sys.tree_replace({"actuator.gear": np.array(robot.gear[backend], np.float32)})
        if backend == "generalized":  # integrates masses as they are, whatever the asset says
            sys = sys.replace(spring_mass_scale=0.0, spring_inertia_scale=0.0)
        return BraxParams(slim(sys), jnp.ones(robot.observation_size))


def load(asset: str) -> System:
    """The system in one of Brax's files."""
    model = copy.copy(compiled(asset))  # Brax writes into the model it is given
    with quiet_brax():
        return import_module("brax.io.mjcf").load_model(model)


@lru_cache
def compiled(asset: str) -> Any:
    """One of Brax's files as MuJoCo compiles it; not to be written into."""
    with quiet_brax():
        sentence = f"{Path(asset).stem} needs Brax"
        mujoco, mjcf = (needed(name, sentence, "brax") for name in ("mujoco", "brax.io.mjcf"))
        # MuJoCo would put its word on a deprecated attribute on the screen and into a log file.
        handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda _: None)
        try:
            return mjcf.load_mjmodel(files("brax") / "envs" / "assets" / asset)
        finally:
            mujoco.set_mju_user_warning(handler)


def slim(sys: System) -> System:
    """Without what no backend reads, so that a change made to a system cannot miss a copy.

    What is left stacks, compares and hashes as jit needs it.
    """
    leaves = {f.name: jax.tree.leaves(getattr(sys, f.name)) for f in fields(sys)}
    arrays = {name for name, found in leaves.items() if found and isinstance(found[0], jax.Array)}
    sys = sys.replace(**dict.fromkeys(arrays - _READ))
    sys = sys.replace(mj_model=None, link_names=tuple(sys.link_names))
    return jax.tree.map(_strong, sys)


def _strong(leaf: Any) -> Array:
    """An array of a definite type: weakly typed ones would make the second call compile anew."""
    leaf = np.asarray(leaf)
    return jnp.asarray(leaf.astype(np.float32) if leaf.dtype == np.float64 else leaf)


def long_axis(quaternion: np.ndarray) -> np.ndarray:
    """Where quaternions (G, 4), scalar first, turn the z axis to: (G, 3)."""
    w, x, y, z = quaternion.T
    return np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=-1)
