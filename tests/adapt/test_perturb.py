"""Noisy copies of a single policy: how noisy, of what, and the same every time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from slackline.adapt.perturb import noisy, perturbed
from slackline.envs.api import Discrete
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.mlp import MLP, Layer, init_mlp
from slackline.networks.normaliser import Normaliser
from slackline.subspace import Subspace, load_subspaces, save_subspaces

OBSERVATION = 4


def policy(seed: int = 3, width: int = 100, method: str = "single") -> Subspace:
    """Untrained, of one anchor, with a normaliser."""
    key, critic_key = jax.random.split(jax.random.key(seed))
    network = init_mlp(key, (OBSERVATION, width, width, 2))
    critic = init_mlp(critic_key, (OBSERVATION, 8, 1))
    rows = np.ones((1, OBSERVATION), np.float32)
    seen = Normaliser(0.5 * rows, 2.0 * rows)  # type: ignore[arg-type]
    return Subspace("cartpole", CATALOGUE[method], seed, Discrete(2), network, critic, seen)


def test_the_first_is_the_policy_itself() -> None:
    single = policy()
    copies = perturbed(single, 5, 0.1)
    for before, after in zip(
        jax.tree.leaves(single.policy), jax.tree.leaves(copies.policy), strict=True
    ):
        np.testing.assert_array_equal(after[:1], before)
        assert after.shape == (5, *before.shape[1:])
        assert after.dtype == before.dtype
    observations = np.random.default_rng(0).normal(size=(50, OBSERVATION)).astype(np.float32)
    own = single.at().outputs(observations)
    np.testing.assert_allclose(copies.at(0).outputs(observations), own, rtol=1e-5, atol=1e-6)
    assert np.abs(copies.at(1).outputs(observations) - own).max() > 1e-3


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.5])
def test_noise_is_a_fraction_of_every_tensors_rms(noise: float) -> None:
    single = policy()
    (_, hidden, _), (_, copied, _) = single.policy.layers, perturbed(single, 4, noise).policy.layers  # type: ignore[union-attr]
    weight = np.asarray(hidden.weight)
    added = np.asarray(copied.weight)[1:] - weight
    # 10,000 numbers a copy: their mean square is known to about 1.4 %.
    sizes = np.sqrt(np.mean(added**2, axis=(1, 2)))
    np.testing.assert_allclose(sizes, noise * np.sqrt(np.mean(weight**2)), rtol=0.05)
    assert abs(added.mean()) < 0.05 * noise * np.sqrt(np.mean(weight**2))
    correlations = np.corrcoef(added.reshape(3, -1)) - np.eye(3)
    assert np.abs(correlations).max() < 0.05, "copies are independent"


def test_the_size_is_each_tensors_own() -> None:
    """A tensor of zeros stays, one a hundred times as large gets a hundred times the noise."""
    small = np.ones((1, 50, 50), np.float32)
    network = MLP((Layer(small, np.zeros((1, 50), np.float32)), Layer(100 * small, small[:, 0])))  # type: ignore[arg-type]
    first, second = noisy(network, 0.1, (0, 1)).layers
    np.testing.assert_array_equal(first.bias, 0.0)
    assert np.std(first.weight - 1.0) == pytest.approx(0.1, rel=0.1)
    assert np.std(second.weight - 100.0) == pytest.approx(10.0, rel=0.1)


def test_copies_are_drawn_from_the_seed() -> None:
    def drawn(seed: int, members: int) -> np.ndarray:
        """What is added to the same policy."""
        single = replace(policy(), seed=seed)
        weights = perturbed(single, members, 0.1).policy.layers[0].weight  # type: ignore[union-attr]
        return np.asarray(weights - weights[:1])

    np.testing.assert_array_equal(drawn(3, 5), drawn(3, 5))
    np.testing.assert_array_equal(drawn(3, 3), drawn(3, 5)[:3])
    assert np.abs(drawn(3, 5)[1:] - drawn(4, 5)[1:]).max() > 1e-3


def test_copies_are_saved_and_loaded_like_any_artefact(tmp_path: Path) -> None:
    copies = [perturbed(policy(seed, width=8), 4, 0.2) for seed in (3, 4)]
    save_subspaces(tmp_path / "copies.safetensors", copies)
    loaded = load_subspaces(tmp_path / "copies.safetensors")
    assert [(s.seed, s.method) for s in loaded] == [(s.seed, s.method) for s in copies]
    assert loaded[0].method.options == {"members": 4, "noise": 0.2}
    seen = np.ones((3, OBSERVATION), np.float32)
    np.testing.assert_array_equal(loaded[1].at(2).outputs(seen), copies[1].at(2).outputs(seen))


def test_only_a_single_policy_is_perturbed() -> None:
    with pytest.raises(SlacklineError, match="run of lop; only a single policy"):
        perturbed(policy(method="lop"), 4, 0.1)


@pytest.mark.parametrize(
    ("members", "noise", "problem"),
    [(1, 0.1, "members is 1"), (4, 0.0, "noise is 0"), (4, float("nan"), "noise is nan")],
)
def test_bad_numbers_are_refused(members: int, noise: float, problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        perturbed(policy(), members, noise)
