"""Policies of several trainings side by side, on NumPy, for loops that act many times in a row.

A compiled call costs as much as several small networks: where environments step in Python, the
policies act in NumPy beside them. What does not depend on the observation is done once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackline.networks.mlp import MLP, NormedMLP, layer_norm


class StackedMLP:
    """The networks of C copies, of N observations each: (C, N, in) -> (C, N, out), float32.

    Every tensor of `network` has a leading axis C. As in `Layer.mixed`, a layer of K anchors is one
    product with [W_K, W_1 − W_K, …] side by side and a weighted sum.
    """

    def __init__(self, network: MLP):
        self._normed = isinstance(network, NormedMLP)
        self._layers = [side_by_side(layer.weight, layer.bias) for layer in network.layers]
        self._num_anchors = network.layers[0].bias.shape[1]

    def __call__(self, x: np.ndarray, coefficients: np.ndarray | None) -> np.ndarray:
        """`coefficients` (C, N, K), of sum 1; one anchor needs none."""
        *hidden, last = self._layers
        for layer in hidden:
            x = self._affine(layer, x, coefficients)
            if self._normed:
                x = np.asarray(layer_norm(x))  # type: ignore[arg-type]
            np.maximum(x, 0.0, out=x)
        return self._affine(last, x, coefficients)

    def _affine(self, layer: tuple[np.ndarray, np.ndarray], x: np.ndarray, c: Any) -> np.ndarray:
        weight, bias = layer
        x = x @ weight
        x += bias
        if self._num_anchors == 1:
            return x
        parts = x.reshape(*x.shape[:-1], self._num_anchors, -1)
        mixed = parts[..., 0, :]
        for k in range(self._num_anchors - 1):
            mixed = mixed + c[..., k, None] * parts[..., k + 1, :]
        return mixed


def side_by_side(weight: Any, bias: Any) -> tuple[np.ndarray, np.ndarray]:
    """(C, K, in, out) and (C, K, out) as (C, in, K · out) and (C, 1, K · out), from the last."""
    weight, bias = np.asarray(weight, np.float32), np.asarray(bias, np.float32)
    copies, anchors, fan_in, fan_out = weight.shape
    weight, bias = (np.concatenate([x[:, -1:], x[:, :-1] - x[:, -1:]], 1) for x in (weight, bias))
    stacked = np.moveaxis(weight, 1, 2).reshape(copies, fan_in, anchors * fan_out)
    return np.ascontiguousarray(stacked), bias.reshape(copies, 1, anchors * fan_out)
