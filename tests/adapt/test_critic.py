"""The critic's ranking of z's: a linear critic, whose values are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slackline.api import Line
from slackline.envs.api import Discrete
from slackline.errors import SlacklineError
from slackline.methods.catalogue import method
from slackline.networks.mlp import MLP, Layer
from slackline.networks.normaliser import Normaliser


def layer(weight: Any) -> Layer:
    """Without bias."""
    none: Any = np.zeros((weight.shape[0], weight.shape[2]), np.float32)
    return Layer(weight, none)


def line(name: str = "lop", normaliser: Normaliser | None = None) -> Line:
    """V(s, z) = s_1 + 10 z_1, where s_1 is not negative."""
    found: Any = method(name)
    size = found.latent.size
    weight = np.zeros((1, 2 + size, 2), np.float32)
    weight[0, 0, 0] = weight[0, 2, 1] = 1.0
    last = layer(np.array([[[1.0], [10.0]]], np.float32))
    critic = MLP((layer(weight), last))
    policy = MLP((layer(np.zeros((2, 2, 2), np.float32)),))
    return Line("cartpole", found, 0, Discrete(2), policy, critic, normaliser)


def test_z_are_ranked_by_the_mean_value_of_the_first_observations() -> None:
    """V = s_1 + 10 z_1: the mean of s_1 over the observations is added to all."""
    ranking = line().ranking(np.array([[1.0, 0.0], [3.0, 0.0]]))
    np.testing.assert_allclose(ranking.z[0], [1.0, 0.0])
    np.testing.assert_allclose(ranking.values, 2.0 + 10.0 * ranking.z[:, 0], rtol=1e-6)
    assert (np.diff(ranking.values) <= 0.0).all()


def test_observations_are_normalised_as_in_training() -> None:
    mean, std = np.array([[[2.0, 0.0]], [[0.5, 1.0]]], np.float32)
    moments: Any = Normaliser(mean, std)  # type: ignore[arg-type]
    ranking = line(normaliser=moments).ranking([3.0, 0.0])
    assert ranking.values[0] == pytest.approx((3.0 - 2.0) / 0.5 + 10.0)


@pytest.mark.parametrize("seen", [[1.0], [[1.0, 2.0, 3.0]], [np.nan, 0.0], [[[1.0, 2.0]]]])
def test_observations_of_another_shape(seen: Any) -> None:
    with pytest.raises(SlacklineError, match="observations"):
        line().ranking(seen)


def test_policies_that_were_trained_apart_have_no_critic_of_z() -> None:
    with pytest.raises(SlacklineError, match="'ensemble' has no critic that sees z"):
        line("ensemble").ranking([0.0, 0.0])
