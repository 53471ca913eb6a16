"""Training on environments outside JAX, interrupted and resumed: the same bits, where the episodes
can be rebuilt; where they cannot, everything but the episodes goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from host_probes import Diary, Drift, HostAim, Lamp
from probes import Killed, killing_at

import slackline as sl
from slackline.envs.gymnasium import describe
from slackline.envs.recall import Recalling, decoded, encoded, restore, words
from slackline.errors import SlacklineError
from slackline.io.tensors import read_tensors, write_tensors
from slackline.learn.hyper import Hyper
from slackline.suites.resolve import as_suite
from slackline.training import configure, run_training

HYPER = replace(
    Hyper(),
    num_envs=3,
    num_steps=4,
    hidden=(4,),
    critic_hidden=(4,),
    normalise_observation=True,
)
STEPS = 8 * HYPER.num_envs * HYPER.num_steps


class OwnState(Drift):
    """Draws from a generator of its own, which no replay knows of, and tells its whole state."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        if seed is not None:
            self.own = np.random.Generator(np.random.MT19937(seed))
        super().reset(seed=seed)
        self.x = self.own.normal()
        return self.seen(), {}

    def get_state(self) -> dict[str, Any]:
        state = self.own.bit_generator.state
        return {"x": self.x, "left": self.left, "slope": self.slope, "own": state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.x, self.left, self.slope = state["x"], state["left"], state["slope"]
        self.own.bit_generator.state = state["own"]


class Endless(Drift):
    """Only a time limit ends its episodes."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        seen, reward, _, _, info = super().step(action)
        return seen, reward, False, False, info


class EndlessState(Endless):
    """The same, which tells its state; the time limit's is not part of it."""

    def get_state(self) -> tuple[Any, ...]:
        return self.x, np.array([self.slope]), b"bytes", [self.left]

    def set_state(self, state: tuple[Any, ...]) -> None:
        self.x, slope, word, (self.left,) = state
        self.slope = float(slope[0])
        assert word == b"bytes"


def weights(
    env: Any, out: Path | None, kill: int, hyper: Hyper = HYPER, method: str = "lop"
) -> Any:
    """The policies of two seeds; killed after `kill` strides and resumed, if that is not 0."""
    suite = as_suite(env)
    config = configure(suite, method, seeds=(0, 1), steps=STEPS, hyper=hyper)
    if kill:
        with pytest.raises(Killed):
            run_training(config, out, suite=suite, on_tick=killing_at(kill), checkpoint_seconds=0.0)
    lines = run_training(config, out, suite=suite, resume=True)
    return [(line.policy, line.critic, line.normaliser) for line in lines]


def assert_equal(first: Any, second: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, first, second)


def limited(env: Callable[[], gym.Env]) -> gym.Env:
    return gym.wrappers.TimeLimit(env(), 7)


REBUILT: dict[str, Callable[[], Any]] = {
    "by replay": lambda: sl.gymnasium(Drift),
    "by its own state": lambda: sl.gymnasium(OwnState),
    "in processes of their own": lambda: sl.gymnasium(Drift, workers="async"),
    "in two processes": lambda: sl.gymnasium(Drift, workers=2),
    "with a time limit": lambda: describe("endless", lambda: limited(Endless), {}),
    "with a time limit, by state": lambda: describe("endless", lambda: limited(EndlessState), {}),
    "of Gymnasium": lambda: sl.gymnasium("CartPole-v1"),
    "seen in flattened parts": lambda: describe(
        "parts", lambda: gym.wrappers.TimeAwareObservation(limited(Drift), flatten=False), {}
    ),
}


@pytest.mark.parametrize("kind", REBUILT)
def test_resumed_weights_are_identical(
    kind: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLACKLINE_TIMEOUT", "300")  # processes take long to start on a busy machine
    undisturbed = weights(REBUILT[kind](), tmp_path / "whole", 0)
    resumed = weights(REBUILT[kind](), tmp_path / "killed", 4)
    assert_equal(resumed, undisturbed)
    assert caplog.messages == []


def test_windows_that_were_collected_ahead_are_kept(tmp_path: Path) -> None:
    hyper = replace(HYPER, overlap=True)
    undisturbed = weights(Drift, tmp_path / "whole", 0, hyper)
    assert_equal(weights(Drift, tmp_path / "killed", 3, hyper), undisturbed)


def test_pictures_are_rebuilt_too(tmp_path: Path) -> None:
    hyper = replace(HYPER, normalise_observation=False, hidden=(8,))
    undisturbed = weights(Lamp, tmp_path / "whole", 0, hyper, "single")
    assert_equal(weights(Lamp, tmp_path / "killed", 3, hyper, "single"), undisturbed)


def test_a_run_can_be_killed_again_and_again(tmp_path: Path) -> None:
    undisturbed = weights(Drift, tmp_path / "whole", 0)
    for kill in (2, 3, 5):
        suite = as_suite(Drift)
        config = configure(suite, "lop", seeds=(0, 1), steps=STEPS, hyper=HYPER)
        with pytest.raises(Killed):
            run_training(
                config,
                tmp_path / "killed",
                suite=suite,
                resume=True,
                on_tick=killing_at(kill),
                checkpoint_seconds=0.0,
            )
    assert_equal(weights(Drift, tmp_path / "killed", 0), undisturbed)


class Anew(Drift):
    metadata = {"resume": "anew"}  # noqa: RUF012


@pytest.mark.parametrize(
    ("env", "rebuilt"),
    [(Diary, "of 6 episodes could not be rebuilt"), (Anew, "6 of 6 episodes could not be")],
)
def test_what_cannot_be_rebuilt_begins_anew_and_says_so(
    env: Any, rebuilt: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A diary counts its episodes, which its observations show; a robot should not be moved."""
    weights(env, tmp_path / "killed", 4)
    (said,) = caplog.messages
    assert rebuilt in said
    assert said.startswith(f"test_host_resume:{env.__name__}" if env is Anew else "host_probes:")


def test_a_vector_of_the_users_begins_anew_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def drifts(num_envs: int) -> Any:
        return gym.vector.SyncVectorEnv([Drift] * num_envs)

    weights(drifts, tmp_path / "killed", 4)
    assert caplog.messages == ["drifts: its episodes cannot be rebuilt; new ones begin"]


def test_checkpoints_of_other_environments_are_refused(tmp_path: Path) -> None:
    suite, out = as_suite(Drift), tmp_path / "run"
    config = configure(suite, "lop", seeds=(0, 1), steps=STEPS, hyper=HYPER)
    with pytest.raises(Killed):
        run_training(config, out, suite=suite, on_tick=killing_at(3), checkpoint_seconds=0.0)
    tensors, header = read_tensors(out / "checkpoint.safetensors")
    changes: dict[str, Any] = {
        "elapsed": -tensors["environments.elapsed"] - 1,
        "actions": tensors["environments.actions"][:, :2],
        "z": tensors["environments.z"].astype(np.int64),
        "states": np.zeros(3, np.uint8),
    }
    for name, changed in changes.items():
        damaged = {**tensors, f"environments.{name}": changed}
        write_tensors(out / "checkpoint.safetensors", damaged, header)
        with pytest.raises(SlacklineError, match="the environments'") as refusal:
            run_training(config, out, suite=suite, resume=True)
        assert "\n" not in str(refusal.value)
    del tensors["environments.fresh"]
    write_tensors(out / "checkpoint.safetensors", tensors, header)
    with pytest.raises(SlacklineError, match="has nothing about the environments' fresh"):
        run_training(config, out, suite=suite, resume=True)


def test_states_are_written_and_read_as_they_are() -> None:
    state = {
        "numbers": [1, 2.5, True, None, "word"],
        "both": (np.arange(6, dtype=np.int16).reshape(2, 3), b"\0\xff"),
        "deep": {"one": np.float32(0.1)},
    }
    found = decoded(encoded(state))
    np.testing.assert_array_equal(found["both"][0], state["both"][0])
    assert found["both"][0].dtype == np.int16
    assert found["both"][1] == b"\0\xff"
    assert found["deep"]["one"] == np.float32(0.1)
    assert found["numbers"] == state["numbers"]
    with pytest.raises(Exception, match=r"get_state\(\) returned a object"):
        encoded({"x": object()})
    for damaged in ("[", '{"array": 3}', '{"bytes": "%%%"}', '{"a": 1, "b": 2}', "[" * 100_000):
        with pytest.raises(SlacklineError, match="is damaged"):
            decoded(damaged)


def test_generators_go_on_where_they_were() -> None:
    first = np.random.default_rng(3)
    first.integers(5, size=3, dtype=np.uint32)  # leaves half of a word
    second = np.random.default_rng(8)
    restore(second, words(first))
    np.testing.assert_array_equal(first.integers(9, size=20), second.integers(9, size=20))


def test_a_step_goes_straight_to_the_environment() -> None:
    """The wrapper that remembers costs nothing where the time goes."""
    env = HostAim()
    assert Recalling(env, 0).step == env.step


@pytest.fixture(autouse=True)
def _warnings_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="slackline")
