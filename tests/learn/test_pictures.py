"""Learning from pictures: a probe whose answer can be seen, and gradients a few at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box
from host_probes import Lamp, pool_of

import slackline as sl
from slackline.agents import pictures
from slackline.algorithms.actor_critic import Samples
from slackline.algorithms.ppo import PPO
from slackline.envs.api import Discrete
from slackline.envs.gymnasium import observer, picture_of
from slackline.errors import SlacklineError
from slackline.io.tensors import read_tensors, write_tensors
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner
from slackline.methods.catalogue import method
from slackline.networks.impala import Impala
from slackline.suites.own import hyper_for
from slackline.types import Transition

SMALL = Hyper(
    algorithm="ppo",
    policy_lr=3e-3,
    gae_lambda=0.95,
    entropy=0.01,
    num_envs=16,
    num_steps=8,
    epochs=2,
    minibatches=2,
    normalise_advantage=True,
    channels=(4, 4),
    hidden=(16,),
    discriminator_hidden=(8,),
)
LEFT, RIGHT = np.zeros((2, 16, 18, 3), np.uint8)
LEFT[:, :9] = RIGHT[:, 9:] = (200, 100, 50)


def lamp(**options: Any) -> Any:
    return sl.gymnasium(Lamp, **options)


@pytest.mark.parametrize("colours_first", [True, False])
def test_pictures_come_with_colours_last_in_bytes(colours_first: bool) -> None:
    env = lamp(colours_first=colours_first)
    assert (env.picture, env.observation_size) == ((16, 18, 3), 16 * 18 * 3)
    pool = pool_of(env, num=8)
    seen = pool.reset()
    assert (seen.shape, seen.dtype) == ((8, 16, 18, 3), np.uint8)
    assert {row.tobytes() for row in seen} == {LEFT.tobytes(), RIGHT.tobytes()}
    did = pool.step(np.zeros(8, int))
    right = [row.tobytes() == RIGHT.tobytes() for row in did.reached]
    np.testing.assert_array_equal(did.reward, np.logical_not(right))
    pool.close()


@pytest.mark.parametrize(
    ("space", "picture"),
    [
        (Box(0, 255, (84, 84), np.uint8), (84, 84, 1)),
        (Box(0, 255, (1, 84, 80), np.uint8), (84, 80, 1)),
        (Box(0, 255, (4, 84, 80), np.uint8), (84, 80, 4)),
        (Box(0, 255, (210, 160, 3), np.uint8), (210, 160, 3)),
        (Box(0, 2, (19, 19), np.uint8), None),  # a game of Go
        (Box(0, 255, (7, 7, 3), np.uint8), None),
        (Box(0, 255, (128,), np.uint8), None),
        (Box(0.0, 255.0, (84, 84), np.float32), None),
    ],
    ids=str,
)
def test_what_counts_as_a_picture(space: Any, picture: tuple[int, ...] | None) -> None:
    assert picture_of(space) == picture
    seen = np.stack([space.sample(), space.sample()])
    found = observer(space)(seen)
    assert found.shape == (2, *(picture or (np.prod(space.shape),)))
    assert not np.shares_memory(found, seen)


@pytest.mark.parametrize(
    ("name", "patch", "vision"),
    [
        ("single", 1, "residual"),
        ("single", 2, "residual"),
        ("lop", 1, "residual"),
        ("lop", 2, "residual"),
        ("lop", 2, "strided"),
        ("diayn_r", 1, "residual"),
        ("diayn_r", 2, "strided"),
    ],
)
def test_every_policy_learns_to_see(name: str, patch: int, vision: Any, tmp_path: Path) -> None:
    options = {"skills": 2, "beta": 0.01} if name == "diayn_r" else {}
    hyper = replace(SMALL, patch=patch, vision=vision)
    line = sl.train(lamp(), name, steps=6_000, hyper=hyper, out=tmp_path / "run", **options)
    assert isinstance(line.policy, Impala)
    loaded = sl.load(tmp_path / "run")
    for z in line.method.latent.candidates(3 if name == "lop" else 2):
        policy = loaded.at(z if len(z) else None)
        assert policy(np.stack([LEFT, RIGHT])).tolist() == [0, 1]
        assert policy(np.moveaxis(RIGHT, -1, 0)) == 1  # as the environment shows it
    found = line.adapt(lamp(mirror=True), shots=2, episodes=2, score_episodes=8)
    assert found.score == 0.0
    assert line.adapt(lamp(colours_first=False), shots=2, episodes=2, score_episodes=8).score == 1.0


def samples(learner: Learner, num: int) -> Samples:
    key = iter(jax.random.split(jax.random.key(5), 9))
    shape = (num, *learner.env.observation_shape)

    def pictures() -> Any:
        return jax.random.randint(next(key), shape, 0, 256).astype(jnp.uint8)

    def numbers() -> Any:
        return jax.random.normal(next(key), (num,))

    steps = Transition(
        observation=pictures(),
        z=learner.method.latent.sample(next(key), num),
        action=jnp.arange(num) % 2,
        log_prob=-jnp.abs(numbers()),
        reward=numbers(),
        terminated=jnp.zeros(num, bool),
        truncated=jnp.zeros(num, bool),
        next_observation=pictures(),
    )
    return Samples(steps, numbers(), numbers())


def gradients(learner: Learner, networks: Any, hyper: Hyper, batch: Samples) -> Any:
    return learner.agent.mean_over(partial(PPO().gradients, learner.agent, networks, hyper), batch)


@pytest.mark.parametrize("name", ["lop", "diayn_r"])
def test_gradients_of_a_few_at_a_time_are_those_of_all(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner(lamp(), 10, method(name))
    networks = learner.init(jax.random.key(0), SMALL).networks
    batch = samples(learner, 24)

    def found(few: int) -> Any:
        monkeypatch.setattr(pictures, "PICTURES", few)
        return jax.jit(lambda batch: gradients(learner, networks, SMALL, batch))(batch)

    whole, parts = found(24), found(10)  # eight at a time
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), whole, parts)
    assert max(float(jnp.abs(x).max()) for x in jax.tree.leaves(whole)) > 1e-2


def test_policy_and_critic_share_their_blocks() -> None:
    """The critic's loss alone moves what the policy sees with, more with a larger coefficient."""
    learner = Learner(lamp(), 10, method("lop"))
    networks = learner.init(jax.random.key(0), SMALL).networks
    assert networks.critic == ()
    batch = samples(learner, 8)._replace(advantage=jnp.zeros(8))

    def shared(coefficient: float) -> Any:
        hyper = replace(SMALL, entropy=0.0, critic_coefficient=coefficient)
        (policy, *_), _ = gradients(learner, networks, hyper, batch)
        return jax.tree.leaves(policy.shared)

    for one, three in zip(shared(1.0), shared(3.0), strict=True):
        np.testing.assert_allclose(3.0 * one, three, rtol=1e-4, atol=1e-7)
    assert np.abs(shared(1.0)[0]).max() > 1e-5


