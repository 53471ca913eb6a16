"""HalfCheetah and Ant against Brax's own environments."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer

from slackline.envs import brax as ours
from slackline.envs.api import Array, Continuous
from slackline.envs.brax import BACKENDS, Ant, HalfCheetah, Robot, engine_of, quiet_brax, slim
from slackline.errors import SlacklineError

ROBOTS: list[Robot] = [kind(backend) for kind in (HalfCheetah, Ant) for backend in BACKENDS]
# Each program takes seconds to compile. By default each backend and each robot is rolled out;
# that the systems of all six are Brax's is always checked.
ROLLED_OUT = [
    pytest.param(HalfCheetah("spring"), id="halfcheetah-spring"),
    pytest.param(HalfCheetah("generalized"), id="halfcheetah-generalized"),
    pytest.param(Ant("spring"), id="ant-spring"),
    pytest.param(Ant("positional"), id="ant-positional"),
    pytest.param(HalfCheetah("positional"), id="halfcheetah-positional", marks=pytest.mark.slow),
    pytest.param(Ant("generalized"), id="ant-generalized", marks=pytest.mark.slow),
]
NUM_STEPS = 8


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


def starts(env: Robot) -> tuple[Array, Array]:
    """As after a reset, high in the air, and in the floor: q (3, nq) and qd (3, nv)."""
    sys = env.default_params().sys
    generator = np.random.default_rng(5)
    q = np.asarray(sys.init_q) + generator.uniform(-0.1, 0.1, (3, sys.nq))
    q[1:, env.hidden_positions] += [0.7, -0.4]
    qd = generator.normal(0.0, 0.1, (3, sys.nv))
    return jnp.asarray(q, jnp.float32), jnp.asarray(qd, jnp.float32)


def follow_ours(env: Robot, q: Array, qd: Array, actions: Array) -> Any:
    params = env.default_params()

    def step(state: Any, action: Array) -> tuple[Any, Any]:
        seen, state, reward, terminated = env.step(jax.random.key(0), state, action, params)
        return state, (seen, reward, terminated, *env.pose(state))

    return jax.lax.scan(step, engine_of(env.backend).init(params.sys, q, qd), actions)[1]


def follow_theirs(env: Robot, q: Array, qd: Array, actions: Array) -> Any:
    reference = theirs(env)
    blank = jax.eval_shape(reference.reset, jax.random.key(0))
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), blank)

    def step(state: Any, action: Array) -> tuple[Any, Any]:
        state = reference.step(state, action)
        x = state.pipeline_state.x
        return state, (state.obs, state.reward, state.done == 1.0, x.pos, x.rot)

    start = blank.replace(pipeline_state=reference.pipeline_init(q, qd))
    return jax.lax.scan(step, start, actions)[1]


@pytest.mark.parametrize("env", ROLLED_OUT)
def test_steps_as_brax_does(env: Robot) -> None:
    """Observation, reward, termination and poses, with some actions beyond the limits."""
    assert isinstance(env.action, Continuous)
    size = (3, NUM_STEPS, env.action.size)
    actions = np.random.default_rng(6).uniform(-1.5, 1.5, size).astype(np.float32)
    arguments = (*starts(env), jnp.asarray(actions))
    found = jax.jit(jax.vmap(lambda *given: follow_ours(env, *given)))(*arguments)
    with quiet_brax():
        expected = jax.jit(jax.vmap(lambda *given: follow_theirs(env, *given)))(*arguments)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        # Contacts amplify rounding by a little more at every step.
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(found[2], expected[2])
    assert np.asarray(found[2]).any() == isinstance(env, Ant)


def test_the_ant_falls_where_brax_says() -> None:
    """Healthy between 0.2 and 1.0, both included."""
    env = Ant()
    sys = env.default_params().sys
    heights = jnp.array([0.19, 0.2, 1.0, 1.01])
    starts = jnp.tile(sys.init_q, (4, 1)).at[:, 2].set(heights)
    state_of = engine_of(env.backend).init
    fallen = jax.jit(jax.vmap(lambda q: env.fallen(state_of(sys, q, jnp.zeros(sys.nv)))))(starts)
    assert fallen.tolist() == [True, False, False, True]


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
from slackline.suites import NAMES, suite
for name in NAMES:
    suite(name)
assert not {"brax", "mujoco", "jaxopt", "flax"} & set(sys.modules)
env = suite("halfcheetah-generalized").env
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


def test_steps_on_several_devices() -> None:
    """Traced inside shard_map, where what is carried through a loop must keep its sharding."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("device",))
    split = jax.sharding.PartitionSpec("device")

    def step(keys: Array, actions: Array) -> Array:
        def one(key: Array, action: Array) -> Array:
            env = HalfCheetah()
            params = env.default_params()
            _, state = env.reset(key, params)
            return env.step(key, state, action, params)[0]

        return jax.vmap(one)(keys, actions)

    sharded = jax.shard_map(step, mesh=mesh, in_specs=(split, split), out_specs=split)
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
