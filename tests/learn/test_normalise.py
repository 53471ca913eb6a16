"""Observation normalisation: the moments of everything seen, and the same policy when folded in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

import slackline as sl
from slackline.envs.pendulum import Pendulum
from slackline.errors import SlacklineError
from slackline.learn.learner import Learner
from slackline.learn.normalise import SMALLEST_STD, Moments, no_moments
from slackline.learn.program import Program
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.mlp import init_mlp
from slackline.networks.normaliser import Normaliser
from slackline.subspace import load_subspaces, save_subspaces
from slackline.suites.resolve import suite as find_suite

HYPER = replace(
    find_suite("pendulum-continuous").hyper,
    normalise_observation=True,
    num_envs=8,
    num_steps=8,
    epochs=1,
    minibatches=2,
    hidden=(8,),
    critic_hidden=(8,),
)


@properties
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    scale=st.floats(0.1, 100.0),
    shift=st.floats(-50.0, 50.0),
)
def test_batches_add_up_to_the_whole(sizes: list[int], scale: float, shift: float) -> None:
    data = np.random.default_rng(0).normal(shift, scale, (sum(sizes), 3)).astype(np.float32)
    moments = no_moments(3)
    for batch in np.split(data, np.cumsum(sizes)[:-1]):
        moments = moments.absorb(jnp.asarray(batch))
    assert float(moments.count) == len(data)
    np.testing.assert_allclose(moments.mean, data.mean(axis=0), rtol=1e-3, atol=1e-3 * scale)
    expected = np.maximum(data.std(axis=0), SMALLEST_STD)
    np.testing.assert_allclose(moments.std, expected, rtol=2e-3, atol=1e-3 * scale)


def test_literal_moments() -> None:
    moments = no_moments(1).absorb(jnp.array([[1.0], [3.0]])).absorb(jnp.array([[8.0]]))
    assert (float(moments.count), float(moments.mean[0])) == (3.0, 4.0)
    np.testing.assert_allclose(moments.deviations, [26.0])
    np.testing.assert_allclose(moments.normalise(jnp.array([4.0])), [0.0], atol=1e-6)
    np.testing.assert_allclose(moments.normalise(jnp.array([7.0])), [3 / (26 / 3) ** 0.5])


def test_nothing_seen_changes_nothing() -> None:
    x = jnp.array([[3.0, -2.0]])
    np.testing.assert_array_equal(no_moments(2).normalise(x), x)


def test_a_constant_observation_does_not_blow_up() -> None:
    moments = no_moments(1).absorb(jnp.full((100, 1), 7.0))
    assert abs(float(moments.normalise(jnp.array([7.5]))[0])) <= 0.51 / SMALLEST_STD


@pytest.mark.parametrize("name", CATALOGUE)
def test_folded_network_does_the_same(name: str) -> None:
    """On raw observations what the policy does on normalised ones, at any z."""
    method, size = CATALOGUE[name], 3
    wide = method.conditioning.input_size(method.latent, size)
    anchors = method.conditioning.num_anchors(method.latent)
    policy = init_mlp(jax.random.key(0), (wide, 8, 2), anchors)
    rows = method.num_members
    mean, std = jax.random.normal(jax.random.key(1), (2, rows, size))
    normaliser = Normaliser(mean, jnp.abs(std) + 0.1)
    x = jax.random.normal(jax.random.key(2), (20, size))
    for i, z in enumerate(method.latent.candidates(3)):
        row = i if rows > 1 else 0
        seen = (x - mean[row][None]) / normaliser.std[row][None]
        many = jnp.broadcast_to(z, (20, method.latent.size))
        expected = method.conditioning.outputs(method.latent, policy, seen, many)
        folded = normaliser.folded_into(policy)
        found = method.conditioning.outputs(method.latent, folded, x, many)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_training_sees_every_observation_once() -> None:
    """The moments are those of all observations acted on, over blocks and iterations."""
    learner = Learner(Pendulum(), 50, CATALOGUE["lop"])
    for hyper in (HYPER, replace(HYPER, block=2)):
        program = Program(learner, hyper, [0])
        state, _ = program.advance(program.init(), 3)
        seen = state.moments
        assert isinstance(seen, Moments)
        assert float(seen.count[0]) == 3 * hyper.steps_per_iteration
        cosine, sine = np.asarray(seen.deviations)[0, :2] / float(seen.count[0])
        means = np.asarray(seen.mean)[0]
        np.testing.assert_allclose(cosine + sine + means[0] ** 2 + means[1] ** 2, 1.0, rtol=1e-4)


@pytest.mark.parametrize("method", ["lop", "ensemble", "diayn_r_l2"])
def test_normaliser_is_part_of_the_artefact(method: str, tmp_path: Path) -> None:
    line = sl.train("pendulum-continuous", method, steps=512, hyper=HYPER, out=tmp_path / "run")
    loaded = sl.load(tmp_path / "run")
    assert line.normaliser is not None
    assert loaded.normaliser is not None
    np.testing.assert_array_equal(loaded.normaliser.mean, line.normaliser.mean)
    assert (np.asarray(loaded.normaliser.std) != 1.0).all()
    z = line.method.latent.candidates(1)[0]
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(loaded.at(z)(x), line.at(z)(x))
    bare = replace(line, normaliser=None)
    assert (bare.at(z)(x) != line.at(z)(x)).any()
    adapted = line.adapt("Long", shots=2, episodes=1, score_episodes=2)
    assert adapted.score != bare.adapt("Long", shots=2, episodes=1, score_episodes=2).score


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda n: Normaliser(n.mean[:, :2], n.std[:, :2]), "does not fit"),
        (lambda n: n._replace(std=0.0 * n.std), "standard deviation of 0"),
    ],
)
def test_a_normaliser_that_cannot_be_is_refused(
    spoil: object, message: str, tmp_path: Path
) -> None:
    line = sl.train("pendulum-continuous", "lop", steps=64, hyper=HYPER)
    bad = replace(line, normaliser=spoil(jax.tree.map(np.asarray, line.normaliser)))  # type: ignore[operator]
    save_subspaces(tmp_path / "bad.safetensors", [bad])
    with pytest.raises(SlacklineError, match=message):
        load_subspaces(tmp_path / "bad.safetensors")
