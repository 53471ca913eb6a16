"""One policy as a C header for microcontrollers: weights and a loop, no allocation, float32."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from slackline.envs.api import Continuous, Discrete
from slackline.errors import SlacklineError
from slackline.export.export import Exported
from slackline.networks.mlp import EPSILON, MLP
from slackline.subspace.policy import affine_maps

AFFINE = """\
static inline void @_affine(const float *x, int inputs, const float *weight, const float *bias,
                            int outputs, float *y)
{
    for (int j = 0; j < outputs; j++)
        y[j] = bias[j];
    for (int i = 0; i < inputs; i++)
        for (int j = 0; j < outputs; j++)
            y[j] += x[i] * weight[i * outputs + j];
}
"""

RELU = """\
static inline void @_activate(float *x, int size)
{
    for (int i = 0; i < size; i++)
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
"""

NORMED_RELU = """\
/* LayerNorm and ReLU; the weights before it see to it that the mean of x is 0. */
static inline void @_activate(float *x, int size)
{
    float squares = 0.0f;
    for (int i = 0; i < size; i++)
        squares += x[i] * x[i];
    const float scale = 1.0f / sqrtf(squares / (float)size + EPSILON);
    for (int i = 0; i < size; i++)
        x[i] = x[i] > 0.0f ? x[i] * scale : 0.0f;
}
"""

DISCRETE = """\
/* The action, 0 to @_NUM_ACTIONS - 1. */
static inline int @_act(const float observation[@_OBSERVATION_SIZE])
{
    float outputs[@_NUM_OUTPUTS];
    int best = 0;
    @_outputs(observation, outputs);
    for (int i = 1; i < @_NUM_OUTPUTS; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}
"""

CONTINUOUS = """\
/* The action, every number between its bounds. */
static inline void @_act(const float observation[@_OBSERVATION_SIZE],
                         float action[@_ACTION_SIZE])
{
    @_outputs(observation, action);
    for (int i = 0; i < @_ACTION_SIZE; i++)
        action[i] = @_low[i] + (tanhf(action[i]) + 1.0f) * @_half_range[i];
}
"""


def written(exported: Exported) -> bytes:
    """The header as text."""
    network = exported.network
    if exported.z is None:
        raise SlacklineError("a C header holds one policy and no line of them; give a z")
    if not isinstance(network, MLP):
        raise SlacklineError("a C header sees vectors, and this policy pictures; export to onnx")
    name = identifier(exported.name)
    parts = [*_top(exported, network, name), *_weights(network)]
    parts += [AFFINE, _activation(network), _outputs(network), *_head(exported.subspace.action)]
    text = "\n".join([*parts, "#endif\n"])
    return text.replace("@_", f"{name}_").encode()


def identifier(name: str) -> str:
    """A name that C allows: "policy-0.3" -> "policy_0_3"."""
    tame = re.sub(r"\W", "_", name, flags=re.ASCII)
    return tame if tame[:1].isalpha() else f"policy_{tame}"


def _top(exported: Exported, network: MLP, name: str) -> Iterator[str]:
    """What it is, as a comment, and its sizes."""
    facts = [f" * {key}: {_in_comment(value)}" for key, value in exported.facts.items()]
    yield "\n".join(["/*", *facts, " */", f"#ifndef {name.upper()}_H", f"#define {name.upper()}_H"])
    yield "\n#include <math.h>\n"
    action = exported.subspace.action
    count = (
        ("NUM_ACTIONS", action.num_actions)
        if isinstance(action, Discrete)
        else (
            "ACTION_SIZE",
            action.size,
        )
    )
    sizes = {
        "OBSERVATION_SIZE": network.layers[0].weight.shape[-2],
        "NUM_OUTPUTS": network.layers[-1].weight.shape[-1],
        count[0]: count[1],
    }
    yield "\n".join(f"#define @_{key} {size}" for key, size in sizes.items()) + "\n"


def _in_comment(text: str) -> str:
    """Text that neither ends the comment nor the line, in ASCII."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return re.sub(r"[\x00-\x1f\x7f]", " ", plain).replace("*/", "* /").replace("@_", "@ _")


def _weights(network: MLP) -> Iterator[str]:
    for i, (weight, bias) in enumerate(affine_maps(network)):
        yield numbers(f"@_weight_{i}", weight)
        yield numbers(f"@_bias_{i}", bias)


def numbers(name: str, array: np.ndarray) -> str:
    """A constant array, with as many digits as tell every float32 from its neighbours."""
    words = [np.format_float_scientific(x, unique=True, trim="0") + "f" for x in array.ravel()]
    rows = [", ".join(words[i : i + 6]) for i in range(0, len(words), 6)]
    return f"static const float {name}[{array.size}] = {{\n    " + ",\n    ".join(rows) + "\n};\n"


def _activation(network: MLP) -> str:
    if type(network) is MLP:
        return RELU
    return NORMED_RELU.replace("EPSILON", f"{EPSILON:g}f")


def _outputs(network: MLP) -> str:
    """The function that runs the layers, between two buffers on the stack."""
    sizes = [network.layers[0].weight.shape[-2], *(x.bias.shape[-1] for x in network.layers)]
    last, width = len(network.layers) - 1, max(sizes[1:-1], default=0)
    lines = [f"    float first[{width}], second[{width}];"] if last > 1 else []
    lines += [f"    float first[{width}];"] if last == 1 else []
    source = "observation"
    for i in range(last + 1):
        target = "outputs" if i == last else ("first", "second")[i % 2]
        maps = f"@_weight_{i}, @_bias_{i}, {sizes[i + 1]}"
        lines.append(f"    @_affine({source}, {sizes[i]}, {maps}, {target});")
        if i < last:
            lines.append(f"    @_activate({target}, {sizes[i + 1]});")
        source = target
    return "\n".join(
        [
            "/* What the network says: logits, or means before squashing. */",
            "static inline void @_outputs(const float observation[@_OBSERVATION_SIZE],",
            "                             float outputs[@_NUM_OUTPUTS])",
            "{",
            *lines,
            "}\n",
        ]
    )


def _head(action: Discrete | Continuous) -> Iterator[str]:
    if isinstance(action, Discrete):
        yield DISCRETE
        return
    bounds = [np.asarray(bound, np.float32) for bound in (action.low, action.high)]
    low, high = (np.broadcast_to(bound, (action.size,)) for bound in bounds)
    yield numbers("@_low", low)
    yield numbers("@_half_range", np.float32(0.5) * (high - low))
    yield CONTINUOUS
