"""K-shot adaptation in pools, where the return of every z is known or played again by hand."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from host_probes import Faulty, HostAim

import slackline as sl
from slackline.adapt import host
from slackline.api import Line
from slackline.envs.api import Continuous, Discrete
from slackline.envs.gymnasium import describe
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.mlp import MLP, Layer, init_mlp
from slackline.suites.own import changed_options, suite_of
from slackline.suites.suite import TRAIN, Protocol, Suite, Variation

LOW, HIGH = changed_options("Low", {"target": -0.9}), changed_options("High", {"target": 2.9})
NOISY = changed_options("Noisy", {"target": 1.0, "noise": 1.0})
RANDOM = changed_options("Random", {"target": 1.0, "longest": 5})
ENDS = {0: (-2.0, 2.0), 1: (0.5, -1.5)}


def aim_suite(make: Any = HostAim, **options: Any) -> Suite:
    made = suite_of(describe("host-aim", make, options))
    protocol = Protocol(steps=1, shots=5, episodes=2, score_episodes=3)
    return replace(made, horizon=20, variations=(LOW, HIGH, NOISY, RANDOM), protocol=protocol)


def line(seed: int = 0, suite: Suite | None = None, slope: float = 0.0) -> Line:
    """Policies that act between the ends of their seed; what they see is added, times `slope`."""
    bias = np.array(ENDS[seed], np.float32)[:, None]
    weight = np.full((2, 1, 1), slope, np.float32)
    policy = MLP((Layer(weight, bias),))  # type: ignore[arg-type]
    home, action = suite or aim_suite(), Continuous(1)
    return Line(home.name, CATALOGUE["lop"], seed, action, policy, policy, home=home)


def known(candidates: np.ndarray, seed: int, target: float, seen: float = 0.0) -> np.ndarray:
    action = 1.0 + 2.0 * np.tanh(candidates @ np.array(ENDS[seed]) + seen)
    return -((action - target) ** 2)


def test_returns_are_the_known_ones_and_the_best_candidate_is_chosen() -> None:
    found = sl.adapt_many([line(0), line(1)], [LOW, HIGH, TRAIN], 5, 3, 4)
    assert found.returns.shape == (2, 3, 5, 3)
    assert found.scores.shape == (2, 3, 4)
    for s, v in np.ndindex(2, 3):
        expected = known(found.candidates, s, [-0.9, 2.9, 2.0][v])
        each = np.broadcast_to(expected[:, None], (5, 3))
        np.testing.assert_allclose(found.returns[s, v], each, rtol=1e-4, atol=1e-5)
        assert found.chosen[s, v] == expected.argmax()
        np.testing.assert_allclose(found.scores[s, v], expected.max(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.chosen, [[4, 0, 1], [0, 4, 4]])


def test_scores_are_fresh_episodes_and_a_seed_has_its_own() -> None:
    found = sl.adapt_many([line(0), line(1)], [NOISY, LOW], 5, 4, 50)
    noise = (
        found.returns[:, 0] - np.stack([known(found.candidates, s, 1.0) for s in (0, 1)])[..., None]
    )
    fresh = found.scores[:, 0] - noise_free(found, 1.0)
    drawn = np.concatenate([noise.ravel(), fresh.ravel()]).round(4)
    assert len(np.unique(drawn)) > 0.99 * len(drawn) - 1
    assert 0.7 < fresh.std() < 1.3
    again = sl.adapt_many([line(1)], [NOISY], 5, 4, 50)
    np.testing.assert_allclose(again.returns[0, 0], found.returns[1, 0], rtol=1e-5)
    np.testing.assert_allclose(again.scores[0, 0], found.scores[1, 0], rtol=1e-5)


def noise_free(found: Any, target: float) -> np.ndarray:
    """What the chosen z would score, (S, 1)."""
    rows = [known(found.candidates, s, target)[found.chosen[s, 0]] for s in (0, 1)]
    return np.array(rows)[:, None]


def aims(mode: str) -> Any:
    def make(num_envs: int, **options: Any) -> Any:
        one = [lambda: HostAim(**options)] * num_envs
        return gym.vector.SyncVectorEnv(one, autoreset_mode=gym.vector.AutoresetMode[mode])

    return make


@pytest.mark.parametrize("make", [HostAim, aims("NEXT_STEP"), aims("SAME_STEP")])
@pytest.mark.parametrize("slots", [2, 6, 128])
def test_more_episodes_than_environments_are_played_in_turn(
    make: Any, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every job is played to its own end with its own z, whatever the others' lengths."""
    suite = aim_suite(make)
    monkeypatch.setattr(host, "SLOTS", slots)
    found = sl.adapt_many([line(0, suite), line(1, suite)], [RANDOM], 5, 5, 3)
    for s in (0, 1):
        expected = known(found.candidates, s, 1.0)
        each = np.broadcast_to(expected[:, None], (5, 5))
        np.testing.assert_allclose(found.returns[s, 0], each, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.scores[s, 0], expected.max(), rtol=1e-4, atol=1e-5)


