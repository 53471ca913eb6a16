"""Changed MuJoCo models, read back from what MuJoCo compiles, and run by EnvPool."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackline.envs.mjcf import (
    ASSETS,
    PARTS,
    STOCK,
    Factors,
    envpool_options,
    model_file,
    model_xml,
    stock_xml,
)
from slackline.errors import SlacklineError
from slackline.suites.resolve import suite

mujoco: Any = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
pytest.importorskip("envpool_assets", reason="EnvPool is not installed")

SIZES = {"Tiny": 0.5, "Small": 0.75, "Big": 1.25, "Huge": 1.5}
IDS = {"halfcheetah": "HalfCheetah-v5", "ant": "Ant-v5"}
NUM_STEPS = 30

OF_MASSES = {
    *("body_mass", "body_subtreemass", "body_inertia", "body_iquat", "body_ipos"),
    *("body_invweight0", "dof_invweight0", "dof_M0", "actuator_acc0"),
    *("stat.meanmass", "stat.meaninertia", "cam_poscom0", "light_poscom0"),
}
OF_RADII = {"geom_size", "geom_rbound", "geom_aabb", "bvh_aabb", "dof_length", "stat.meansize"}
"""What a part's mass and radius may change in a compiled model: themselves and what follows."""


def cases() -> list[tuple[str, str]]:
    """Every variation of the two suites that changes the model."""
    return [
        (robot, v.name)
        for robot in STOCK
        for v in (*suite(robot).variations, *suite(robot).extras)
        if "Sensor" not in v.name
    ]


def factors_of(variation: str) -> Factors:
    size = next(size for size in SIZES if variation.startswith(size))
    return Factors(**{variation.removeprefix(size).lower(): SIZES[size]})


@cache
def compiled(xml: str) -> Any:
    # MuJoCo would put its word on the stock file's `settotalmass` on the screen and into a file.
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        return mujoco.MjModel.from_xml_string(xml)
    finally:
        mujoco.set_mju_user_warning(handler)


def numbers_of(model: Any) -> dict[str, np.ndarray]:
    """Every number in a compiled model, by name."""
    return {
        prefix + name: np.asarray(value)
        for prefix, part in (("", model), ("opt.", model.opt), ("stat.", model.stat))
        for name, value in public(part)
        if isinstance(value, int | float | np.ndarray)
    }


