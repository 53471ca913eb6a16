"""A policy, or a whole line with z as an input, as an ONNX model.

Inputs are batches: `observation` (batch, size), or pictures (batch, H, W, C) of bytes, and for a
line `z` (batch, size). Outputs are `action` and `outputs` (logits, or means before squashing). The
normaliser is in the first layer. Several anchors are computed side by side, one product a layer,
and summed with the weights of each row's z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from slackline.envs.api import Continuous, Discrete
from slackline.errors import needed
from slackline.export.export import Exported
from slackline.methods.conditioning import Concat
from slackline.methods.latent import Bezier, Latent
from slackline.networks.impala import WHITE, Block, Convolution, Impala
from slackline.networks.mlp import EPSILON, MLP, Layer, NormedMLP
from slackline.networks.strided import Strided

OPSET, IR = 17, 8
"""Of 2022: anything that runs ONNX today reads them."""

BATCH = "batch"


def written(exported: Exported) -> bytes:
    """The model as bytes."""
    onnx = needed("onnx", "writing an ONNX model needs onnx", "export")
    graph, subspace, network = Graph(onnx), exported.subspace, exported.network
    line, concat = exported.z is None, isinstance(subspace.method.conditioning, Concat)
    weights = anchor_weights(graph, subspace.method.latent, "z") if line and not concat else None
    z = "z" if line and concat else None
    if isinstance(network, Impala):
        z = z if network.planes is None else graph.constant(network.planes)
        num_z = subspace.method.latent.size if concat else 0
        outputs = pictures(graph, network, subspace.observation_shape, weights, z, num_z)
    else:
        x = graph.node("Concat", "observation", z, axis=1) if z else "observation"
        outputs = mlp(graph, network, x, weights)
    graph.node("Identity", outputs, name="outputs")
    head(graph, subspace.action, outputs)
    model = graph.model(exported, network.head if isinstance(network, Impala) else network)
    return model.SerializeToString()


class Graph:
    """Nodes and constants of a model that is being built; a tensor is known by its name."""

    def __init__(self, onnx: Any):
        self._onnx, self._nodes, self._constants = onnx, [], []

    def node(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Compute something; its name."""
        name = name or f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """A constant tensor; its name."""
        name, array = f"constant_{len(self._constants)}", np.array(values, dtype)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def model(self, exported: Exported, last: MLP) -> Any:
        """The whole, checked."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        subspace = exported.subspace
        seen = types.UINT8 if subspace.picture else types.FLOAT
        shape = [BATCH, *subspace.observation_shape]
        inputs = [helper.make_tensor_value_info("observation", seen, shape)]
        if exported.z is None:
            z = [BATCH, subspace.method.latent.size]
            inputs.append(helper.make_tensor_value_info("z", types.FLOAT, z))
        num_outputs, action = last.layers[-1].bias.shape[-1], subspace.action
        discrete = isinstance(action, Discrete)
        acts = (types.INT64, [BATCH]) if discrete else (types.FLOAT, [BATCH, action.size])
        outputs = [
            helper.make_tensor_value_info("action", *acts),
            helper.make_tensor_value_info("outputs", types.FLOAT, [BATCH, num_outputs]),
        ]
        graph = helper.make_graph(self._nodes, "slackline", inputs, outputs, self._constants)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], producer_name="slackline")
        model.ir_version = IR
        helper.set_model_props(model, exported.facts)
        self._onnx.checker.check_model(model)
        return model


def anchor_weights(graph: Graph, latent: Latent, z: str) -> str:
    """Anchor coefficients (batch, N) of z: `latent.weights` as nodes."""
    if not isinstance(latent, Bezier):
        return z  # a simplex's z, or one-hot, is the coefficients
    degree, powers = latent.anchors - 1, np.arange(latent.anchors)
    ways = graph.constant([math.comb(degree, k) for k in powers])
    rest = graph.node("Sub", graph.constant(1.0), z)
    rising = graph.node("Pow", z, graph.constant(powers))
    falling = graph.node("Pow", rest, graph.constant(degree - powers))
    return graph.node("Mul", graph.node("Mul", rising, falling), ways)


def mlp(graph: Graph, network: MLP, x: str, weights: str | None) -> str:
    """The network's outputs for x (batch, in)."""
    for layer in network.layers[:-1]:
        x = affine(graph, layer, x, weights)
        if isinstance(network, NormedMLP):
            ones = graph.constant(np.ones(layer.bias.shape[-1]))
            x = graph.node("LayerNormalization", x, ones, axis=-1, epsilon=EPSILON)
        x = graph.node("Relu", x)
    return affine(graph, network.layers[-1], x, weights)


def affine(graph: Graph, layer: Layer, x: str, weights: str | None) -> str:
    """x (batch, in) to (batch, out), the anchors combined by weights (batch, N)."""
    weight, bias = np.asarray(layer.weight), np.asarray(layer.bias)
    anchors, fan_in, fan_out = weight.shape
    stacked = np.moveaxis(weight, 0, 1).reshape(fan_in, anchors * fan_out)
    y = graph.node("MatMul", x, graph.constant(stacked))
    y = graph.node("Add", y, graph.constant(bias.reshape(-1)))
    return y if weights is None else combined(graph, y, weights, (anchors, fan_out))