def test_the_defaults_are_for_pictures() -> None:
    hyper = hyper_for(lamp())
    assert (hyper.normalise_observation, hyper.patch, hyper.hidden) == (False, 2, (256,))
    assert hyper_for(sl.gymnasium("CartPole-v1")).normalise_observation


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"normalise_observation": True}, "normalise_observation is true; .* shows pictures"),
        ({"patch": 4}, r"patch is 4; it must divide the 16 × 18 pixels of host_probes:Lamp"),
        ({"channels": ()}, "number of layers in channels is 0"),
    ],
)
def test_what_pictures_forbid(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(SlacklineError, match=says):
        sl.train(lamp(), "single", steps=1000, hyper=replace(SMALL, **changed))


def test_a_policy_refuses_what_is_no_such_picture() -> None:
    line = sl.train(lamp(), "single", steps=128, hyper=SMALL)
    for bad in (np.zeros(5), LEFT.astype(np.float32), LEFT[:-1], np.zeros((2, 2, 16, 18, 3))):
        with pytest.raises(SlacklineError, match="must be a picture of uint8, 16 × 18 × 3"):
            line.at()(bad)
    assert line.at().observation_size == 16 * 18 * 3


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"picture": [32, 16, 3]}, "does not fit pictures"),
        ({"picture": [16, 18]}, "unusable header"),
        ({"picture": None}, "unusable header"),
        ({"action": {"kind": "discrete", "num_actions": 4}}, "has 3 outputs and 2 anchors"),
        ({"options": {"anchors": 3}}, "does not fit pictures|has 3 outputs and 2 anchors"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    header: dict[str, Any], says: str, tmp_path: Path
) -> None:
    line = sl.train(lamp(), "lop", steps=128, hyper=SMALL)
    path = line.save(tmp_path / "line.safetensors")
    tensors, found = read_tensors(path)
    write_tensors(path, tensors, {**found, **header})
    with pytest.raises(SlacklineError, match=says):
        sl.load(path)


def test_an_ensemble_of_networks_that_see() -> None:
    line = sl.train(lamp(), "ensemble", steps=128, hyper=SMALL, members=2)
    assert isinstance(line.policy, Impala)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(line.policy)} == {2}
    first = jax.tree.map(lambda x: x[:1], line.acting)
    np.testing.assert_allclose(
        line.at(0).outputs(LEFT), first(jnp.asarray(LEFT)), rtol=1e-4, atol=1e-6
    )
    assert line.action == Discrete(2)
