"""Learning from environments of a host: the same learner, fed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_probes import Diary, Faulty, Recorder, length
from probes import Killed, killing_at

import slackline as sl
from slackline.algorithms.actor_critic import next_values
from slackline.envs.cartpole import CartPole
from slackline.envs.gymnasium import describe
from slackline.envs.host import WatchedPool
from slackline.errors import SlacklineError
from slackline.io.tensors import read_tensors
from slackline.learn.host import HostProgram, only_real
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.learn.program import Program
from slackline.methods.catalogue import method
from slackline.store.run import RunFolder
from slackline.suites.resolve import as_suite
from slackline.training import configure, run_training
from slackline.types import Transition

TINY = Hyper(
    num_envs=4,
    num_steps=4,
    entropy=0.0,
    hidden=(4,),
    critic_hidden=(4,),
    discriminator_hidden=(4,),
)
LOP = method("lop")


def window(num_steps: int, done: np.ndarray, cut: np.ndarray, seed: int = 0) -> Transition:
    """A made-up window (T, N) on CartPole's spaces: where no episode ends, a step begins where the
    last one led, and z stays."""
    draw, shape = np.random.default_rng(seed), done.shape
    fresh, reached = draw.normal(size=(2, *shape, 4)).astype(np.float32)
    drawn = draw.uniform(size=(*shape, 1)).astype(np.float32)
    seen, z = fresh.copy(), drawn.copy()
    z = np.concatenate([z, 1.0 - z], axis=-1)
    for t in range(1, num_steps):
        goes_on = ~(done | cut)[t - 1]
        seen[t][goes_on], z[t][goes_on] = reached[t - 1][goes_on], z[t - 1][goes_on]
    action = draw.integers(0, 2, shape).astype(np.int32)
    reward, log_prob = draw.normal(size=(2, *shape)).astype(np.float32)
    parts: Any = (seen, z, action, log_prob, reward, done, cut, reached)
    return Transition(*map(jnp.asarray, parts))


def learner_of(horizon: int) -> tuple[Learner, TrainState]:
    learner = Learner(CartPole(), horizon, LOP)
    return learner, jax.jit(learner.init)(jax.random.key(0), TINY)


@pytest.mark.parametrize("limit", [8, 12, 3])
@pytest.mark.parametrize("seed", range(3))
def test_next_values_are_those_of_the_observations_reached(seed: int, limit: int) -> None:
    """With at most one time limit in the window, or (limit 3 < T) with many."""
    draw, num_steps, num_envs = np.random.default_rng(seed), 8, 6
    cut = np.zeros((num_steps, num_envs), bool)
    if limit < num_steps:
        cut = draw.random(cut.shape) < 0.4
    else:  # none, at the first step, at the last, anywhere
        rows = [0, num_steps - 1, *draw.integers(0, num_steps, 3)]
        cut[rows, np.arange(1, num_envs)] = True
    done = (draw.random(cut.shape) < 0.2) & ~cut
    steps = window(num_steps, done, cut, seed)
    learner, state = learner_of(limit)
    networks = state.networks
    value = jax.jit(partial(learner.agent.values, networks.policy, networks.critic))
    whole = value(steps.next_observation, steps.z)
    values = value(steps.observation, steps.z)
    found = next_values(value, steps, values, learner.shortest_limit)
    np.testing.assert_allclose(found[~done], whole[~done], rtol=1e-5, atol=1e-6)
    # The test can tell: the next row's value would be that of another episode.
    naive = np.concatenate([values[1:], found[-1:]])
    assert np.abs(naive - whole)[cut][:-1].max() > 1e-2


def test_a_step_spent_on_a_reset_teaches_nothing() -> None:
    """The others' advantages are those of the window without it; one of them takes its place."""
    done, cut = np.zeros((2, 9, 3), bool)
    done[[2, 0, 5], [0, 1, 1]] = True
    cut[[6, 8, 3, 7], [0, 0, 2, 2]] = True
    real = np.ones_like(done)
    real[1:] = ~(done | cut)[:-1]
    steps = window(9, done, cut)
    # After a reset step the next episode begins where it led.
    seen = np.array(steps.observation)
    for t, n in np.argwhere(~real):
        seen[t, n] = steps.next_observation[t - 1, n]
        if t + 1 < len(seen):
            seen[t + 1, n] = steps.next_observation[t, n]
    steps = steps._replace(observation=jnp.asarray(seen))
    learner, state = learner_of(horizon=1)
    judge = jax.jit(learner.judge)
    judged = judge(state, steps, TINY)

    def alone(x: Any) -> Any:
        """Seven steps of each environment are real."""
        return jax.tree.map(lambda leaf: np.stack([leaf[real[:, n], n] for n in range(3)], 1), x)

    expected = judge(state, alone(steps), TINY)
    np.testing.assert_allclose(alone(judged.advantage), expected.advantage, rtol=1e-5, atol=1e-6)
    taught = jax.jit(only_real)(jnp.asarray(real), judged)
    jax.tree.map(np.testing.assert_array_equal, alone(taught), alone(judged))
    found = {
        tuple(np.concatenate([np.ravel(x[t, n]) for x in jax.tree.leaves(taught)]).tolist())
        for t, n in np.ndindex(9, 3)
    }
    assert len(found) == real.sum() == 21
    unchanged = jax.jit(only_real)(jnp.ones((9, 3), bool), judged)
    jax.tree.map(np.testing.assert_array_equal, unchanged, judged)


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_transitions_hold_final_observations_and_one_z_an_episode(mode: str) -> None:
    """Eight windows of diaries: every row is what that environment lived through."""

    def diaries(num_envs: int) -> Any:
        modes = gym.vector.AutoresetMode
        return gym.vector.SyncVectorEnv([Diary] * num_envs, autoreset_mode=modes[mode])

    env = describe("diary", diaries, {})
    program = HostProgram(Learner(env, 1000, LOP), TINY, (0, 1))
    state = program.init()
    collected = []
    for i in range(8):
        keys = jax.vmap(lambda key, i=i: jax.random.fold_in(key, i))(state.key)
        collected.append(program._collect(state._replace(key=keys)))
    steps = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *[steps for steps, _ in collected])
    told = jax.tree.map(lambda *x: np.sum(x, axis=0), *[episodes for _, episodes in collected])
    lived, zs = np.zeros((2, 3)), []
    for copy, n in np.ndindex(2, TINY.num_envs):
        seed, episode, count, resting = steps.observation[copy, 0, n, 0], 0, 0, False
        for t in range(32):
            row = jax.tree.map(lambda x: x[copy, t, n], steps)  # noqa: B023
            assert row.real == (not resting)
            if resting:
                resting, episode, count = False, episode + 1, 0
                continue
            np.testing.assert_array_equal(row.observation, [seed, episode, count])
            count += 1
            np.testing.assert_array_equal(row.next_observation, [seed, episode, count])
            ends, odd = count == length(int(seed), episode), episode % 2 == 1
            assert (row.reward, row.terminated, row.truncated) == (
                count,
                ends and not odd,
                ends and odd,
            )
            if count == 1:
                zs.append(row.z)
            np.testing.assert_array_equal(row.z, zs[-1])
            if ends:
                lived[copy] += 1, count * (count + 1) / 2, count
                resting = mode == "NEXT_STEP"
                episode, count = (episode, count) if resting else (episode + 1, 0)
    assert len(np.unique(zs, axis=0)) == len(zs) > 30
    np.testing.assert_array_equal(np.stack(told[:3], axis=1), lived)
    program.close()