def combined(graph: Graph, parts: str, weights: str, shape: tuple[int, ...]) -> str:
    """Σ_k c_k y_k, of parts (batch, N · out, ...) as (batch, N, out, ...); shape[0] is N."""
    parts = graph.node("Reshape", parts, graph.constant([0, *shape], np.int64))
    axes = graph.constant(range(2, len(shape) + 1), np.int64)
    scaled = graph.node("Mul", parts, graph.node("Unsqueeze", weights, axes))
    return graph.node("ReduceSum", scaled, graph.constant([1], np.int64), keepdims=0)


def pictures(
    graph: Graph,
    network: Impala,
    shape: tuple[int, ...],
    weights: str | None,
    z: str | None,
    num_z: int,
) -> str:
    """The outputs of `networks/impala.py` for pictures (batch, H, W, C); channels come first
    here. `z`, if it is seen beside every picture, is `num_z` constant planes of it."""
    height, width, colours = shape
    p = network.patch(colours, num_z)
    channels, sides = colours * p**2, (height // p, width // p)
    x = graph.node("Div", graph.node("Cast", "observation", to=1), graph.constant(WHITE))
    squares = graph.constant([-1, sides[0], p, sides[1], p, colours], np.int64)
    x = graph.node("Transpose", graph.node("Reshape", x, squares), perm=[0, 2, 4, 5, 1, 3])
    x = graph.node("Reshape", x, graph.constant([-1, channels, *sides], np.int64))
    if z is not None:
        zeros = graph.node("Mul", graph.node("ReduceMean", x, axes=[1]), graph.constant(0.0))
        corners = graph.node("Unsqueeze", z, graph.constant([2, 3], np.int64))
        x = graph.node("Concat", x, graph.node("Add", zeros, corners), axis=1)
    for block in (*network.shared, network.last):
        halve = strided_block if isinstance(block, Strided) else residual_block
        x, sides = halve(graph, block, x, sides, weights)  # type: ignore[arg-type]
    x = graph.node("Transpose", graph.node("Relu", x), perm=[0, 2, 3, 1])
    return mlp(graph, network.head, graph.node("Flatten", x, axis=1), weights)


def residual_block(
    graph: Graph, block: Block, x: str, sides: tuple[int, int], weights: str | None
) -> tuple[str, tuple[int, int]]:
    """A convolution, half the size, and residual pairs; also the new height and width."""
    x = convolution(graph, block.entry, x, sides, weights)
    # Every second pixel and its two successors: rows and columns are missing at the end alone.
    pads = [0, 0, *(1 + side % 2 for side in sides)]
    x = graph.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=pads)
    sides = -(-sides[0] // 2), -(-sides[1] // 2)
    for first, second in block.residual:
        inner = convolution(graph, first, graph.node("Relu", x), sides, weights)
        inner = convolution(graph, second, graph.node("Relu", inner), sides, weights)
        x = graph.node("Add", x, inner)
    return x, sides


def strided_block(
    graph: Graph, block: Strided, x: str, sides: tuple[int, int], weights: str | None
) -> tuple[str, tuple[int, int]]:
    """A convolution, mostly at every second pixel, and ReLU; also the new height and width."""
    around: Any = {"strides": [1, 1], "pads": [0, 0, 0, 0]}
    if block.halves:
        around = {"strides": [2, 2], "pads": [1, 1, *(side % 2 for side in sides)]}
        sides = -(-sides[0] // 2), -(-sides[1] // 2)
    return graph.node("Relu", convolution(graph, block, x, sides, weights, **around)), sides


def convolution(
    graph: Graph,
    layer: Convolution | Strided,
    x: str,
    sides: tuple[int, int],
    weights: str | None,
    pads: Sequence[int] = (1, 1, 1, 1),
    strides: Sequence[int] = (1, 1),
) -> str:
    """With zeros around, of x (batch, in, H, W) to (batch, out, *sides), the anchors combined by
    weights (batch, N)."""
    weight, bias = np.asarray(layer.weight), np.asarray(layer.bias)
    anchors, *square, fan_in, fan_out = weight.shape
    kernels = weight.transpose(0, 4, 3, 1, 2).reshape(anchors * fan_out, fan_in, *square)
    given = (x, graph.constant(kernels), graph.constant(bias.reshape(-1)))
    y = graph.node("Conv", *given, kernel_shape=square, pads=pads, strides=strides)
    if weights is None or anchors == 1:
        return y
    return combined(graph, y, weights, (anchors, fan_out, *sides))


def head(graph: Graph, action: Discrete | Continuous, outputs: str) -> None:
    """The deterministic action as the environment takes it."""
    if isinstance(action, Discrete):
        graph.node("ArgMax", outputs, name="action", axis=1, keepdims=0)
        return
    low, high = (np.asarray(bound, np.float32) for bound in (action.low, action.high))
    raised = graph.node("Add", graph.node("Tanh", outputs), graph.constant(1.0))
    scaled = graph.node("Mul", raised, graph.constant(np.float32(0.5) * (high - low)))
    graph.node("Add", scaled, graph.constant(low), name="action")
