"""Anchors that trust their sensors differently, in literal numbers, on pictures and in training."""

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
from slackline.methods.catalogue import method
from slackline.methods.latent import Simplex
from slackline.methods.senses import Senses
from slackline.networks.impala import Block, Impala, init_impala
from slackline.networks.mlp import MLP, Layer, NormedMLP, init_mlp
from slackline.networks.strided import Strided

STEPS = 2_048
TINY: dict[str, Any] = {
    "hyper": sl.Hyper(num_envs=8, num_steps=16),
    "steps": STEPS,
    "progress": False,
}
THREE = Simplex(3, "corners")


def test_gains_multiply_the_inputs_and_nothing_else() -> None:
    """3 x + 5 y + 11"""
    weight: Any = np.array([[[3.0], [5.0]]])
    bias: Any = np.array([[11.0]])
    anchors = MLP((Layer(weight, bias),)).weighing(np.array([[1.0, 1.0], [2.0, 0.5]]))
    seen: Any = np.array([100.0, 1000.0])
    for z, expected in [(1.0, 5311.0), (0.0, 3111.0), (0.5, 4211.0)]:
        weights: Any = np.array([z, 1.0 - z])
        assert anchors.mix(weights)(seen) == pytest.approx(expected)


@properties
@given(st.floats(0.01, 2.0), st.booleans(), st.integers(0, 99))
def test_every_z_weighs_the_trained_policys_inputs(trust: float, normed: bool, seed: int) -> None:
    keys = jax.random.split(jax.random.key(seed), 3)
    policy: Any = init_mlp(keys[0], (5, 6, 6, 3))
    policy = NormedMLP(policy.layers) if normed else policy
    senses = Senses(trust=trust)
    anchors = senses.spelt_out(THREE, jax.tree.map(np.asarray, policy), seed)
    assert type(anchors) is type(policy)
    x, z = jax.random.normal(keys[1], (20, 5)), THREE.sample(keys[2], 20)
    gains = z @ senses.gains(3, 5, seed)
    expected = policy(x * gains)
    scale = float(np.abs(expected).max()) + 1.0
    found = senses.outputs(THREE, anchors, x, z)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * scale)


def test_the_centre_is_the_policy_that_was_trained() -> None:
    gains = Senses(trust=0.7).gains(9, 4, seed=3)
    assert (gains > 0.0).all()
    np.testing.assert_allclose(gains.mean(axis=0), 1.0, rtol=1e-5)
    line = sl.train("cartpole", seed=3, **TINY)
    single = sl.train("cartpole", "single", seed=3, **TINY)
    assert line.method == method("senses")
    centre = line.network_at(np.full(9, 1.0 / 9.0))
    for mine, theirs in zip(
        jax.tree.leaves(centre), jax.tree.leaves(single.network_at()), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_how_far_trust_varies_is_its_logarithms_standard_deviation() -> None:
    drawn = np.log(Senses(trust=0.3).gains(64, 4_000, seed=0))
    assert drawn.std() == pytest.approx(0.3, rel=0.02)
    assert abs(drawn.mean() + 0.3**2 / 2.0) < 0.005


def test_seeds_have_gains_of_their_own_and_always_the_same() -> None:
    senses = Senses()
    assert (senses.gains(9, 4, seed=1) == senses.gains(9, 4, seed=1)).all()
    assert (senses.gains(9, 4, seed=1) != senses.gains(9, 4, seed=2)).all()


@pytest.mark.parametrize("kind", [Block, Strided])
@pytest.mark.parametrize("channels", [(3,), (4, 3)])
def test_on_pictures_the_last_block_sees_its_channels_weighed(
    kind: Any, channels: tuple[int, ...]
) -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    network = init_impala(keys[0], (8, 8, 3), 0, 2, channels, (5, 2), kind=kind)
    policy: Impala = jax.tree.map(np.asarray, network)
    inputs = channels[-2] if len(channels) > 1 else 12
    assert policy.num_weighed == inputs
    gains = Senses().gains(3, inputs, seed=5)
    anchors = policy.weighing(gains)
    assert anchors.fits((8, 8, 3), 0)
    picture: Any = np.asarray(jax.random.randint(keys[1], (4, 8, 8, 3), 0, 255, np.uint8))
    weights: Any = np.array([0.0, 1.0, 0.0], np.float32)
    first = policy.last.entry if isinstance(policy.last, Block) else policy.last
    weighed = first._replace(weight=first.weight * gains[1][:, None])
    last = policy.last._replace(entry=weighed) if isinstance(policy.last, Block) else weighed
    expected = policy._replace(last=last)(picture)  # type: ignore[arg-type]
    np.testing.assert_allclose(anchors.mix(weights)(picture), expected, rtol=1e-4, atol=1e-5)
    alone: Any = np.ones((3, 1)) / 3.0
    np.testing.assert_allclose(
        anchors.mix(alone[:, 0].astype(np.float32))(picture), policy(picture), rtol=1e-3, atol=1e-4
    )


def test_a_single_policy_opens_into_the_same_anchors(tmp_path: Path) -> None:
    line = sl.train("cartpole", "senses", seed=3, trust=0.2, anchors=4, **TINY)
    opened = sl.train("cartpole", "single", seed=3, **TINY).opened(trust=0.2, anchors=4)
    assert opened.method == line.method
    leaves = zip(jax.tree.leaves(opened.policy), jax.tree.leaves(line.policy), strict=True)
    assert all(np.array_equal(mine, theirs) for mine, theirs in leaves)
    saved = sl.load(line.save(tmp_path / "line.safetensors"))
    z = [0.7, 0.1, 0.1, 0.1]
    seen = [0.0, 0.1, 0.02, -0.1]
    assert np.array_equal(saved.at(z)(seen), line.at(z)(seen))
    assert saved.method == line.method


def test_ten_candidates_are_the_trained_policy_and_the_nine_anchors() -> None:
    found = method("senses").latent.candidates(10)
    np.testing.assert_allclose(found[0], np.full(9, 1.0 / 9.0), rtol=1e-6)
    assert (found[1:] == np.eye(9)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trust": 0.0}, "trust is 0"),
        ({"trust": -1.0}, "trust is -1"),
        ({"trust": float("nan")}, "trust is nan"),
        ({"anchors": 1}, "anchors is 1"),
        ({"cautious": 0.4}, "method 'senses' has no option 'cautious'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SlacklineError, match=message):
        sl.train("cartpole", "senses", **options, steps=STEPS, progress=False)