@pytest.mark.parametrize("overlap", [False, True])
def test_windows_follow_each_other_also_when_they_overlap_with_learning(overlap: bool) -> None:
    """None is learnt from twice or lost; an overlapping one is acted by the policies of before."""
    hyper = replace(TINY, overlap=overlap)
    program = HostProgram(Learner(sl.gymnasium(Diary), 1000, LOP), hyper, (0,))
    learn, windows, states = program._learn, [], []

    def watched(state: Any, hyper: Any, steps: Any, budget: Any) -> Any:
        windows.append(steps)
        states.append(state)
        return learn(state, hyper, steps, budget)

    program._learn = watched
    state = program.init()
    for _ in range(3):
        state, _ = program.advance(state, 2)
    assert program._running is not None
    assert program._running.pool.steps == (6 + overlap) * TINY.num_steps * TINY.num_envs
    program.close()
    whole = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *windows)
    ended = whole.terminated | whole.truncated
    follows = np.all(whole.observation[:, 1:] == whole.next_observation[:, :-1], axis=-1)
    np.testing.assert_array_equal(follows, ~ended[:, :-1])
    for i, steps in enumerate(windows):
        actor = states[max(i - 1, 0)] if overlap else states[i]
        networks = jax.tree.map(lambda x: x[0], actor.networks)
        learner = program._learner
        outputs, _ = learner.outputs_and_value(networks, steps.observation[0], steps.z[0])
        found = learner.distribution.log_prob(outputs, steps.action[0], hyper.action_std)
        np.testing.assert_allclose(found, steps.log_prob[0], rtol=1e-4, atol=1e-5)
    assert (windows[0].action != windows[1].action).any() or (windows[0].z != windows[1].z).any()


