"""HalfCheetah and Ant against Brax's own environments and against the laws of motion."""

from __future__ import annotations

import subprocess
import sys
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer

from slackline.envs import brax as ours
from slackline.envs.api import Continuous
from slackline.envs.brax import (
    BACKENDS,
    Ant,
    BraxParams,
    HalfCheetah,
    Robot,
    engine_of,
    quiet_brax,
    slim,
)
from slackline.errors import SlacklineError
from slackline.suites.bodies import PARTS, dead_sensors, friction, gravity, part_size
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN, Suite, Variation
from slackline.types import Array

ROBOTS: list[Robot] = [kind(backend) for kind in (HalfCheetah, Ant) for backend in BACKENDS]
SUITES = [
    f"{robot}{engine}"
    for robot in ("halfcheetah", "ant")
    for engine in ("", "-positional", "-generalized")
]
FACTORS = {"Tiny": 0.5, "Small": 0.75, "Big": 1.25, "Huge": 1.5}
NUM_STEPS = 20


@cache
def theirs(env: Robot) -> Any:
    """Brax's own environment."""
    module, name = {
        HalfCheetah: ("half_cheetah", "Halfcheetah"),
        Ant: ("ant", "Ant"),
    }[type(env)]
    with quiet_brax():
        mujoco = import_module("mujoco")
        mujoco.set_mju_user_warning(lambda _: None)
        try:
            return getattr(import_module(f"brax.envs.{module}"), name)(backend=env.backend)
        finally:
            mujoco.set_mju_user_warning(None)


@pytest.mark.parametrize("env", ROBOTS, ids=str)
def test_the_system_is_brax_s(env: Robot) -> None:
    """Every array that the physics reads, and how often it is stepped."""
    sys, reference = env.default_params().sys, theirs(env)
    assert env.frames[env.backend] == reference._n_frames
    assert env.action == Continuous(reference.action_size)
    with quiet_brax():
        expected = slim(reference.sys)
    if env.backend == "generalized":  # which does not read them; see bodies.powers
        zero = jnp.float32(0.0)
        expected = expected.replace(spring_mass_scale=zero, spring_inertia_scale=zero)
    assert jax.tree.structure(sys) == jax.tree.structure(expected)
    for leaf, other in zip(jax.tree.leaves(sys), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(leaf, other)


@pytest.mark.parametrize("env", ROBOTS, ids=str)
def test_resets_as_brax_does(env: Robot) -> None:
    keys = jax.random.split(jax.random.key(3), 5)
    params = env.default_params()
    observations = jax.jit(jax.vmap(lambda key: env.reset(key, params)[0]))(keys)
    with quiet_brax():
        expected = jax.jit(jax.vmap(lambda key: theirs(env).reset(key).obs))(keys)
    assert observations.shape == (5, env.observation_size)
    np.testing.assert_array_equal(observations, expected)


def everything(found: Suite) -> list[Variation]:
    return [TRAIN, *found.variations, *found.extras]


def factor_of(name: str, what: str) -> float:
    """What the variation's name says of gravity, friction or a part: 1 if nothing."""
    return next((f for size, f in FACTORS.items() if name == size + what), 1.0)


class Course(NamedTuple):
    """What V robots did."""

    state: Any
    """At the end."""
    seen: Array
    """(V, time, …), and so are the next ones."""
    reward: Array
    terminated: Array
    pos: Array
    rot: Array

    @property
    def torso(self) -> np.ndarray:
        """(V, time, 3)"""
        return np.asarray(self.pos)[:, :, 0]


@cache
def laboratory(name: str) -> Any:
    """(params, q, qd) of V robots and one plan of actions, to their course.

    Programs take seconds to compile: all tests of a suite use this one.
    """
    env: Any = suite(name).jax_env
    engine = engine_of(env.backend)

    def follow(params: BraxParams, q: Array, qd: Array, plan: Array) -> Course:
        def step(state: Any, action: Array) -> Any:
            seen, state, *judged = env.step(jax.random.key(0), state, action, params)
            return state, (seen, *judged, *env.pose(state))

        state, rest = jax.lax.scan(step, engine.init(params.sys, q, qd), plan)
        return Course(state, *rest)

    return jax.jit(jax.vmap(follow, in_axes=(0, 0, 0, None)))


def plan_of(name: str, strength: float) -> Array:
    action = suite(name).jax_env.action
    assert isinstance(action, Continuous)
    plan = np.random.default_rng(0).uniform(-strength, strength, (NUM_STEPS, action.size))
    return jnp.asarray(plan, jnp.float32)


def experiment(
    name: str, params: Any = None, lift: float = 0.0, push: float = 0.0, strength: float = 0.0
) -> Course:
    """All variations (or those `params`) from the same start, lifted and pushed forward."""
    found = suite(name)
    params = found.params_of(everything(found)) if params is None else params
    sys = found.jax_env.default_params().sys
    height = 1 if name.startswith("half") else 2
    num = len(everything(found))
    q = jnp.tile(sys.init_q.at[height].add(lift), (num, 1))
    qd = jnp.tile(jnp.zeros(sys.nv).at[0].set(push), (num, 1))
    return laboratory(name)(params, q, qd, plan_of(name, strength))


def starts(name: str) -> tuple[Array, Array]:
    """Several as after a reset, one high in the air, one in the floor: q (V, nq) and qd (V, nv)."""
    found = suite(name)
    sys, num = found.jax_env.default_params().sys, len(everything(found))
    generator = np.random.default_rng(5)
    q = np.asarray(sys.init_q) + generator.uniform(-0.1, 0.1, (num, sys.nq))
    q[1:3, 1 if name.startswith("half") else 2] += [0.7, -0.4]
    qd = generator.normal(0.0, 0.1, (num, sys.nv))
    return jnp.asarray(q, jnp.float32), jnp.asarray(qd, jnp.float32)


def follow_theirs(env: Any, q: Array, qd: Array, plan: Array) -> Any:
    reference = theirs(env)
    blank = jax.eval_shape(reference.reset, jax.random.key(0))
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), blank)

    def step(state: Any, action: Array) -> tuple[Any, Any]:
        state = reference.step(state, action)
        x = state.pipeline_state.x
        return state, (state.obs, state.reward, state.done == 1.0, x.pos, x.rot)

    return jax.lax.scan(step, blank.replace(pipeline_state=reference.pipeline_init(q, qd)), plan)[1]