def public(thing: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(thing):
        if not name.startswith("_"):
            yield name, getattr(thing, name)


def changed_fields(model: Any, other: Any) -> set[str]:
    one, two = numbers_of(model), numbers_of(other)
    assert one.keys() == two.keys()
    return {name for name in one if not np.array_equal(one[name], two[name])}


def assert_scaled(found: Any, before: Any, factor: Any) -> None:
    np.testing.assert_allclose(found, np.asarray(before) * factor, rtol=1e-12)


@pytest.mark.parametrize("robot", STOCK)
def test_the_model_without_a_change_is_the_stock_one(robot: str) -> None:
    """Every number of it, to rounding: spelling out masses and writing digits loses nothing."""
    ours, stock = compiled(model_xml(robot)), compiled(stock_xml(robot))
    found, expected = numbers_of(ours), numbers_of(stock)
    assert len(expected) > 500
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(
            found[name], expected[name], rtol=1e-13, atol=1e-15, err_msg=name
        )
    if robot == "halfcheetah":
        assert ours.body_mass.sum() == pytest.approx(14.0, rel=1e-14)


@pytest.mark.parametrize(("robot", "variation"), cases())
def test_what_is_meant_to_change_does_and_nothing_else(robot: str, variation: str) -> None:
    factors = factors_of(variation)
    train, model = compiled(model_xml(robot)), compiled(model_xml(robot, factors))
    assert_scaled(model.opt.gravity, train.opt.gravity, factors.gravity)
    assert_scaled(model.geom_friction, train.geom_friction, factors.friction)
    by_body = np.ones(train.nbody)
    for part, bodies in PARTS.items() if robot == "halfcheetah" else ():
        by_body[[train.body(name).id for name in bodies]] = getattr(factors, part)
    assert_scaled(model.body_mass, train.body_mass, by_body)
    by_geom = np.stack([by_body[train.geom_bodyid], np.ones(train.ngeom), np.ones(train.ngeom)], 1)
    assert_scaled(model.geom_size, train.geom_size, by_geom)
    np.testing.assert_allclose(model.body_ipos, train.body_ipos, atol=1e-15)
    assert set() < changed_fields(train, model) <= may_change(factors)


def may_change(factors: Factors) -> set[str]:
    if factors.gravity != 1.0:
        return {"opt.gravity"}
    if factors.friction != 1.0:
        return {"geom_friction"}
    return OF_MASSES | OF_RADII


@pytest.mark.parametrize("factor", [0.75, 1.0, 1.25, 1.5])
@pytest.mark.parametrize("part", PARTS)
def test_inertia_is_that_of_the_new_capsules(part: str, factor: float) -> None:
    """The trace of a body's inertia, which no choice of axes changes, by the textbook."""
    train = compiled(stock_xml("halfcheetah"))
    model = compiled(model_xml("halfcheetah", Factors(**{part: factor})))
    for body in (train.body(name).id for name in PARTS[part]):
        geoms = np.flatnonzero(train.geom_bodyid == body)
        radius, half = train.geom_size[geoms, :2].T
        volume = math.pi * radius**2 * (2.0 * half + 4.0 / 3.0 * radius)
        mass = factor * train.body_mass[body] * volume / volume.sum()
        offset = np.linalg.norm(train.geom_pos[geoms] - train.body_ipos[body], axis=-1)
        trace = capsule_trace(mass, factor * radius, half) + 2.0 * mass * offset**2
        assert model.body_inertia[body].sum() == pytest.approx(trace.sum(), rel=1e-12)


def capsule_trace(mass: np.ndarray, radius: np.ndarray, half: np.ndarray) -> np.ndarray:
    ball = mass * 4.0 * radius / (6.0 * half + 4.0 * radius)
    tube = mass - ball
    along = tube * radius**2 / 2.0 + ball * 2.0 / 5.0 * radius**2
    across = tube * (radius**2 / 4.0 + half**2 / 3.0) + ball * (
        2.0 / 5.0 * radius**2 + half**2 + 3.0 / 4.0 * half * radius
    )
    return along + 2.0 * across


def test_changes_go_together() -> None:
    factors = Factors(gravity=0.5, friction=2.0, feet=1.25, torso=0.75)
    train = compiled(model_xml("halfcheetah"))
    model = compiled(model_xml("halfcheetah", factors))
    assert_scaled(model.opt.gravity, train.opt.gravity, 0.5)
    assert_scaled(model.geom_friction, train.geom_friction, 2.0)
    for body, factor in (("torso", 0.75), ("bfoot", 1.25), ("ffoot", 1.25), ("bshin", 1.0)):
        assert_scaled(model.body(body).mass, train.body(body).mass, factor)


def test_gymnasium_has_the_same_stock_files() -> None:
    theirs = files("gymnasium") / "envs" / "mujoco" / "assets"
    for robot, name in STOCK.items():
        assert (theirs / name).read_text(encoding="utf-8") == stock_xml(robot)


@pytest.mark.parametrize(
    ("robot", "factors", "message"),
    [
        ("halfcheetah", Factors(gravity=0.0), "factor of gravity is 0; .*greater than 0"),
        ("halfcheetah", Factors(friction=-1.0), "factor of friction is -1"),
        ("halfcheetah", Factors(torso=math.nan), "factor of torso is nan"),
        ("ant", Factors(gravity=math.inf), "factor of gravity is inf"),
        ("ant", Factors(gravity="2"), "factor of gravity is '2'"),  # pyright: ignore[reportArgumentType]
        ("ant", Factors(feet=1.25), "part is 'feet'; only the half-cheetah"),
        ("cheetah", Factors(), "unknown robot 'cheetah'; did you mean halfcheetah"),
    ],
)
def test_bad_values_are_named(robot: str, factors: Factors, message: str) -> None:
    for make in (model_xml, envpool_options):
        with pytest.raises(SlacklineError, match=message):
            make(robot, factors)


def test_without_envpool_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool_assets", None)
    with pytest.raises(
        SlacklineError, match=r"ant-mujoco needs EnvPool: .*slackline-rl\[envpool\]"
    ):
        model_xml("ant")


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLACKLINE_CACHE", str(tmp_path))
    return tmp_path / "models" / ASSETS


def test_one_file_a_model(cached: Path) -> None:
    first, again, other = (model_file("ant", Factors(gravity=g)) for g in (0.5, 0.5, 0.75))
    assert first == again != other
    assert sorted(cached.iterdir()) == sorted([first, other])
    first.write_text("torn")
    assert model_file("ant", Factors(gravity=0.5)).read_text() == model_xml("ant", Factors(0.5))


def test_many_may_write_the_same_file_at_once(cached: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: model_file("ant", Factors(gravity=0.5)), range(32)))
    assert list(cached.iterdir()) == list(found)


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SLACKLINE_CACHE", str(tmp_path / "file"))
    with pytest.raises(SlacklineError, match=r"cannot be written \(Not a directory\); SLACKLINE_"):
        model_file("ant")


