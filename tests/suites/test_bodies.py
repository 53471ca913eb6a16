"""Changes of a robot and its world: each changes what it says, by as much as it says."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import slackline as sl
from slackline.adapt.kshot import Partly, changing_numbers
from slackline.envs import spring
from slackline.envs.brax import Ant, BraxParams, HalfCheetah, Robot, compiled, quiet_brax
from slackline.envs.impaired import Impaired
from slackline.errors import SlacklineError
from slackline.suites import DEVELOPED_ON, FURTHER
from slackline.suites.bodies import (
    PARTS,
    _invweights,
    _rotation,
    dead_sensors,
    friction,
    gravity,
    link_inertia,
    locked_joint,
    part_size,
    payload,
    slope,
)
from slackline.suites.hard import JOINTS
from slackline.suites.resolve import suite
from slackline.suites.suite import TRAIN, Suite, Variation

SUITES = [
    f"{robot}{engine}"
    for robot in ("halfcheetah", "ant")
    for engine in ("", "-positional", "-generalized")
]
FACTORS = {"Tiny": 0.5, "Small": 0.75, "Big": 1.25, "Huge": 1.5}


def everything(found: Suite) -> list[Variation]:
    return [TRAIN, *found.variations, *found.extras]


def factor_of(name: str, what: str) -> float:
    """What the variation's name says of gravity, friction or a part: 1 if nothing."""
    return next((f for size, f in FACTORS.items() if name == size + what), 1.0)


def part_mass(params: BraxParams, *links: str, power: float = 1.0) -> float:
    """Of some links together, as an engine has them that takes a power of every mass."""
    indices = [params.sys.link_names.index(name) for name in links]
    return float((np.asarray(params.sys.link.inertia.mass)[indices] ** power).sum())


POWERS = {"halfcheetah": 0.7, "halfcheetah-soft": 1.0, "halfcheetah-generalized": 1.0}
"""The power of a mass that changes by the factor in a variation's name."""


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("variation", [v.name for v in everything(suite("halfcheetah"))])
def test_leaves_of_the_half_cheetah(name: str, variation: str) -> None:
    """What is meant to change does, by the factor in the name, and nothing else."""
    train, power = suite(name).jax_env.default_params(), POWERS[name]
    params = suite(name).variation(variation).apply(train)
    by = {what: factor_of(variation, what) for what in ("Gravity", "Friction")}
    assert_scaled(params.sys.gravity, train.sys.gravity, by["Gravity"])
    assert_scaled(params.sys.opt.gravity, train.sys.opt.gravity, by["Gravity"])
    assert_scaled(params.sys.geom_friction, train.sys.geom_friction, by["Friction"])
    for part, links in PARTS.items():
        factor = factor_of(variation, part.capitalize())
        before, after = (part_mass(p, *links, power=power) for p in (train, params))
        assert after == pytest.approx(factor * before)
        ours = np.isin(
            HalfCheetah().bones(train).link, [train.sys.link_names.index(x) for x in links]
        )
        before, after = HalfCheetah().bones(train), HalfCheetah().bones(params)
        assert_scaled(after.radius[ours], before.radius[ours], factor)
        np.testing.assert_array_equal(after.start, before.start)
    what = "Nothing" if variation == "Train" else re.sub("^(Tiny|Small|Big|Huge)", "", variation)
    assert changed_leaves(params, train) == LEAVES.get(what, OF_A_PART)


LEAVES = {
    "Nothing": set(),
    "Gravity": {"sys.gravity", "sys.opt.gravity"},
    "Friction": {"sys.geom_friction"},
}
OF_A_PART = {
    "sys.geom_size",
    "sys.link.inertia.mass",
    "sys.link.inertia.i",
    # What follows from them.
    "sys.link.invweight",
    "sys.dof.invweight",
}


def changed_leaves(params: BraxParams, train: BraxParams) -> set[str]:
    """The names of those that are not as they were."""
    pairs = zip(jax.tree.leaves_with_path(params), jax.tree.leaves_with_path(train), strict=True)
    return {
        jax.tree_util.keystr(path).lstrip(".")
        for (path, leaf), (_, before) in pairs
        if not np.array_equal(leaf, before)
    }


def assert_scaled(found: Any, before: Any, factor: float) -> None:
    np.testing.assert_allclose(found, np.asarray(before) * factor, rtol=1e-6)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("factor", [1.0, 0.75, 1.25, 1.5])
def test_inertia_is_that_of_the_new_capsules(part: str, factor: float) -> None:
    """As MuJoCo works it out for bodies made of them."""
    env = HalfCheetah("generalized")
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


