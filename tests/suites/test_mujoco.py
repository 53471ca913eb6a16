"""HalfCheetah-v5 and Ant-v5 with the variations of their Brax twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import slackline as sl
from slackline.api import Line
from slackline.envs.host import HostParams, open_pool
from slackline.errors import SlacklineError
from slackline.suites.mujoco import ANT, MujocoRobot
from slackline.training import configure, run_training

ROBOTS = ("halfcheetah", "ant")


def mujoco(robot: str) -> sl.Suite:
    return sl.suite(f"{robot}-mujoco")


@pytest.mark.parametrize("robot", ROBOTS)
def test_variations_are_those_of_the_brax_twin(robot: str) -> None:
    ours, twin = mujoco(robot), sl.suite(robot)
    said = [(v.name, v.description) for v in (*ours.variations, *ours.extras)]
    assert said == [(v.name, v.description) for v in (*twin.variations, *twin.extras)]
    assert ours.options == twin.options


@pytest.mark.parametrize("robot", ROBOTS)
def test_spaces_are_those_of_the_real_environment(robot: str) -> None:
    env = mujoco(robot).env
    assert isinstance(env, MujocoRobot)
    real = sl.envpool(env.env_id)
    assert (env.observation_size, env.action) == (real.observation_size, real.action)


@pytest.mark.parametrize("robot", ROBOTS)
def test_hard_changes_are_the_plain_ones_made_twice(robot: str) -> None:
    plain, hard = mujoco(robot), sl.suite(f"{robot}-mujoco-hard")
    assert (hard.name, hard.env, hard.hyper) == (f"{robot}-mujoco-hard", plain.env, plain.hyper)
    usual = plain.env.default_params()
    bodily = [v for v in plain.variations if "Sensor" not in v.name]
    assert [v.name for v in hard.variations] == [f"{v.name}Twice" for v in bodily]
    for variation in bodily:
        twice = variation.apply(variation.apply(usual))
        found = hard.variation(f"{variation.name}Twice").apply(usual)
        assert found.options == twice.options


CASES = [(robot, v.name) for robot in ROBOTS for v in mujoco(robot).variations]


@pytest.mark.parametrize(("robot", "name"), CASES)
def test_every_variation_changes_what_is_seen_and_nothing_else_does(robot: str, name: str) -> None:
    """With the same seed and actions; made again without a change, everything is the same."""
    suite = mujoco(robot)

    def seen(params: HostParams) -> np.ndarray:
        pool = open_pool(suite.env, params, [3], suite.horizon)  # type: ignore[arg-type]
        rows = [pool.reset()]
        actions = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 1, suite.env.action.size))  # type: ignore[union-attr]
        rows += [pool.step(action).reached for action in actions]
        pool.close()
        return np.concatenate(rows)

    usual = suite.env.default_params()
    np.testing.assert_array_equal(seen(usual), seen(usual))
    changed = suite.variation(name).apply(usual)
    assert np.abs(seen(changed) - seen(usual)).max() > 1e-3


def test_masks_are_as_large_as_they_say_and_always_the_same() -> None:
    for percent in range(5, 40, 5):
        variation = mujoco("ant").variation(f"DefectiveSensor {percent}%")
        sensors = variation.apply(HostParams({})).sensors
        assert sensors is not None
        assert set(sensors.tolist()) == {0.0, 1.0}
        assert np.sum(sensors == 0.0) == round(percent / 100 * ANT.observation_size)
        again = variation.apply(HostParams({})).sensors
        np.testing.assert_array_equal(sensors, again)


def test_changes_can_be_chained() -> None:
    from slackline.suites.mujoco import dead_sensors, scaled

    params = scaled("gravity", 0.5)(scaled("gravity", 0.5)(HostParams({})))
    both = dead_sensors(0.1, 1, 17)(dead_sensors(0.1, 2, 17)(params))
    assert params.options == {"gravity": 0.25}
    assert both.sensors is not None
    assert np.sum(both.sensors == 0.0) > 2
    with pytest.raises(SlacklineError, match="unknown quantity of a model 'mass'"):
        scaled("mass", 2.0)


def test_a_line_trains_and_adapts() -> None:
    suite = mujoco("halfcheetah")
    tiny = replace(
        suite.presets["fast"], num_envs=2, num_steps=8, minibatches=2, hidden=(8,), epochs=1
    )
    config = configure(suite, "lop", steps=32, hyper=replace(tiny, critic_hidden=(8,)))
    (line,) = run_training(config, None, suite=suite)
    found = Line.of(line).adapt("BigShins", shots=2, score_episodes=1)
    assert np.isfinite(found.score)
    assert found.returns.shape == (2, 1)


def test_an_engine_that_is_none_names_mujoco_too() -> None:
    with pytest.raises(
        SlacklineError, match=r"unknown physics engine or set .* of ant 'mojoco'.*mujoco"
    ):
        sl.suite("ant-mojoco")
    with pytest.raises(SlacklineError, match="block is 64"):
        configure(mujoco("ant"), hyper=replace(mujoco("ant").hyper, block=64))
