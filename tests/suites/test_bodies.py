"""Changes of a robot and its world: each changes what it says, by as much as it says."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.envs.brax import Ant, BraxParams, HalfCheetah, Robot, engine_of, quiet_brax
from slackline.errors import SlacklineError
from slackline.suites import suite
from slackline.suites.bodies import (
    PARTS,
    _invweights,
    dead_sensors,
    friction,
    gravity,
    link_inertia,
    part_size,
)
from slackline.suites.suite import TRAIN, Suite, Variation

SUITES = [
    f"{robot}{engine}"
    for robot in ("halfcheetah", "ant")
    for engine in ("", "-positional", "-generalized")
]
FACTORS = {"Tiny": 0.5, "Small": 0.75, "Big": 1.25, "Huge": 1.5}
NUM_STEPS = 20


def everything(found: Suite) -> list[Variation]:
    return [TRAIN, *found.variations, *found.extras]


def factor_of(name: str, what: str) -> float:
    """What the variation's name says of gravity, friction or a part: 1 if nothing."""
    return next((f for size, f in FACTORS.items() if name == size + what), 1.0)


@cache
def laboratory(name: str) -> Any:
    """(params, q, qd) of V robots and one plan of actions, to last states, observations and
    positions of the torso (V, time, 3). One program for all tests of a suite."""
    env: Any = suite(name).env
    assert isinstance(env, Robot)

    def follow(params: BraxParams, q: Any, qd: Any, plan: Any) -> Any:
        def step(state: Any, action: Any) -> Any:
            seen, state, _, _ = env.step(jax.random.key(0), state, action, params)
            return state, (seen, env.pose(state)[0][0])

        state, (seen, torso) = jax.lax.scan(
            step, engine_of(env.backend).init(params.sys, q, qd), plan
        )
        return state, seen, torso

    return jax.jit(jax.vmap(follow, in_axes=(0, 0, 0, None)))


def experiment(name: str, params: Any = None, lift: float = 0.0, push: float = 0.0, act=0.0) -> Any:
    """All variations (or those `params`) from the same start, lifted and pushed forward."""
    found = suite(name)
    params = found.params_of(everything(found)) if params is None else params
    sys = found.env.default_params().sys
    height = 1 if name.startswith("half") else 2
    num = len(everything(found))
    q = jnp.tile(sys.init_q.at[height].add(lift), (num, 1))
    qd = jnp.tile(jnp.zeros(sys.nv).at[0].set(push), (num, 1))
    size: int = found.env.action.size  # pyright: ignore[reportAttributeAccessIssue]
    plan = act * np.random.default_rng(0).uniform(-1.0, 1.0, (NUM_STEPS, size))
    return laboratory(name)(params, q, qd, jnp.asarray(plan, jnp.float32))


@pytest.mark.parametrize("name", SUITES)
def test_every_variation_changes_what_happens(name: str) -> None:
    """On every engine, with the start and the actions held fixed."""
    _, seen, torso = map(np.asarray, (0, *experiment(name, act=0.5)[1:]))
    assert np.isfinite(seen).all()
    for index, variation in enumerate(everything(suite(name))[1:], 1):
        assert (seen[index] != seen[0]).any(), variation.name
        # A dead sensor is in the eye only.
        assert (torso[index] == torso[0]).all() == variation.name.startswith("Defective")


@pytest.mark.parametrize("name", SUITES)
def test_by_a_factor_of_one_nothing_changes(name: str) -> None:
    """Bit for bit: the parameters, and where the robot is after a second."""
    found = suite(name)
    train = found.env.default_params()
    changes = [gravity(1.0), friction(1.0), dead_sensors(0.0)]
    if name.startswith("half"):
        changes += [part_size(part, 1.0) for part in PARTS]
    same = train
    for change in changes:
        same = change(same)
    for leaf, other in zip(jax.tree.leaves(same), jax.tree.leaves(train), strict=True):
        assert leaf.dtype == other.dtype
        np.testing.assert_array_equal(leaf, other)
    num = len(everything(found))
    many = [jax.tree.map(lambda x: jnp.stack([x] * num), params) for params in (train, same)]
    before, after = (experiment(name, params, act=0.5)[0] for params in many)
    np.testing.assert_array_equal(before.q, after.q)
    np.testing.assert_array_equal(before.qd, after.qd)