def test_cartpole_returns_are_those_of_playing_by_hand() -> None:
    env = sl.gymnasium("CartPole-v1", max_episode_steps=60)
    policy = init_mlp(jax.random.key(3), (4, 8, 2), 2)
    lop, home = CATALOGUE["lop"], suite_of(env)
    subspace = Line(env.name, lop, 7, Discrete(2), policy, policy, home=home)
    found = subspace.adapt("Train", shots=4, episodes=2, score_episodes=3)
    for phase, zs, told in (
        (0, np.repeat(found.candidates, 2, axis=0), found.returns.ravel()),
        (1, np.repeat(found.z[None], 3, axis=0), found.scores),
    ):
        label = zlib.crc32(b"Train")
        seeds = np.random.SeedSequence([7, label, phase]).generate_state(len(zs)) >> 1
        played = [by_hand(subspace, z, int(seed)) for z, seed in zip(zs, seeds, strict=True)]
        np.testing.assert_array_equal(told, played)
    assert len(set(found.returns.ravel())) > 2


def by_hand(subspace: Line, z: np.ndarray, seed: int) -> float:
    env, policy, total, done = (
        gym.make("CartPole-v1", max_episode_steps=60),
        subspace.at(z),
        0.0,
        False,
    )
    seen, _ = env.reset(seed=seed)
    while not done:
        seen, reward, terminated, truncated, _ = env.step(policy(seen))
        total, done = total + float(reward), terminated or truncated
    env.close()
    return total


def test_another_environment_or_other_sensors_may_be_given() -> None:
    found = line().adapt(sl.gymnasium(HostAim, target=-0.9), adapter="grid")
    assert found.variation == "host_probes:HostAim?target=-0.9"
    np.testing.assert_allclose(found.score, known(found.candidates, 0, -0.9).max(), rtol=1e-4)
    np.testing.assert_array_equal(found.z, found.candidates[4])
    for sensor in (1.0, 0.0):
        blind = Variation("Blind", "", lambda p, s=sensor: p._replace(sensors=np.array([s])))
        found = line(slope=0.7).adapt(blind, shots=3, episodes=1)
        expected = known(found.candidates, 0, 2.0, seen=0.7 * sensor)
        np.testing.assert_allclose(found.returns[:, 0], expected, rtol=1e-4)


def test_environments_of_other_spaces_are_refused() -> None:
    with pytest.raises(
        SlacklineError, match=r"CartPole-v1: its observation shape is \(4,\), and the"
    ):
        line().adapt(sl.gymnasium("CartPole-v1"))
    faulty = sl.gymnasium(Faulty)
    with pytest.raises(
        SlacklineError, match=r"Faulty: its action is Discrete.* trained on host-aim"
    ):
        line().adapt(faulty)
    with pytest.raises(
        SlacklineError, match="variation Custom: is a int; it must be an environment"
    ):
        line().adapt(lambda _: 3)


def test_an_endless_episode_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackline.rollout.host.LONGEST", 30)
    suite = aim_suite(aims("SAME_STEP"), endless=True)
    with pytest.raises(SlacklineError, match="host-aim: an episode has not ended after 30 steps"):
        line(suite=suite).adapt("Train")


def test_a_time_limit_longer_than_the_horizon_is_the_environment_s_own() -> None:
    """The suite's horizon, 20, is for environments that have none."""

    def limited() -> Any:
        return gym.wrappers.TimeLimit(HostAim(endless=True), 50)

    np.testing.assert_array_equal(line(suite=aim_suite(limited)).adapt("Train").scores, 0.0)


def test_a_failure_names_the_environment() -> None:
    def wrong(target: float = 2.0) -> Any:
        if target < 0.0:
            raise ValueError("below the table")
        return HostAim(target)

    with pytest.raises(SlacklineError, match="host-aim: being made raised ValueError: below the"):
        line(suite=aim_suite(wrong)).adapt("Low")


def test_variations_of_a_suite_file_are_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("aims.toml").write_text(
        """
        env = "host_probes:HostAim"
        options = {noise = 0.0}
        shots = 5
        score_episodes = 3

        [[variation]]
        name = "Near"
        options = {target = -0.9}

        [[variation]]
        name = "Far"
        env = "host_probes:HostAim?target=2.9"
        """
    )
    subspace = line(suite=sl.suite("aims.toml"))
    near, far = (subspace.adapt(name, adapter="grid") for name in ("Near", "Far"))
    np.testing.assert_allclose(near.score, known(near.candidates, 0, -0.9).max(), rtol=1e-4)
    np.testing.assert_allclose(far.score, known(far.candidates, 0, 2.9).max(), rtol=1e-4)
    assert (near.variation, len(near.scores), near.returns.shape) == ("Near", 3, (5, 2))
    with pytest.raises(SlacklineError, match=r"unknown variation of aims.toml 'Nea'; did you mean"):
        subspace.adapt("Nea")