@pytest.mark.parametrize(
    "name",
    [
        "halfcheetah",
        "halfcheetah-generalized",
        "ant-positional",
        # Every backend and both robots are among the first three.
        *(pytest.param(name, marks=pytest.mark.slow) for name in SUITES[1:5:2] + SUITES[5:]),
    ],
)
def test_steps_as_brax_does(name: str) -> None:
    """Observation, reward, termination and poses, with some actions beyond the limits."""
    found = suite(name)
    params = found.params_of([TRAIN for _ in everything(found)])
    (q, qd), plan = starts(name), plan_of(name, 1.5)
    course = laboratory(name)(params, q, qd, plan)
    follow = jax.vmap(partial(follow_theirs, found.env), in_axes=(0, 0, None))
    with quiet_brax():
        expected = jax.jit(follow)(q[:3], qd[:3], plan)
    for one, other in zip(course[1:], expected, strict=True):
        assert one.dtype == other.dtype
        # Contacts amplify rounding by a little more at every step.
        np.testing.assert_allclose(one[:3, :8], other[:, :8], rtol=1e-3, atol=1e-3)
    assert np.asarray(course.terminated).any() == name.startswith("ant")


def test_the_ant_falls_where_brax_says() -> None:
    """Healthy between 0.2 and 1.0, both included."""
    env = Ant()
    sys = env.default_params().sys
    heights = jnp.array([0.19, 0.2, 1.0, 1.01])
    starts = jnp.tile(sys.init_q, (4, 1)).at[:, 2].set(heights)
    state_of = engine_of(env.backend).init
    fallen = jax.jit(jax.vmap(lambda q: env.fallen(state_of(sys, q, jnp.zeros(sys.nv)))))(starts)
    assert fallen.tolist() == [True, False, False, True]


@pytest.mark.parametrize("name", SUITES)
def test_every_variation_changes_what_happens(name: str) -> None:
    """On every engine, with the start and the actions held fixed."""
    course = experiment(name, strength=0.5)
    seen, torso = np.asarray(course.seen), course.torso
    assert np.isfinite(seen).all()
    for index, variation in enumerate(everything(suite(name))[1:], 1):
        assert (seen[index] != seen[0]).any(), variation.name
        # A dead sensor is in the eye only.
        assert (torso[index] == torso[0]).all() == variation.name.startswith("Defective")