@pytest.mark.parametrize("name", SUITES)
def test_free_fall_is_as_fast_as_gravity_says(name: str) -> None:
    torso = np.asarray(experiment(name, lift=4.0)[2])
    dropped = torso[:, 0, 2] - torso[:, NUM_STEPS // 2, 2]
    for variation, ratio in zip(everything(suite(name)), dropped / dropped[0], strict=True):
        expected = factor_of(variation.name, "Gravity")
        # The positional engine damps the fall, a heavy body less, and rounds differences of places.
        loose = 0.03 if "positional" in name else 0.005
        assert ratio == pytest.approx(expected, rel=loose), variation.name


@pytest.mark.parametrize("name", SUITES)
def test_the_smoother_the_floor_the_further_it_slides(name: str) -> None:
    travelled = np.asarray(experiment(name, push=3.0)[2])[:, NUM_STEPS // 2 - 1, 0]
    names = [v.name for v in everything(suite(name))]
    order = ["HugeFriction", "BigFriction", "Train", "SmallFriction", "TinyFriction"]
    distance = [travelled[names.index(variation)] for variation in order]
    assert distance == sorted(distance)
    assert distance[-1] > 1.1 * distance[0]


def test_the_floor_carries_the_weight() -> None:
    """At rest it pushes up with mass × gravity: what both kinds of change are about."""
    from brax.generalized import constraint, dynamics

    name = "halfcheetah-generalized"
    found = suite(name)
    params = found.params_of(everything(found))
    state = experiment(name, params)[0]
    for _ in range(2):  # until it lies still
        plan = jnp.zeros((NUM_STEPS, 6))
        state = laboratory(name)(params, state.q, state.qd, plan)[0]

    def support(sys: Any, state: Any) -> Any:
        with quiet_brax():
            smooth = dynamics.forward(sys, state, jnp.zeros(sys.nv))
            return constraint.force(sys, state.replace(qf_smooth=smooth))[1]

    upward = np.asarray(jax.jit(jax.vmap(support))(params.sys, state))
    mass = part_mass(found.env.default_params(), *sum(PARTS.values(), ()))
    assert upward[0] == pytest.approx(mass * 9.81, rel=0.01)
    for variation, force in zip(everything(found), upward, strict=True):
        heavier = part_mass(variation.apply(found.env.default_params()), *sum(PARTS.values(), ()))
        weight = heavier / mass * factor_of(variation.name, "Gravity")
        assert force / upward[0] == pytest.approx(weight, rel=0.01), variation.name


def part_mass(params: BraxParams, *links: str) -> float:
    indices = [params.sys.link_names.index(name) for name in links]
    return float(np.asarray(params.sys.link.inertia.mass)[indices].sum())


@pytest.mark.parametrize("variation", [v.name for v in everything(suite("halfcheetah"))])
def test_leaves_of_the_half_cheetah(variation: str) -> None:
    """What is meant to change does, by the factor in the name, and nothing else."""
    train = HalfCheetah().default_params()
    params = suite("halfcheetah").variation(variation).apply(train)
    by = {what: factor_of(variation, what) for what in ("Gravity", "Friction")}
    assert_scaled(params.sys.gravity, train.sys.gravity, by["Gravity"])
    assert_scaled(params.sys.opt.gravity, train.sys.opt.gravity, by["Gravity"])
    assert_scaled(params.sys.geom_friction, train.sys.geom_friction, by["Friction"])
    for part, links in PARTS.items():
        factor = factor_of(variation, part.capitalize())
        assert part_mass(params, *links) == pytest.approx(factor * part_mass(train, *links))
        ours = np.isin(
            HalfCheetah().bones(train).link, [train.sys.link_names.index(x) for x in links]
        )
        before, after = HalfCheetah().bones(train), HalfCheetah().bones(params)
        assert_scaled(after.radius[ours], before.radius[ours], factor)
        np.testing.assert_array_equal(after.start, before.start)
    np.testing.assert_array_equal(params.sys.elasticity, train.sys.elasticity)
    np.testing.assert_array_equal(params.sensors, train.sensors)


def assert_scaled(found: Any, before: Any, factor: float) -> None:
    np.testing.assert_allclose(found, np.asarray(before) * factor, rtol=1e-6)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("factor", [1.0, 0.75, 1.25, 1.5])
def test_inertia_is_that_of_the_new_capsules(part: str, factor: float) -> None:
    """As MuJoCo works it out for bodies made of them."""
    env = HalfCheetah()
    train = env.default_params()
    mujoco: Any = import_module("mujoco")
    params = part_size(part, factor)(train)
    bones, thin = env.bones(params), env.bones(train)
    for link in (train.sys.link_names.index(name) for name in PARTS[part]):
        geoms = np.flatnonzero(bones.link == link)
        length = np.linalg.norm(thin.end - thin.start, axis=-1)
        volume = math.pi * thin.radius**2 * (length + 4 / 3 * thin.radius)
        mass = volume / volume[geoms].sum() * np.asarray(params.sys.link.inertia.mass)[link]
        capsules = "".join(
            f'<geom type="capsule" mass="{mass[g]}" size="{bones.radius[g]}" '
            f'fromto="{" ".join(map(str, (*bones.start[g], *bones.end[g])))}"/>'
            for g in geoms
        )
        xml = f"<mujoco><worldbody><body><freejoint/>{capsules}</body></worldbody></mujoco>"
        body = mujoco.MjModel.from_xml_string(xml)
        inertia = params.sys.link.inertia
        np.testing.assert_allclose(body.body_mass[1], inertia.mass[link], rtol=1e-5)
        np.testing.assert_allclose(body.body_ipos[1], inertia.transform.pos[link], atol=1e-6)
        ours = np.linalg.eigvalsh(np.asarray(inertia.i)[link])
        np.testing.assert_allclose(ours, np.sort(body.body_inertia[1]), rtol=1e-4)


def test_inertia_and_inverse_weights_start_as_mujoco_s() -> None:
    sys = HalfCheetah().default_params().sys
    for link in range(7):
        np.testing.assert_allclose(
            link_inertia(sys, link, 1.0), sys.link.inertia.i[link], atol=1e-6
        )
    link_weights, dof_weights = _invweights(sys)
    np.testing.assert_allclose(link_weights, sys.link.invweight, rtol=1e-5)
    np.testing.assert_allclose(dof_weights, sys.dof.invweight, rtol=1e-5)


def test_a_heavier_part_moves_less_easily() -> None:
    train = HalfCheetah().default_params().sys
    heavy = part_size("torso", 1.25)(HalfCheetah().default_params()).sys
    assert (heavy.link.invweight < train.link.invweight).all()
    assert float(heavy.dof.invweight[0]) < float(train.dof.invweight[0])


def test_changes_can_be_chained() -> None:
    train = HalfCheetah().default_params()
    twice = gravity(0.5)(gravity(0.5)(part_size("feet", 1.25)(train)))
    assert_scaled(twice.sys.gravity, train.sys.gravity, 0.25)
    assert part_mass(twice, "bfoot") == pytest.approx(1.25 * part_mass(train, "bfoot"))


@pytest.mark.parametrize("percent", range(5, 40, 5))
def test_as_many_sensors_are_dead_as_the_name_says(percent: int) -> None:
    variation = suite("ant").variation(f"DefectiveSensor {percent}%")
    one, other = (np.asarray(variation.apply(Ant().default_params()).sensors) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert set(one) == {0.0, 1.0}
    assert (one == 0.0).sum() == round(27 * percent / 100)


def test_dead_sensors() -> None:
    params = Ant().default_params()
    dead = {
        fraction: int((np.asarray(dead_sensors(fraction)(params).sensors) == 0.0).sum())
        for fraction in (0.0, 0.001, 0.5, 1.0)
    }
    assert dead == {0.0: 0, 0.001: 1, 0.5: 14, 1.0: 27}
    one, other = (np.asarray(dead_sensors(0.2, seed)(params).sensors) for seed in (0, 1))
    assert (one != other).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gravity(0.0), "factor of gravity is 0; .*greater than 0"),
        (lambda: gravity(math.nan), "factor of gravity is nan"),
        (lambda: friction(-1.0), "factor of friction is -1"),
        (lambda: friction(math.inf), "factor of friction is inf"),
        (lambda: part_size("torso", 0.0), "factor of torso is 0"),
        (lambda: part_size("shin", 1.25), "unknown part 'shin'; did you mean shins"),
        (lambda: part_size("feet", 1.25)(Ant().default_params()), "part is 'feet'; only the half"),
        (lambda: dead_sensors(1.01), "fraction of dead sensors is 1.01; .*at most 1"),
        (lambda: dead_sensors(-0.1), "fraction of dead sensors is -0.1; .*at least 0"),
        (lambda: dead_sensors(math.nan), "fraction of dead sensors is nan"),
        (lambda: suite("halfcheetah-foo"), "engine of halfcheetah 'foo'.*positional, generalized"),
        (lambda: suite("halfcheetah").variation("HugeTorsos"), "did you mean HugeTorso"),
    ],
)
def test_bad_values_are_named(make: Any, message: str) -> None:
    with pytest.raises(SlacklineError, match=message):
        make()