def capsule_ratio(part: str, factor: float) -> dict[int, np.ndarray]:
    """How many times its inertia about the three axes a link of the part has, by link."""
    plain = HalfCheetah("generalized").default_params()
    thick = part_size(part, factor)(plain)
    before, after = (np.asarray(p.sys.link.inertia.i) for p in (plain, thick))
    links = [plain.sys.link_names.index(name) for name in PARTS[part]]
    return {link: np.diagonal(after[link]) / np.diagonal(before[link]) for link in links}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("factor", [0.5625, 0.75, 1.25, 1.5625])
@pytest.mark.parametrize("engine", ["spring", "positional"])
def test_a_part_changes_in_full_what_brax_integrates(part: str, factor: float, engine: str) -> None:
    """Brax's own mass^0.7 and inverse inertia, of links as they are turned in the model. About the
    long axis, about which nothing turns, the inertia is softened."""
    com, base = import_module("brax.com"), import_module("brax.base")
    plain = HalfCheetah(engine).default_params().sys
    thick = part_size(part, factor)(HalfCheetah(engine).default_params()).sys
    by_link = capsule_ratio(part, factor)
    unturned = base.Transform.zero((7,))
    with quiet_brax():
        inverse = [np.asarray(com.inv_inertia(sys, unturned)) for sys in (plain, thick)]
    for link in range(7):
        before, after = (float(sys.link.inertia.mass[link] ** 0.7) for sys in (plain, thick))
        assert after / before == pytest.approx(factor if link in by_link else 1.0, rel=1e-5)
        frame = _rotation(np.asarray(plain.link.inertia.transform.rot[link], np.float64))
        before, after = (np.diagonal(frame.T @ i[link] @ frame) for i in inverse)
        expected = by_link.get(link, np.ones(3)) ** [1.0, 1.0, 0.2]
        np.testing.assert_allclose(before / after, expected, rtol=2e-4)


@pytest.mark.parametrize(("factor", "softened"), [(0.5625, False), (1.25, False), (1.25, True)])
def test_the_same_force_moves_a_heavier_foot_less(factor: float, softened: bool) -> None:
    """One frame in the air, without gravity, from a foot that was pulled off its joint."""
    train = HalfCheetah().default_params()
    train = train._replace(sys=train.sys.tree_replace({"gravity": np.zeros(3, np.float32)}))
    thick = part_size("feet", factor, softened=softened)(train)
    foot = train.sys.link_names.index("ffoot")

    def kicked(sys: Any) -> tuple[np.ndarray, np.ndarray]:
        """The foot's velocity and angular velocity after the frame."""
        state = spring.init(sys, jnp.zeros(9).at[1].set(5.0), jnp.zeros(9))
        pulled = np.array(state.com)
        pulled[foot] += [0.01, 0.0, 0.02]
        after = spring.step(sys, state._replace(com=jnp.asarray(pulled)), jnp.zeros(6), 1)
        return np.asarray(after.vel[foot]), np.asarray(after.ang[foot])

    (vel, ang), (thick_vel, thick_ang) = kicked(train.sys), kicked(thick.sys)
    turn = capsule_ratio("feet", factor)[foot][1]
    mass, inertia = (factor**0.7, turn**0.2) if softened else (factor, turn)
    np.testing.assert_allclose(vel / mass, thick_vel, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ang / inertia, thick_ang, rtol=1e-4, atol=1e-6)
    assert abs(vel[0]) > 0.1
    assert abs(ang[1]) > 0.1


@pytest.mark.parametrize("robot", [HalfCheetah, Ant])
@pytest.mark.parametrize("engine", ["spring", "positional", "generalized"])
def test_a_payload_is_a_share_of_what_the_engine_integrates(
    robot: type[Robot], engine: str
) -> None:
    """On the torso and nowhere else; 0.7 is the power of the half-cheetah's masses, 0 the ant's."""
    train = robot(engine).default_params()
    loaded = payload(0.5)(train)

    def felt(params: BraxParams) -> np.ndarray:
        power = 1.0 - float(params.sys.spring_mass_scale)
        return np.asarray(params.sys.link.inertia.mass) ** power

    before, after = felt(train), felt(loaded)
    assert after.sum() == pytest.approx(1.5 * before.sum())
    np.testing.assert_allclose(after[1:], before[1:], rtol=1e-6)
    np.testing.assert_array_equal(loaded.sys.link.inertia.i, train.sys.link.inertia.i)
    if engine == "spring":
        links = spring._robot(loaded.sys).links
        found = [1.0 / float(link.inverse_mass) for link in links]
        np.testing.assert_allclose(found, after, rtol=1e-5)
    again = payload(0.5)(loaded)
    assert felt(again).sum() == pytest.approx(1.5**2 * before.sum())


