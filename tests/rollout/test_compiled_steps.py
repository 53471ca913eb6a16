"""Taking steps, with an environment that counts: nothing lost, nothing doubled, nothing stale."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import Counting

from slackline.methods.latent import Interval
from slackline.rollout import CompiledRunner, Running, Totals
from slackline.types import Array, Transition

NUM_ENVS, NUM_STEPS, HORIZON = 5, 40, 4
ENV, LATENT = Counting(), Interval()
NOISE = jnp.arange(NUM_STEPS * NUM_ENVS).reshape(NUM_STEPS, NUM_ENVS) / 7.0


def act(noise: Array, observation: Array, z: Array) -> tuple[Array, Array, Array]:
    """The stored action tells what the policy was shown; the environment's is 0."""
    shown = jnp.concatenate([observation, z], axis=-1)
    return shown, jnp.zeros(observation.shape[0], jnp.int32), noise


RUNNER = CompiledRunner(ENV, HORIZON)
run = jax.jit(partial(RUNNER.steps, act=act, draw_z=LATENT.sample, noise=NOISE))


@pytest.fixture(scope="module")
def collected() -> tuple[Running, Running, Transition, Totals]:
    """(before, after, steps, episodes)"""
    before = RUNNER.start(jax.random.key(0), LATENT.sample, NUM_ENVS)
    after, steps, episodes = run(jax.random.key(1), before)
    return jax.tree.map(np.asarray, (before, after, steps, episodes))


def test_start_is_fresh() -> None:
    running = RUNNER.start(jax.random.key(0), LATENT.sample, NUM_ENVS)
    np.testing.assert_array_equal(running.elapsed, np.zeros(NUM_ENVS))
    np.testing.assert_array_equal(running.episode_return, np.zeros(NUM_ENVS))
    assert len(np.unique(running.observation[:, 0])) == NUM_ENVS
    assert len(np.unique(running.z)) == NUM_ENVS


def test_counts_go_up_by_one_and_start_again_after_an_end(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    before, after, steps, _ = collected
    count = steps.observation[..., 1]
    done = steps.terminated | steps.truncated
    np.testing.assert_array_equal(count[0], before.observation[:, 1])
    np.testing.assert_array_equal(steps.next_observation[..., 1], count + 1)
    following = np.concatenate([count[1:], after.observation[None, :, 1]])
    np.testing.assert_array_equal(following, np.where(done, 0, count + 1))
    np.testing.assert_array_equal(steps.reward, count + 1)
    assert done.any(axis=0).all()


def test_final_observation_belongs_to_the_episode_that_ended(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    _, after, steps, _ = collected
    tag, done = steps.observation[..., 0], steps.terminated | steps.truncated
    np.testing.assert_array_equal(steps.next_observation[..., 0], tag)
    following = np.concatenate([tag[1:], after.observation[None, :, 0]])
    assert ((following == tag) == ~done).all()


def test_z_is_constant_within_an_episode_and_drawn_anew_for_the_next(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    before, after, steps, _ = collected
    z, done = steps.z[..., 0], steps.terminated | steps.truncated
    np.testing.assert_array_equal(z[0], before.z[:, 0])
    following = np.concatenate([z[1:], after.z[None, :, 0]])
    assert ((following == z) == ~done).all()
    assert len(np.unique(following[done])) == done.sum()


def test_policy_is_shown_what_is_stored(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    _, _, steps, _ = collected
    shown = np.concatenate([steps.observation, steps.z], axis=-1)
    np.testing.assert_array_equal(steps.action, shown)
    np.testing.assert_array_equal(steps.log_prob, NOISE)  # each row of it once, in its order


def test_terminated_and_truncated_are_told_apart(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    """Lengths of 1 … 6 against a horizon of 4: an end at the horizon itself is a termination."""
    _, _, steps, _ = collected
    count = steps.next_observation[..., 1]
    assert not (steps.terminated & steps.truncated).any()
    assert (count <= HORIZON).all()
    assert (count[steps.truncated] == HORIZON).all()
    done = steps.terminated | steps.truncated
    assert done[count == HORIZON].all()
    assert set(np.unique(count[steps.terminated])) == {1, 2, 3, 4}
    assert steps.truncated.sum() > 3


def test_episode_sums(collected: tuple[Running, Running, Transition, Totals]) -> None:
    _, after, steps, episodes = collected
    done = steps.terminated | steps.truncated
    length = steps.next_observation[..., 1][done]
    assert episodes.count == done.sum()
    assert episodes.length_sum == length.sum()
    np.testing.assert_allclose(episodes.return_sum, (length * (length + 1) / 2).sum())
    np.testing.assert_array_equal(after.elapsed, after.observation[:, 1])
    np.testing.assert_array_equal(after.elapsed, after.env_state.count)
    unfinished = after.elapsed * (after.elapsed + 1) / 2
    np.testing.assert_allclose(after.episode_return, unfinished)
    assert steps.reward.sum() == episodes.return_sum + after.episode_return.sum()


def test_an_episode_goes_on_across_two_calls(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    _, middle, _, first = collected
    after, steps, second = jax.tree.map(
        np.asarray, run(jax.random.key(2), jax.tree.map(jnp.asarray, middle))
    )
    np.testing.assert_array_equal(steps.observation[0], middle.observation)
    np.testing.assert_array_equal(steps.z[0], middle.z)
    assert middle.elapsed.max() > 0
    total = first.length_sum + second.length_sum + after.elapsed.sum()
    assert total == 2 * NUM_STEPS * NUM_ENVS


def test_environments_are_independent(
    collected: tuple[Running, Running, Transition, Totals],
) -> None:
    _, _, steps, _ = collected
    done = steps.terminated | steps.truncated
    tags = steps.observation[..., 0][done]
    assert len(np.unique(tags)) == len(tags)
