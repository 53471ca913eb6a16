"""A fan that begins from a single policy goes on exactly where the policy was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from commands import refused

import slackline as sl
from slackline.api import train_seeds
from slackline.errors import SlacklineError
from slackline.learn.opening import opened
from slackline.store.run import RunFolder
from slackline.suites.resolve import suite as find_suite
from slackline.training import configure, program_of

TINY = sl.Hyper(num_envs=4, num_steps=4, hidden=(4,), critic_hidden=(4,))
STEPS = 16 * 40
FLAGS = [
    *("--hyper.num-envs", "4", "--hyper.num-steps", "4"),
    *("--hyper.hidden", "4", "--hyper.critic-hidden", "4"),
]


def single(path: Path, keep_at: float | None = 0.5) -> None:
    train_seeds(
        "cartpole",
        "single",
        seeds=2,
        first_seed=3,
        steps=STEPS,
        hyper=TINY,
        out=path,
        keep_at=keep_at,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "single"
    single(path)
    return path


def test_the_middle_is_the_single_policy_and_the_critic_ignores_z() -> None:
    suite = find_suite("cartpole")

    def program(method: str) -> Any:
        config = configure(suite, method, seeds=(3, 4), steps=STEPS, hyper=TINY)
        return program_of(config, suite)

    fan, policy = program("fan"), program("single")
    before, _ = policy.advance(policy.init(), 3)
    state = opened(fan.init(), before)
    assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, fan.shapes())
    for anchors, centre in zip(
        jax.tree.leaves(state.networks.policy),
        jax.tree.leaves(before.networks.policy),
        strict=True,
    ):
        np.testing.assert_allclose(anchors.mean(axis=1), centre[:, 0], atol=1e-6)
        assert (anchors[:, 0] != anchors[:, 1]).any()
    observation = jnp.ones((5, 4))
    critic, its = (jax.tree.map(lambda x: x[1], s.networks.critic) for s in (state, before))
    for z in (0.0, 0.3, 1.0):
        known = critic.beside(observation, jnp.tile(jnp.array([z, 1.0 - z]), (5, 1)))
        np.testing.assert_allclose(known, its.beside(observation, jnp.zeros((5, 0))), atol=1e-6)
    np.testing.assert_array_equal(state.running.observation, before.running.observation)
    adam = state.networks.optimisers[0][1][0]
    np.testing.assert_array_equal(adam.count, 3)
    assert all((x[:, 1] == 0).all() and (x[:, 0] != 0).any() for x in jax.tree.leaves(adam.nu))
    fan.advance(fan.place(state), 1)


def test_a_fan_goes_on_from_where_the_single_policy_was_kept(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "fan"
    lines = train_seeds(
        "cartpole", "fan", seeds=2, first_seed=3, steps=STEPS, hyper=TINY, out=out, from_run=run
    )
    folder = RunFolder(out)
    assert folder.config().from_single == 20
    assert [line["iteration"] for line in folder.read_progress()] == list(range(21, 41))
    assert [line.seed for line in lines] == [3, 4]
    for tensor in jax.tree.leaves(lines[0].policy):
        assert (tensor[0] != tensor[1]).any()


def test_keeping_a_state_changes_nothing_else(run: Path, tmp_path: Path) -> None:
    single(tmp_path / "other", keep_at=None)
    one, other = (jax.tree.leaves(sl.load(path).policy) for path in (run, tmp_path / "other"))
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y)
    assert not RunFolder(tmp_path / "other").kept_file.exists()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"first_seed": 5}, "is of another training"),
        ({"steps": STEPS // 2}, "must be at least"),
        ({"opens": 0.0}, "opens is 0; .* must be more than 0"),
        ({"method": "lop"}, "only a fan can begin from a single policy"),
    ],
)
def test_what_does_not_fit_is_refused(
    run: Path, tmp_path: Path, changes: dict[str, Any], error: str
) -> None:
    arguments: dict[str, Any] = {"method": "fan", "seeds": 2, "first_seed": 3, "steps": STEPS}
    with pytest.raises(SlacklineError, match=error):
        train_seeds(
            "cartpole", hyper=TINY, out=tmp_path / "x", from_run=run, **(arguments | changes)
        )
    assert not (tmp_path / "x").exists()


def test_the_command_refuses_another_method_s_run_and_a_bad_share(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "cartpole", "--steps", str(STEPS), *FLAGS, "--out", str(tmp_path / "x")]
    nowhere = refused(capsys, *command, "--from", str(tmp_path / "nowhere"))
    assert "no such run folder" in nowhere
    assert "keep_at" in refused(capsys, *command, "--method", "single", "--keep-at", "2")