def test_a_slope_is_tilted_gravity() -> None:
    train = HalfCheetah().default_params()
    uphill = slope(30.0)(gravity(2.0)(train))
    expected = 2.0 * 9.81 * np.array([-0.5, 0.0, -math.sqrt(0.75)])
    for path in (uphill.sys.gravity, uphill.sys.opt.gravity):
        np.testing.assert_allclose(path, expected, rtol=1e-6)
    back = slope(-30.0)(uphill)
    np.testing.assert_allclose(back.sys.gravity, 2.0 * train.sys.gravity, atol=1e-5)


@pytest.mark.parametrize(
    ("robot", "motor", "dof", "link", "angle"),
    [
        (HalfCheetah, 1, 4, 2, 0.0),
        (HalfCheetah, 5, 8, 6, 0.0),
        (Ant, 4, 8, 3, 0.0),
        (Ant, 1, 13, 8, 1.0),
    ],
)
def test_a_locked_joint_has_both_limits_where_it_rests(
    robot: type[Robot], motor: int, dof: int, link: int, angle: float
) -> None:
    train = robot().default_params()
    params = locked_joint(motor)(train)
    for limit, before in zip(params.sys.dof.limit, train.sys.dof.limit, strict=True):
        assert float(limit[dof]) == angle
        np.testing.assert_array_equal(np.delete(limit, dof), np.delete(before, dof))
    stiffness = params.sys.link.constraint_limit_stiffness
    assert float(stiffness[link]) == 10_000.0
    before = train.sys.link.constraint_limit_stiffness
    np.testing.assert_array_equal(np.delete(stiffness, link), np.delete(before, link))


def test_the_suites_impair_what_they_say() -> None:
    """Numbers of motors by the names that the models have."""
    mujoco: Any = import_module("mujoco")
    names = {
        "halfcheetah": ("bthigh", "fthigh", "bshin", "ffoot"),
        "ant": ("hip_1", "ankle_3", "hip_2", "ankle_4"),
    }
    for robot, expected in names.items():
        model = compiled(suite(robot).env.asset)  # type: ignore[union-attr]
        joints = [
            mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, model.actuator_trnid[motor, 0])
            for motor, _ in JOINTS[robot].values()
        ]
        assert tuple(joints) == expected


def test_inertia_and_inverse_weights_start_as_mujoco_s() -> None:
    sys = HalfCheetah().default_params().sys
    for link in range(7):
        np.testing.assert_allclose(
            link_inertia(sys, link, 1.0), sys.link.inertia.i[link], atol=1e-6
        )
    for robot in (HalfCheetah, Ant):
        sys = robot().default_params().sys
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
    before, after = (part_mass(p, "bfoot", power=0.7) for p in (train, twice))
    assert after == pytest.approx(1.25 * before)
    at_once, in_steps = part_size("feet", 1.5)(train), part_size("feet", 1.2)(twice)
    for path in ("mass", "i"):
        one, other = (getattr(p.sys.link.inertia, path) for p in (at_once, in_steps))
        np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("percent", range(5, 40, 5))