@pytest.mark.parametrize("name", SUITES)
def test_by_a_factor_of_one_nothing_changes(name: str) -> None:
    """Bit for bit, where the robot is after a second."""
    found = suite(name)
    changes = [gravity(1.0), friction(1.0), dead_sensors(0.0)]
    if name.startswith("half"):
        changes += [part_size(part, 1.0) for part in PARTS]
    same = [Variation("same", "", change) for change in changes]
    same += [TRAIN for _ in everything(found)[len(same) :]]
    train = [TRAIN for _ in everything(found)]
    before, after = (experiment(name, found.params_of(v), strength=0.5) for v in (train, same))
    np.testing.assert_array_equal(before.state.q, after.state.q)
    np.testing.assert_array_equal(before.seen, after.seen)


@pytest.mark.parametrize("name", SUITES)
def test_free_fall_is_as_fast_as_gravity_says(name: str) -> None:
    torso = experiment(name, lift=4.0).torso
    dropped = torso[:, 0, 2] - torso[:, NUM_STEPS // 2, 2]
    for variation, ratio in zip(everything(suite(name)), dropped / dropped[0], strict=True):
        expected = factor_of(variation.name, "Gravity")
        # The positional engine damps the fall, a heavy body less, and rounds differences of places.
        loose = 0.03 if "positional" in name else 0.005
        assert ratio == pytest.approx(expected, rel=loose), variation.name


def test_light_parts_stay_in_the_plane() -> None:
    """Computed in space, where rounding pushes them out of it and joints have to hold them."""
    found = suite("halfcheetah")
    light = [Variation(part, "", part_size(part, 0.5)) for part in PARTS]
    light += [TRAIN for _ in everything(found)[len(light) :]]
    course = experiment("halfcheetah", found.params_of(light), lift=4.0)
    assert float(jnp.abs(course.pos[:, : NUM_STEPS // 2, :, 1]).max()) < 1e-3


@pytest.mark.parametrize("name", SUITES)
def test_the_smoother_the_floor_the_further_it_slides(name: str) -> None:
    travelled = experiment(name, push=3.0).torso[:, NUM_STEPS // 2 - 1, 0]
    names = [v.name for v in everything(suite(name))]
    order = ["HugeFriction", "BigFriction", "Train", "SmallFriction", "TinyFriction"]
    distance = [travelled[names.index(variation)] for variation in order]
    assert all(nearer < further for nearer, further in pairwise(distance))
    assert distance[-1] > 1.1 * distance[0]


def test_the_floor_carries_the_weight() -> None:
    """At rest it pushes up with mass × gravity: what both kinds of change are about."""
    from brax.generalized import constraint, dynamics

    name = "halfcheetah-generalized"
    found = suite(name)
    params = found.params_of(everything(found))
    state = experiment(name, params).state
    for _ in range(2):  # until it lies still
        state = laboratory(name)(params, state.q, state.qd, plan_of(name, 0.0)).state

    def support(sys: Any, state: Any) -> Any:
        with quiet_brax():
            smooth = dynamics.forward(sys, state, jnp.zeros(sys.nv))
            return constraint.force(sys, state.replace(qf_smooth=smooth))[1]

    upward = np.asarray(jax.jit(jax.vmap(support))(params.sys, state))
    masses = np.asarray(params.sys.link.inertia.mass).sum(axis=1)
    assert masses[0] == pytest.approx(14.0)
    assert upward[0] == pytest.approx(14.0 * 9.81, rel=0.01)
    for variation, force, mass in zip(everything(found), upward, masses, strict=True):
        weight = mass * 9.81 * factor_of(variation.name, "Gravity")
        assert force == pytest.approx(weight, rel=0.01), variation.name


def test_an_environment_is_its_kind_and_backend() -> None:
    """They are static arguments of jit: equal ones must not compile twice."""
    assert HalfCheetah() == HalfCheetah("spring")
    assert len({HalfCheetah(), HalfCheetah("spring"), HalfCheetah("positional"), Ant()}) == 3
    assert HalfCheetah().default_params() is HalfCheetah("spring").default_params()


def test_an_unknown_backend() -> None:
    with pytest.raises(SlacklineError, match=r"unknown backend 'sprung'.*spring, positional"):
        HalfCheetah("sprung")


def test_without_brax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brax.io.mjcf", None)
    with pytest.raises(SlacklineError, match=r"ant needs Brax: pip install 'slackline-rl\[brax\]'"):
        ours.compiled.__wrapped__("ant.xml")


QUIET = """
import sys
from slackline.suites import FURTHER, NAMES
from slackline.suites.resolve import suite
for name in (*NAMES, *FURTHER):
    suite(name)
assert not {"brax", "mujoco", "jaxopt", "flax"} & set(sys.modules)
env = suite("halfcheetah-generalized").jax_env
assert env.observation_size == 17 and env.action.size == 6
env.default_params()
assert "brax" in sys.modules
"""


def test_brax_comes_late_and_quietly(tmp_path: Path) -> None:
    """Nothing on the screen, no warning, no log file beside the user's."""
    command = [sys.executable, "-W", "error", "-c", QUIET]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


def test_default_params_survive_a_trace() -> None:
    """The learner asks for them while it is being traced; the cache must not keep tracers."""
    ours._default_params.cache_clear()
    jax.jit(lambda: Ant().default_params().sys.init_q)()
    leaves = jax.tree.leaves(Ant().default_params())
    assert not any(isinstance(leaf, Tracer) or leaf.weak_type for leaf in leaves)


def test_dead_sensors_show_zero() -> None:
    env = Ant()
    params = env.default_params()
    alive = np.arange(27) % 3 > 0
    masked = params._replace(sensors=jnp.float32(alive))
    reset = jax.jit(lambda params: env.reset(jax.random.key(0), params)[0])
    np.testing.assert_array_equal(reset(masked), np.where(alive, reset(params), 0.0))


def test_a_state_holds_only_what_the_next_step_reads() -> None:
    for env in ROBOTS:
        params = env.default_params()
        state = jax.eval_shape(env.reset, jax.random.key(0), params)[1]
        assert sum(leaf.size for leaf in jax.tree.leaves(state)) < 1100
        pos, rot = env.pose(state)
        num_links = len(params.sys.link_names)
        assert (pos.shape, rot.shape) == ((num_links, 3), (num_links, 4))


@pytest.mark.parametrize("backend", ["spring", "generalized"])
def test_steps_on_several_devices(backend: str) -> None:
    """Traced inside shard_map as the learner uses it (its stricter checks are beyond JAXopt)."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("device",))
    split = jax.sharding.PartitionSpec("device")

    def step(keys: Array, actions: Array) -> Array:
        def one(key: Array, action: Array) -> Array:
            env = HalfCheetah(backend)
            params = env.default_params()
            _, state = env.reset(key, params)
            return env.step(key, state, action, params)[0]

        return jax.vmap(one)(keys, actions)

    sharded = jax.shard_map(
        step, mesh=mesh, in_specs=(split, split), out_specs=split, check_vma=False
    )
    keys = jax.random.split(jax.random.key(0), 4)
    assert jax.eval_shape(sharded, keys, jnp.zeros((4, 6))).shape == (4, 17)


def test_bones_of_the_half_cheetah() -> None:
    env = HalfCheetah()
    bones = env.bones(env.default_params())
    assert all(isinstance(part, np.ndarray) for part in bones)
    assert bones.link.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(np.sort([bones.start[0, 0], bones.end[0, 0]]), [-0.5, 0.5])
    np.testing.assert_allclose(bones.radius, 0.046, rtol=1e-6)
    length = np.linalg.norm(bones.end - bones.start, axis=-1)
    halves = [0.5, 0.15, 0.145, 0.15, 0.094, 0.133, 0.106, 0.07]
    np.testing.assert_allclose(length / 2, halves, rtol=1e-5)
    # The head leans forward by 0.87 about y: its axis is (sin, 0, cos).
    axis = (bones.end[1] - bones.start[1]) / length[1]
    np.testing.assert_allclose(axis, [np.sin(0.87), 0.0, np.cos(0.87)], atol=1e-5)


def test_bones_of_the_ant() -> None:
    env = Ant()
    bones = env.bones(env.default_params())
    assert bones.radius.shape == (17,)
    assert set(bones.link.tolist()) == set(range(9))
    np.testing.assert_array_equal(bones.start[0], bones.end[0])
    assert bones.radius[0] == np.float32(0.25)
