"""One z alone (`at`) and a batch of z's (`outputs`) are the same policy, for every method."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.methods.catalogue import CATALOGUE
from slackline.methods.conditioning import Anchors, Concat
from slackline.methods.latent import Interval, Simplex, Skills
from slackline.networks.mlp import MLP, init_mlp

OBSERVATION, ACTION = 3, 2


def network(name: str) -> MLP:
    method = CATALOGUE[name]
    wide = method.conditioning.input_size(method.latent, OBSERVATION)
    anchors = method.conditioning.num_anchors(method.latent)
    return init_mlp(jax.random.key(0), (wide, 8, ACTION), anchors)


@pytest.mark.parametrize("name", CATALOGUE)
def test_at_equals_outputs(name: str) -> None:
    method, policy = CATALOGUE[name], network(name)
    observation = jax.random.normal(jax.random.key(1), (4, OBSERVATION))
    zs = method.latent.sample(jax.random.key(2), 4)
    batch = method.conditioning.outputs(method.latent, policy, observation, zs)
    for i, z in enumerate(zs):
        plain: Any = method.conditioning.at(method.latent, policy, z)
        assert all(leaf.shape[0] == 1 for leaf in jax.tree.leaves(plain))
        assert plain.layers[0].weight.shape[1] == OBSERVATION
        np.testing.assert_allclose(plain(observation[i]), batch[i], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [n for n, m in CATALOGUE.items() if m.latent.size])
def test_z_matters(name: str) -> None:
    method, policy = CATALOGUE[name], network(name)
    observation = jnp.ones((2, OBSERVATION))
    zs = jnp.asarray(method.latent.candidates(2))
    first, second = method.conditioning.outputs(method.latent, policy, observation, zs)
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize("latent", [Skills(4), Interval()], ids=repr)
def test_concat_reads_z_after_the_observation(latent: Skills | Interval) -> None:
    policy = init_mlp(jax.random.key(0), (OBSERVATION + latent.size, 8, ACTION))
    observation = jnp.arange(1.0, OBSERVATION + 1)
    z = latent.sample(jax.random.key(1), 1)[0]
    expected = policy(jnp.concatenate([observation, z]))
    np.testing.assert_array_equal(Concat().outputs(latent, policy, observation, z), expected)
    np.testing.assert_allclose(Concat().at(latent, policy, z)(observation), expected, rtol=1e-5)


def test_concat_without_hidden_layers() -> None:
    policy = init_mlp(jax.random.key(0), (OBSERVATION + 1, ACTION))
    z, observation = jnp.array([0.3]), jnp.ones(OBSERVATION)
    expected = policy(jnp.concatenate([observation, z]))
    np.testing.assert_allclose(Concat().at(Interval(), policy, z)(observation), expected, rtol=1e-5)


def test_anchors_literal() -> None:
    """Bias only: the output is the mixed bias."""
    policy = init_mlp(jax.random.key(0), (1, 1), 2)
    layer = policy.layers[0]._replace(weight=jnp.zeros((2, 1, 1)), bias=jnp.array([[10.0], [20.0]]))
    plain = Anchors().at(Simplex(2), MLP((layer,)), jnp.array([0.25, 0.75]))
    np.testing.assert_allclose(plain(jnp.ones(1)), [17.5])