def test_extremes_are_found_by_name_but_not_averaged() -> None:
    found = suite("halfcheetah")
    assert "HugeTorso" not in [v.name for v in found.variations]
    assert len(found.variations) == 16
    assert found.variation("HugeTorso").description == "torso's mass and radius × 1.5"


def test_what_the_notes_say_of_softened_masses() -> None:
    """Brax's spring and positional engines take mass and inertia to the power 1 − scale."""
    for env, powers in ((HalfCheetah(), (0.7, 0.2)), (Ant(), (0.0, 0.0))):
        sys = env.default_params().sys
        scales = (1 - float(sys.spring_mass_scale), 1 - float(sys.spring_inertia_scale))
        assert scales == pytest.approx(powers)
    assert "power 0.7" in suite("halfcheetah").note
    assert "power 0.7" not in suite("halfcheetah-generalized").note


@pytest.mark.parametrize("name", SUITES)
def test_engines_share_everything_but_the_physics(name: str) -> None:
    found, plain = suite(name), suite(name.split("-")[0])
    assert found.name == name
    assert found is suite(name)
    assert [v.name for v in found.variations] == [v.name for v in plain.variations]
    assert (found.hyper, found.protocol, found.horizon) == (plain.hyper, plain.protocol, 1000)
    assert found.hyper.steps_per_iteration == 2048 * 20