def learnt(kind: Callable[..., Any], env: Any, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """By seed: the mean return of late training episodes, and the critic's value of balance."""
    hyper = replace(
        sl.suite("cartpole").hyper, num_envs=8, policy_lr=1e-2, critic_lr=3e-2, discount=0.9
    )
    learner = Learner(env, 15, LOP)
    program = kind(learner, hyper, seeds)
    state, _ = program.advance(program.init(), 90)
    state, progress = program.advance(state, 30)
    program.close()
    balance, middle = jnp.zeros((1, 4)), jnp.full((1, 2), 0.5)
    values = jax.vmap(lambda networks: learner.outputs_and_value(networks, balance, middle)[1][0])
    episodes = progress.episodes
    returns = np.asarray(episodes.return_sum) / np.asarray(episodes.count)
    return returns, np.asarray(values(state.networks))


RETURN_WITHIN, VALUE_WITHIN = 0.5, 1.3
"""What the means of 16 seeds may differ by: about four and three standard errors."""


def test_cartpole_is_learnt_alike_through_gymnasium_and_in_jax(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Returns and values agree on average; the episodes are short, so that most of them meet their
    time limit, and a truncation taken for a termination shows in the values."""
    env, seeds = sl.gymnasium("CartPole-v1", max_episode_steps=15), range(16)
    returns, values = learnt(Program, CartPole(), seeds)
    host_returns, host_values = learnt(HostProgram, env, seeds)
    assert returns.mean() > 13.0
    assert abs(host_returns.mean() - returns.mean()) < RETURN_WITHIN
    assert abs(host_values.mean() - values.mean()) < VALUE_WITHIN
    real_step = WatchedPool.step

    def confused(pool: WatchedPool, actions: np.ndarray) -> Any:
        did = real_step(pool, actions)
        return did._replace(
            terminated=did.terminated | did.truncated, truncated=np.zeros_like(did.truncated)
        )

    monkeypatch.setattr(WatchedPool, "step", confused)
    _, confused_values = learnt(HostProgram, env, seeds)
    assert values.mean() - confused_values.mean() > VALUE_WITHIN


@pytest.mark.parametrize(("name", "copies"), [("lop", 2), ("ensemble", 2 * 3)])
def test_the_environments_take_as_many_steps_as_the_run_says(name: str, copies: int) -> None:
    made: list[Diary] = []

    def make() -> Diary:
        made.append(Diary())
        return made[-1]

    options: Any = {"members": 3} if name == "ensemble" else {}
    sl.train_seeds(describe("diary", make, {}), name, seeds=2, steps=5 * 16, hyper=TINY, **options)
    assert sum(one.steps for one in made) == 5 * copies * TINY.num_envs * TINY.num_steps
    each = {one.steps for one in made if one.steps}
    assert each == {5 * TINY.num_steps}


class Reach(Recorder):
    """One continuous action."""

    def __init__(self) -> None:
        super().__init__(action=gym.spaces.Box(-2.0, 5.0, (1,)), target=3.0)


PPO = replace(
    TINY,
    algorithm="ppo",
    epochs=2,
    minibatches=2,
    normalise_advantage=True,
    normalise_observation=True,
)


@pytest.mark.parametrize("name", ["single", "lop", "cop", "bop", "diayn_r", "ensemble", "lc"])
def test_every_method_trains_on_a_host(name: str, tmp_path: Path) -> None:
    env = sl.gymnasium(Reach if name == "lc" else Diary)
    line = sl.train(env, name, steps=16, hyper=PPO if name == "cop" else TINY)
    saved = sl.load(line.save(tmp_path / "line.safetensors"))
    assert (saved.suite, saved.action) == (env.name, env.action)
    assert (saved.normaliser is not None) == (name == "cop")
    before, after = ((x.policy, x.critic, x.normaliser) for x in (line, saved))
    jax.tree.map(np.testing.assert_array_equal, before, after)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(after))


def test_what_a_host_cannot_do_is_refused() -> None:
    with pytest.raises(SlacklineError, match="block is 2; host_probes:Diary does not run in JAX"):
        sl.train(Diary, steps=16, hyper=replace(TINY, block=2))
    with pytest.raises(SlacklineError, match=r"needs continuous actions; .*Diary's are discrete"):
        sl.train(Diary, "lc", steps=16, hyper=TINY)


def test_a_host_run_resumes_with_the_same_seeds(tmp_path: Path) -> None:
    """Diaries count their episodes: those that are not in their first one begin anew, with seeds
    that were not there before; tests/learn/test_host_resume.py has environments that go on."""
    seeds: list[int] = []

    class Sown(Diary):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            seeds.extend([] if seed is None else [seed])
            return super().reset(seed=seed, options=options)

    suite, out = as_suite(describe("diary", Sown, {})), tmp_path / "run"
    config = configure(suite, seeds=(0, 1), steps=10 * 16, hyper=TINY)
    with pytest.raises(Killed):
        run_training(config, out, suite=suite, on_tick=killing_at(4), checkpoint_seconds=0.0)
    assert read_tensors(out / "checkpoint.safetensors")[1]["iteration"] == 3
    first, num = seeds.copy(), 2 * TINY.num_envs
    assert len(set(first)) == len(first) == num
    lines = run_training(config, out, suite=suite, resume=True)
    assert [line["iteration"] for line in RunFolder(out).read_progress()] == list(range(1, 11))
    assert RunFolder(out).finished()
    assert seeds[num : 2 * num] == first
    assert not set(seeds[2 * num :]) & set(first)
    jax.tree.map(np.testing.assert_array_equal, sl.load(out, seed=1).policy, lines[1].policy)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("raises", "raised RuntimeError: the robot fell over"),
        ("hangs", "took longer than 0.5 s and was given up"),
        ("nan", "returned an observation that is not finite"),
        ("shape", "raised ValueError: "),
    ],
)
def test_a_failing_environment_leaves_a_checkpoint_to_resume_from(
    fault: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four environments fail in their 10th step, the second of the third iteration."""
    monkeypatch.setattr(WatchedPool.__init__, "__defaults__", (0.5,))
    monkeypatch.setattr(Faulty, "fault", fault)
    suite, out = as_suite(sl.gymnasium(Faulty, at=10)), tmp_path / "run"
    config = configure(suite, seeds=(0,), steps=4 * 16, hyper=TINY)
    with pytest.raises(SlacklineError) as failure:
        run_training(config, out, suite=suite, checkpoint_seconds=0.0)
    told = str(failure.value)
    assert told.startswith(f"host_probes:Faulty?at=10: step 36 {says}")
    assert told.endswith(f"; the last good checkpoint is kept in {out}")
    assert "\n" not in told
    assert read_tensors(out / "checkpoint.safetensors")[1]["iteration"] == 2
    # Its episodes are rebuilt to go on where they were, so it has to be mended first.
    monkeypatch.setattr(Faulty, "fault", "none")
    run_training(config, out, suite=suite, resume=True)
    assert json.loads((out / "run.json").read_text())["finished"]


def test_an_environment_that_fails_at_once_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    env = describe("Faulty?at=10", partial(Faulty, "raises", at=1), {})
    with pytest.raises(SlacklineError, match=r"step 0 raised RuntimeError: the robot fell over$"):
        sl.train(env, steps=16, hyper=TINY, out=tmp_path / "run")


def test_what_a_reset_step_holds_does_not_matter() -> None:
    """Not to the policy, the critic, the discriminator nor the normaliser."""

    def diaries(num_envs: int) -> Any:
        mode = gym.vector.AutoresetMode.NEXT_STEP
        return gym.vector.SyncVectorEnv([Diary] * num_envs, autoreset_mode=mode)

    hyper = replace(TINY, normalise_observation=True, normalise_advantage=True)
    learner = Learner(sl.gymnasium(diaries), 1000, method("diayn_r"))
    program = HostProgram(learner, hyper, (0,))
    state = program.init()
    program._collect(state)
    steps, _ = program._collect(state)
    program.close()
    real: Any = steps.real
    assert 0.1 < real.mean() < 0.9

    def learnt_from(garbage: float) -> Any:
        def spoilt(x: np.ndarray) -> np.ndarray:
            wide = real.reshape(*real.shape, *(1,) * (x.ndim - 3))
            return np.where(wide, x, np.asarray(garbage, x.dtype))

        names = ("observation", "reward", "log_prob", "next_observation", "action")
        changed = {name: spoilt(getattr(steps, name)) for name in names}
        after, losses = program._learn(state, hyper, steps._replace(**changed), np.inf)
        return after.networks, after.moments, losses

    jax.tree.map(np.testing.assert_array_equal, learnt_from(0.0), learnt_from(1.0))
    nothing, _ = program._learn(state, hyper, steps._replace(real=np.zeros_like(real)), np.inf)
    jax.tree.map(np.testing.assert_array_equal, nothing.networks, state.networks)
    jax.tree.map(np.testing.assert_array_equal, nothing.moments, state.moments)
