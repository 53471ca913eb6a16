"""Angles and distances between anchors, by literal numbers."""

from __future__ import annotations

import numpy as np

from slackline.networks.geometry import geometry
from slackline.networks.mlp import MLP, Layer


def test_cosine_and_distance_of_two_anchors() -> None:
    weight = np.array([[[3.0, 0.0]], [[0.0, 4.0]]], np.float32)  # at right angles
    bias = np.array([[1.0, 0.0], [2.0, 0.0]], np.float32)  # alike
    found = geometry(MLP((Layer(weight, bias),))).pairs  # type: ignore[arg-type]
    np.testing.assert_allclose(found.by_tensor, [0.5])
    np.testing.assert_allclose(found.cosine, [2.0 / (np.sqrt(10.0) * np.sqrt(20.0))])
    np.testing.assert_allclose(found.distance, [np.sqrt(9.0 + 16.0 + 1.0)])


def test_one_anchor_has_no_pairs_and_zeros_have_no_angle() -> None:
    one = MLP((Layer(np.ones((1, 2, 2)), np.zeros((1, 2))),))  # type: ignore[arg-type]
    assert geometry(one).pairs.cosine.shape == (0,)
    zeros = MLP((Layer(np.zeros((2, 2, 2)), np.zeros((2, 2))),))  # type: ignore[arg-type]
    np.testing.assert_array_equal(geometry(zeros).pairs.cosine, [0.0])
