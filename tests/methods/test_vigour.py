"""The line of vigour: one policy whose last layer is scaled, in literal numbers and in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

import slackline as sl
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE, method
from slackline.methods.latent import Simplex
from slackline.methods.vigour import Vigour
from slackline.networks.mlp import MLP, Layer, NormedMLP, init_mlp

STEPS = 2_048
TINY: dict[str, Any] = {
    "hyper": sl.Hyper(num_envs=8, num_steps=16, normalise_observation=True, action_std=0.5),
    "steps": STEPS,
    "progress": False,
}
SUITE = "pendulum-continuous"


def affine() -> Any:
    """3 x + 11"""
    weight: Any = np.array([[[3.0]]])
    bias: Any = np.array([[11.0]])
    return MLP((Layer(weight, bias),))


@pytest.mark.parametrize(
    ("z", "gain"), [(1.0, 1.5), (0.0, 0.5), (0.5, 1.0), (0.25, 0.75), (0.9, 1.4)]
)
def test_z_is_how_vigorously_it_acts(z: float, gain: float) -> None:
    vigour, latent = Vigour(cautious=0.5, bold=1.5), Simplex(2)
    anchors = vigour.spelt_out(latent, affine(), seed=0)
    weights: Any = np.array([z, 1.0 - z])
    seen: Any = np.array([100.0])
    assert vigour.at(latent, anchors, weights)(seen) == pytest.approx(311.0 * gain)


@properties
@given(st.floats(0.0, 1.0), st.floats(1.0, 9.0), st.booleans(), st.integers(0, 99))
def test_every_z_scales_the_trained_policys_outputs(
    cautious: float, bold: float, normed: bool, seed: int
) -> None:
    keys = jax.random.split(jax.random.key(seed), 3)
    policy: Any = init_mlp(keys[0], (5, 6, 6, 3))
    policy = NormedMLP(policy.layers) if normed else policy
    vigour, latent = Vigour(cautious=cautious, bold=bold), Simplex(2)
    anchors = vigour.spelt_out(latent, jax.tree.map(np.asarray, policy), seed)
    assert type(anchors) is type(policy)
    x, z = jax.random.normal(keys[1], (20, 5)), latent.sample(keys[2], 20)
    gains = z[:, :1] * bold + z[:, 1:] * cautious
    np.testing.assert_allclose(
        vigour.outputs(latent, anchors, x, z), gains * policy(x), rtol=1e-4, atol=1e-4
    )


def test_it_trains_as_a_single_policy_does(tmp_path: Path) -> None:
    line = sl.train(SUITE, "vigour", seed=3, cautious=0.5, bold=2.0, **TINY)
    single = sl.train(SUITE, "single", seed=3, **TINY)
    *hidden, last = line.policy.layers  # type: ignore[union-attr]
    *its_hidden, its_last = single.policy.layers  # type: ignore[union-attr]
    for mine, theirs in zip(hidden, its_hidden, strict=True):
        assert all((m == t).all() for m, t in zip(mine, theirs, strict=True))
    assert (last.weight == its_last.weight * np.array([2.0, 0.5])[:, None, None]).all()
    saved = sl.load(line.save(tmp_path / "line.safetensors"))
    assert np.array_equal(saved.at(0.2)([0.1, 0.2, 0.3]), line.at(0.2)([0.1, 0.2, 0.3]))
    assert saved.method == line.method


def test_a_single_policy_opens_into_the_same_line() -> None:
    line = sl.train(SUITE, seed=3, **TINY)
    assert line.method == method("vigour")
    opened = sl.train(SUITE, "single", seed=3, **TINY).opened()
    assert opened.method == line.method
    leaves = zip(jax.tree.leaves(opened.policy), jax.tree.leaves(line.policy), strict=True)
    assert all(np.array_equal(mine, theirs) for mine, theirs in leaves)
    assert line.training is not None
    result = opened.adapt(lambda params: params._replace(length=0.5), shots=3, episodes=1)
    assert result.candidates.shape == (3, 2)


def test_what_cannot_be_opened_says_so() -> None:
    line = sl.train(SUITE, "lop", **TINY)
    with pytest.raises(SlacklineError, match="this is a lop; only a single policy can be opened"):
        line.opened()
    single = sl.train(SUITE, "single", **TINY)
    with pytest.raises(SlacklineError, match="method 'vigour' has no option 'trust'"):
        single.opened(trust=0.5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [(SUITE, "vigour"), ("halfcheetah", "vigour"), ("cartpole", "senses"), ("fruitbot", "senses")],
)
def test_the_recommended_method_goes_by_what_the_policy_sees_and_does(
    name: str, expected: str
) -> None:
    assert sl.suite(name).recommended == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"suite": SUITE, "cautious": 1.5}, "cautious is 1.5"),
        ({"suite": SUITE, "bold": 0.5}, "bold is 0.5"),
        ({"suite": "cartpole"}, "method 'vigour' needs continuous actions"),
    ],
)
def test_bad_lines_are_refused(arguments: dict[str, Any], message: str) -> None:
    name, options = arguments["suite"], {k: v for k, v in arguments.items() if k != "suite"}
    with pytest.raises(SlacklineError, match=message):
        sl.train(name, "vigour", **options, steps=STEPS, progress=False)


def test_only_what_is_made_of_a_single_policy_says_so() -> None:
    made = {name for name, one in CATALOGUE.items() if one.made_of_single}
    assert made == {"senses", "vigour", "perturbed"}