@cache
def plan(robot: str) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1.0, 1.0, (NUM_STEPS, compiled(stock_xml(robot)).nu))


def pool(robot: str, **options: Any) -> Any:
    """One environment that shows its whole state and never starts anew."""
    envpool: Any = pytest.importorskip("envpool", reason="EnvPool is not installed")
    if robot == "ant":
        options |= {"terminate_when_unhealthy": False}
    return envpool.make(
        *(IDS[robot], "gymnasium"),
        num_envs=1,
        num_threads=1,
        seed=0,
        exclude_current_positions_from_observation=False,
        **options,
    )


def rollout(robot: str, **options: Any) -> np.ndarray:
    """States (time, position and velocity) from one start with one plan, in EnvPool."""
    model, env = compiled(stock_xml(robot)), pool(robot, **options)
    size = model.nq + model.nv
    seen = [env.reset()[0][0, :size]]
    seen += [env.step(action[None])[0][0, :size] for action in plan(robot)]
    env.close()
    return np.array(seen)


def error_of(robot: str, model: Any, states: np.ndarray) -> float:
    """How far, on average over time, one step of `model` from each state leads from the next."""
    data, errors = mujoco.MjData(model), []
    for action, before, after in zip(plan(robot), states[:-1], states[1:], strict=True):
        data.qpos[:], data.qvel[:], data.ctrl[:] = before[: model.nq], before[model.nq :], action
        for _ in range(5):
            mujoco.mj_step(model, data)
        errors.append(np.abs(np.concatenate([data.qpos, data.qvel]) - after).max())
    return float(np.mean(errors))


@pytest.mark.parametrize(("robot", "variation"), cases())
def test_envpool_runs_the_changed_model(robot: str, variation: str, cached: Path) -> None:
    """It does what MuJoCo's own package does with the same file, and not what the stock one does.

    With mujoco 3.6.0, the one inside EnvPool 1.2.5, all agree bit for bit. 4.0.0 differs in
    rounding for HalfCheetah, and by about 1e-4 a step for Ant, which has another integrator.
    """
    factors = factors_of(variation)
    stock, states = rollout(robot), rollout(robot, **envpool_options(robot, factors))
    np.testing.assert_array_equal(states[0], stock[0])
    assert np.isfinite(states).all()
    assert np.abs(states - stock).max() > 1e-3
    right = error_of(robot, compiled(model_file(robot, factors).read_text()), states)
    wrong = error_of(robot, compiled(stock_xml(robot)), states)
    assert right < {"halfcheetah": 1e-6, "ant": 2e-2}[robot]
    assert right < 0.05 * wrong


def test_envpool_takes_the_stock_model_for_no_change(cached: Path) -> None:
    for robot in STOCK:
        assert envpool_options(robot) == {}
        same = {"base_path": str(cached.parents[1]), "xml_file": model_file(robot).name}
        np.testing.assert_allclose(rollout(robot, **same)[:9], rollout(robot)[:9], atol=1e-9)
