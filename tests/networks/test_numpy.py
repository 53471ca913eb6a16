"""The networks' maths is written once; NumPy and JAX compute the same with it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackline.arrays import namespace, tree_map
from slackline.envs.api import Continuous, Discrete
from slackline.methods.catalogue import CATALOGUE, method
from slackline.methods.draws import uniform
from slackline.methods.latent import Simplex
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import Impala, init_impala
from slackline.networks.mlp import MLP, NormedMLP, init_mlp
from slackline.networks.normaliser import Normaliser
from slackline.subspace.policy import Policy, compiled

SIZE, PICTURE = 5, (10, 8, 3)
SPACES = [Discrete(3), Continuous(3), Continuous(3, (-2.0, 0.0, 1.0), (2.0, 5.0, 1.5))]
seeds = st.integers(0, 2**31 - 1)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def on_numpy(tree: Any) -> Any:
    return tree_map(np.asarray, tree)


def same(found: Any, expected: Any) -> None:
    """One on NumPy, the other one the same on JAX."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(a, np.ndarray)
        assert a.dtype == np.float32
        close(a, b)


def policy_of(name: str, seed: int, kind: type[MLP] = MLP) -> MLP:
    """Fresh anchors of a method on JAX."""
    found = method(name)
    inputs = found.conditioning.input_size(found.latent, SIZE)
    anchors = found.conditioning.num_anchors(found.latent)
    return kind(init_mlp(jax.random.key(seed), (inputs, 9, 7, 3), anchors).layers)


@pytest.mark.parametrize("kind", [MLP, NormedMLP])
@pytest.mark.parametrize("name", CATALOGUE)
@settings(max_examples=3, deadline=None)
@given(seed=seeds)
def test_every_method_mixes_alike(name: str, kind: type[MLP], seed: int) -> None:
    found, policy = method(name), policy_of(name, seed, kind)
    x = np.random.default_rng(seed).normal(size=(4, SIZE)).astype(np.float32)
    z = np.asarray(found.latent.sample(jax.random.key(seed), 4))
    same(found.latent.weights(z), found.latent.weights(jnp.asarray(z)))  # type: ignore[arg-type]
    plain = found.conditioning.at(found.latent, on_numpy(policy), z[0])  # type: ignore[arg-type]
    same(plain, found.conditioning.at(found.latent, policy, jnp.asarray(z[0])))
    together = found.outputs(on_numpy(policy), x, z)  # type: ignore[arg-type]
    same(together, found.outputs(policy, jnp.asarray(x), jnp.asarray(z)))
    close(compiled(plain)(x)[0], together[0])  # type: ignore[arg-type]
    close(compiled(plain)(x[0]), together[0])  # type: ignore[arg-type]


@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_a_normaliser_folds_alike(seed: int) -> None:
    draws, policy = np.random.default_rng(seed), policy_of("lop", seed)
    mean, std = draws.normal(size=(1, SIZE)), draws.uniform(0.1, 3.0, (1, SIZE))
    normaliser = Normaliser(*(jnp.asarray(row, jnp.float32) for row in (mean, std)))
    folded = on_numpy(normaliser).folded_into(on_numpy(policy))
    same(folded, normaliser.folded_into(policy))


@pytest.mark.parametrize("extra", [0, 2])
def test_pictures_are_seen_alike(extra: int) -> None:
    network = init_impala(jax.random.key(3), PICTURE, extra, 2, (4, 5), (7, 3), 1 if extra else 2)
    pictures = np.random.default_rng(0).integers(0, 256, (3, *PICTURE), np.uint8)
    z = np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]], np.float32)

    def outputs(network: Impala, pictures: Any, z: Any) -> Any:
        return network.beside(pictures, z) if extra else network(pictures, z)

    found = outputs(on_numpy(network), pictures, z)
    same(found, outputs(network, jnp.asarray(pictures), jnp.asarray(z)))
    plain = on_numpy(network).given(z[0]) if extra else on_numpy(network).mix(z[0])
    close(plain(pictures[0]), found[0])


@pytest.mark.parametrize("space", SPACES)
def test_a_policy_acts_as_the_distribution_does(space: Discrete | Continuous) -> None:
    network = policy_of("single", 0)
    x = np.random.default_rng(1).normal(size=(6, SIZE)).astype(np.float32)
    policy, distribution = Policy(network, space), distribution_of(space)
    close(policy(x), distribution.greedy(network(jnp.asarray(x))))
    close(policy(x), distribution.greedy(on_numpy(network)(x)))
    before = policy.outputs(x)
    policy(x)
    np.testing.assert_array_equal(before, policy.outputs(x))


@pytest.mark.parametrize("shape", [(7,), (4, 2), (1, 3), (0, 2)])
@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_draws_are_those_of_jax(seed: int, shape: tuple[int, ...]) -> None:
    drawn = jax.random.uniform(jax.random.key(seed), shape)
    np.testing.assert_array_equal(uniform(seed, shape), drawn)


@pytest.mark.parametrize("anchors", [3, 5])
def test_candidates_are_those_that_jax_would_sample(anchors: int) -> None:
    latent = Simplex(anchors, concentration=2.0)
    drawn = Simplex(anchors).sample(jax.random.key(0), 11)
    np.testing.assert_array_equal(latent.candidates(11), drawn)


def test_jax_computes_where_any_array_is_its_own() -> None:
    assert namespace(np.ones(2), np.float32(3.0)) is np
    assert namespace(np.ones(2), jnp.ones(2)).tanh is jnp.tanh