def test_as_many_sensors_are_dead_as_the_name_says(percent: int) -> None:
    variation = suite("ant").variation(f"DefectiveSensor {percent}%")
    one, other = (np.asarray(variation.apply(Ant().default_params()).sensors) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert set(one) == {0.0, 1.0}
    assert (one == 0.0).sum() == round(27 * percent / 100)


@pytest.mark.parametrize("name", SUITES)
def test_by_a_factor_of_one_nothing_changes(name: str) -> None:
    """Bit for bit."""
    train = suite(name).jax_env.default_params()
    changes = [gravity(1.0), friction(1.0), dead_sensors(0.0), payload(0.0), slope(0.0)]
    if name.startswith("half"):
        changes += [part_size(part, 1.0, softened=s) for part in PARTS for s in (False, True)]
    for change in changes:
        same = change(train)
        for leaf, other in zip(jax.tree.leaves(same), jax.tree.leaves(train), strict=True):
            assert leaf.dtype == other.dtype
            np.testing.assert_array_equal(leaf, other)


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
        (lambda: payload(-0.1), "share of the payload is -0.1; .*at least 0"),
        (lambda: slope(90.0), "slope is 90; .*at most 60"),
        (lambda: slope(math.nan), "slope is nan"),
        (lambda: locked_joint(8)(Ant().default_params()), "motor is 8; .*from 0 to 7"),
        (lambda: dead_sensors(1.01), "fraction of dead sensors is 1.01; .*at most 1"),
        (lambda: dead_sensors(-0.1), "fraction of dead sensors is -0.1; .*at least 0"),
        (lambda: dead_sensors(math.nan), "fraction of dead sensors is nan"),
        (lambda: suite("halfcheetah-foo"), "engine or .* of halfcheetah 'foo'.*positional, gener"),
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
    for name, acts in (("halfcheetah", "act in full"), ("halfcheetah-soft", "are softened")):
        assert "power 0.7" in suite(name).note
        assert f"changes of parts {acts}" in suite(name).note
    assert "power 0.7" not in suite("halfcheetah-generalized").note


@pytest.mark.parametrize("name", FURTHER)
def test_other_changes_of_a_robot_are_trained_alike(name: str) -> None:
    found, plain = suite(name), suite(name.rpartition("-")[0])
    env = found.env.env if isinstance(found.env, Impaired) else found.env
    assert (found.name, env, found.horizon) == (name, plain.env, plain.horizon)
    assert (found.hyper, found.presets) == (plain.hyper, plain.presets)
    assert (found.options, found.exceptions) == (plain.options, plain.exceptions)
    assert found.title != plain.title


@pytest.mark.parametrize("name", DEVELOPED_ON)
def test_no_change_to_develop_on_is_one_that_is_reported(name: str) -> None:
    train = suite(name).env.default_params()
    taken = [v.apply(train) for v in everything(suite(name))]
    for variation in suite(f"{name}-dev").variations:
        params = variation.apply(train)
        assert all(changed_leaves(params, other) for other in taken), variation.name


@pytest.mark.parametrize("name", SUITES)
def test_engines_share_everything_but_the_physics(name: str) -> None:
    found, plain = suite(name), suite(name.split("-")[0])
    assert found.name == name
    assert found is suite(name)
    assert [v.name for v in found.variations] == [v.name for v in plain.variations]
    assert (found.hyper, found.protocol, found.horizon) == (plain.hyper, plain.protocol, 1000)
    assert found.hyper.steps_per_iteration == 2048 * 20


@pytest.mark.parametrize("name", ["halfcheetah", "ant"])
def test_the_papers_tables(name: str) -> None:
    """Its appendix, number by number."""
    hyper = suite(name).preset("paper", "diayn_r")
    assert hyper.algorithm == "ppo"
    assert (hyper.policy_lr, hyper.critic_lr, hyper.entropy) == (3e-4, 3e-4, 0.0)
    assert (hyper.num_envs, hyper.num_steps) == (2048, 20)
    assert (hyper.discount, hyper.gae_lambda, hyper.clip) == (0.99, 0.96, 0.3)
    assert hyper.max_grad_norm == 10.0
    own = {"halfcheetah": (0.5, 8, 32), "ant": (0.4, 16, 16)}[name]
    assert (hyper.action_std, hyper.epochs, hyper.minibatches) == own
    assert (hyper.hidden, hyper.critic_hidden) == ((64,) * 4, (256,) * 5)
    assert hyper.discriminator_hidden == (64, 64)
    assert hyper.discriminator_lr == {"halfcheetah": 1e-4, "ant": 1e-3}[name]
    assert suite(name).preset("paper", "lc") == replace(hyper, discriminator_lr=1e-3)
    beta = {"halfcheetah": (1.0, 0.1, 10.0), "ant": (1.0, 1.0, 0.1)}[name]
    made = [sl.method(m, **suite(name).options.get(m, {})) for m in ("lop", "diayn_r", "lc")]
    assert tuple(method.options["beta"] for method in made) == beta


@pytest.mark.parametrize("index", [0, 1])
def test_single_numbers_of_a_robot_may_be_changed(index: int) -> None:
    """By a function of somebody's; adapting traces those alone, and the others are known."""
    env = suite("halfcheetah").jax_env
    usual = env.default_params()

    def with_another_number(leaf: Any) -> np.ndarray:
        changed = np.array(leaf)
        if np.issubdtype(changed.dtype, np.floating):
            changed[(index,) * changed.ndim] += 0.01  # of an inertia, that about one axis
        return changed

    params = jax.tree.map(with_another_number, usual)
    partly = Partly(env, changing_numbers(jax.tree.map(lambda x: x[None], params), usual))

    def reset_and_step(part: list[Any]) -> Any:
        key = jax.random.key(0)
        return partly.step(key, partly.reset(key, part)[1], jax.numpy.zeros(6), part)

    observation, _, _, _ = jax.eval_shape(reset_and_step, partly.part_of(params))
    assert observation.shape == (17,)
