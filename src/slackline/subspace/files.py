"""Subspace files: safetensors with every seed's networks, and a header of plain JSON.

The names of tensors are spelt out here, so that renaming a field of a network changes no file:

policy.layers.I.weight, .bias            an MLP, layer by layer; `critic` has the same
policy.shared.I.entry.weight, .bias      pictures: the blocks that anchors share
policy.shared.I.residual.J.K.weight ...  their residual pairs
policy.last.entry.weight ...             the last block, of which each anchor has its own
policy.last.strided.weight, .bias        instead of an entry and pairs: a strided block
policy.head.layers.I.weight ...          the layers after it
normaliser.mean, .std                    what observations were normalised by

All are float32 with a leading axis of seeds, then one of anchors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slackline.arrays import tree_map
from slackline.envs.api import Continuous, Discrete, action_from_json, action_to_json
from slackline.errors import SlacklineError, spelt
from slackline.io.files import check_format
from slackline.io.tensors import read_tensors, write_tensors
from slackline.methods.catalogue import method
from slackline.methods.method import Method
from slackline.methods.training_returns import TrainingReturns
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import RESIDUALS, Block, Convolution, Impala
from slackline.networks.mlp import MLP, Layer, NormedMLP
from slackline.networks.normaliser import Normaliser
from slackline.networks.strided import Strided
from slackline.subspace.artefact import Subspace

FORMAT = "slackline-subspace"
SCHEMA = 2
"""Files that an earlier reader would misread have it: those with LayerNorm, and those of users'
environments, which it would import. The rest say 1."""

Named = Iterator[tuple[str, Any]]


def save_subspaces(path: Path, subspaces: list[Subspace]) -> None:
    """Several seeds of one training in one file."""
    first = subspaces[0]
    each = [dict(_named(subspace)) for subspace in subspaces]
    tensors = {name: np.stack([tensors[name] for tensors in each]) for name in each[0]}
    header = {
        "format": FORMAT,
        "schema": SCHEMA if isinstance(first.policy, NormedMLP) or first.spec else 1,
        "suite": first.suite,
        "method": first.method.name,
        "options": first.method.options,
        "seeds": [s.seed for s in subspaces],
        "action": action_to_json(first.action),
    } | ({} if first.picture is None else {"picture": first.picture})
    if isinstance(first.policy, NormedMLP):
        header["layer_norm"] = True
    if first.spec is not None:
        header["spec"] = first.spec
    if any(s.training is not None for s in subspaces):
        header["training"] = [s.training.to_json() if s.training else None for s in subspaces]
    write_tensors(path, tensors, header)


# Names


def _named(subspace: Subspace) -> Named:
    """Every tensor of a subspace by its name in files."""
    policy, critic = subspace.policy, subspace.critic
    if isinstance(policy, Impala):
        for i, block in enumerate(policy.shared):
            yield from _block_named(f"policy.shared.{i}", block)
        yield from _block_named("policy.last", policy.last)
        yield from _mlp_named("policy.head", policy.head)
    else:
        yield from _mlp_named("policy", policy)
    if isinstance(critic, MLP):
        yield from _mlp_named("critic", critic)
    if subspace.normaliser is not None:
        yield "normaliser.mean", subspace.normaliser.mean
        yield "normaliser.std", subspace.normaliser.std


def _mlp_named(name: str, network: MLP) -> Named:
    for i, layer in enumerate(network.layers):
        yield f"{name}.layers.{i}.weight", layer.weight
        yield f"{name}.layers.{i}.bias", layer.bias


def _block_named(name: str, block: Block | Strided) -> Named:
    if isinstance(block, Strided):
        yield from _convolution_named(f"{name}.strided", block)
        return
    yield from _convolution_named(f"{name}.entry", block.entry)
    for i, pair in enumerate(block.residual):
        for j, convolution in enumerate(pair):
            yield from _convolution_named(f"{name}.residual.{i}.{j}", convolution)


def _convolution_named(name: str, convolution: Convolution | Strided) -> Named:
    yield f"{name}.weight", convolution.weight
    yield f"{name}.bias", convolution.bias


class _Tensors:
    """A file's tensors, each taken once by its name."""

    def __init__(self, path: Path, tensors: Mapping[str, np.ndarray]):
        self._path, self._left = path, dict(tensors)

    def take(self, name: str) -> Any:
        if name not in self._left:
            raise _Unfit(f"tensor {name!r} is missing or does not belong here")
        tensor = self._left.pop(name)
        if tensor.dtype != np.float32:
            raise _Unfit(f"tensor {name!r} is {tensor.dtype}, expected float32")
        return tensor

    def count(self, start: str, end: str) -> int:
        """How many names look like START.I.END for I = 0, 1, …"""
        return sum(name.startswith(f"{start}.") and name.endswith(end) for name in self._left)

    def has(self, start: str) -> bool:
        return any(name.startswith(start) for name in self._left)

    def insist_on_none_left(self) -> None:
        if self._left:
            raise _Unfit(f"tensor {min(self._left)!r} is missing or does not belong here")


class _Unfit(SlacklineError):  # noqa: N818
    """Tensors that are not those of a subspace; what is said of them lacks the file's name."""


# Reading


def load_subspaces(path: Path) -> list[Subspace]:
    """Every seed of a subspace file."""
    tensors, header = read_tensors(path)
    check_format(path, header.get("format"), header.get("schema"), expected=FORMAT, newest=SCHEMA)
    try:
        found = method(header["method"], **header["options"])
        action = action_from_json(header["action"])
        suite, seeds = str(header["suite"]), [int(seed) for seed in header["seeds"]]
        spec, picture = header.get("spec"), _picture(header.get("picture"))
        if not isinstance(spec, dict | None):
            raise ValueError(f"spec is {spelt(spec)}")
        training = _training(header.get("training"), len(seeds), found.latent.size)
        networks = _networks(_Tensors(path, tensors), picture, header.get("layer_norm", False))
        if picture is None:
            _check_fit(found, action, len(seeds), **networks)
        else:
            _check_pictures_fit(found, action, len(seeds), picture, networks["policy"])
    except _Unfit as error:
        raise SlacklineError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, SlacklineError) as error:
        raise SlacklineError(f"{path}: has an unusable header ({error})") from None

    def one(i: int, seed: int) -> Subspace:
        own = {name: tree_map(lambda x: x[i], stacked) for name, stacked in networks.items()}
        kept = {"picture": picture, "training": training[i], "spec": spec, "where": path}
        return Subspace(suite, found, seed, action, **own, **kept)

    return [one(i, seed) for i, seed in enumerate(seeds)]


def _networks(tensors: _Tensors, picture: Any, normed: Any) -> dict[str, Any]:
    """The networks of all seeds, stacked as they are in the file."""
    if not isinstance(normed, bool) or (picture and normed):
        raise ValueError(f"layer_norm is {spelt(normed)}")
    if picture:
        networks: dict[str, Any] = {"policy": _impala(tensors), "critic": ()}
    else:
        plain = _mlp(tensors, "policy")
        policy = NormedMLP(plain.layers) if normed else plain
        networks = {"policy": policy, "critic": _mlp(tensors, "critic")}
    if tensors.has("normaliser."):
        moments = tensors.take("normaliser.mean"), tensors.take("normaliser.std")
        networks["normaliser"] = Normaliser(*moments)
    tensors.insist_on_none_left()
    return networks


def _mlp(tensors: _Tensors, name: str) -> MLP:
    """The network called `name`, checked for consistent shapes."""
    layers: list[Layer] = []
    for i in range(tensors.count(f"{name}.layers", ".weight")):
        weight = tensors.take(f"{name}.layers.{i}.weight")
        bias = tensors.take(f"{name}.layers.{i}.bias")
        seeds, anchors, _, fan_out = weight.shape
        if i and layers[-1].weight.shape[-1] != weight.shape[-2]:
            raise ValueError(f"layer {i} of the {name} does not fit the layer before it")
        if bias.shape != (seeds, anchors, fan_out) or (i and layers[0].weight.shape[0] != seeds):
            raise ValueError(f"the bias of layer {i} of the {name} does not fit its weight")
        layers.append(Layer(weight, bias))
    if not layers:
        raise ValueError(f"there is no {name} in it")
    return MLP(tuple(layers))


def _impala(tensors: _Tensors) -> Impala:
    """The network of a policy that sees pictures."""

    def convolution(name: str) -> Convolution:
        return Convolution(tensors.take(f"{name}.weight"), tensors.take(f"{name}.bias"))

    def block(name: str) -> Block | Strided:
        if tensors.has(f"{name}.strided."):
            return Strided(*convolution(f"{name}.strided"))
        pairs = [[f"{name}.residual.{i}.{j}" for j in range(2)] for i in range(RESIDUALS)]
        residual = tuple((convolution(a), convolution(b)) for a, b in pairs)
        return Block(convolution(f"{name}.entry"), residual)

    num_shared = sum(
        tensors.count("policy.shared", f".{kind}.weight") for kind in ("entry", "strided")
    )
    shared = tuple(block(f"policy.shared.{i}") for i in range(num_shared))
    return Impala(shared, block("policy.last"), _mlp(tensors, "policy.head"))


def _training(values: Any, num_seeds: int, size: int) -> list[TrainingReturns | None]:
    """The training returns of every seed; files of earlier versions have none."""
    rows = [None] * num_seeds if values is None else values
    if len(rows) != num_seeds:
        raise ValueError(f"training has {len(rows)} rows for {num_seeds} seeds")
    return [None if row is None else TrainingReturns.from_json(row, size) for row in rows]


def _picture(size: Any) -> tuple[int, int, int] | None:
    if size is None:
        return None
    height, width, colours = map(int, size)
    return height, width, colours


# Checks


def _check_fit(
    found: Method,
    action: Discrete | Continuous,
    num_seeds: int,
    policy: MLP,
    critic: MLP,
    normaliser: Normaliser | None = None,
) -> None:
    """Insist on networks of just the sizes that the header's method, action and seeds call for."""
    observation_size = critic.layers[0].weight.shape[-2] - found.member.latent.size
    *_, fan_in, _ = policy.layers[0].weight.shape
    seeds, anchors, _, fan_out = policy.layers[-1].weight.shape
    conditioning, latent = found.conditioning, found.latent
    checks = {
        "seeds": (seeds, num_seeds),
        "anchors": (anchors, conditioning.num_anchors(latent)),
        "inputs": (fan_in, conditioning.input_size(latent, observation_size)),
        "outputs": (fan_out, distribution_of(action).num_outputs),
    }
    if normaliser is not None:
        rows = {1, found.num_members}
        shapes = {(num_seeds, n, observation_size) for n in rows}
        if normaliser.mean.shape not in shapes or normaliser.std.shape != normaliser.mean.shape:
            raise _Unfit("its normaliser does not fit its networks")
        if not (np.asarray(normaliser.std) > 0.0).all():
            raise _Unfit("its normaliser has a standard deviation of 0 or less")
    for what, (has, needs) in checks.items():
        if has != needs or has < 1:
            raise _Unfit(f"its policy has {has} {what}, its header says {needs}")


def _check_pictures_fit(
    found: Method,
    action: Discrete | Continuous,
    num_seeds: int,
    picture: tuple[int, int, int],
    policy: Impala,
) -> None:
    """Insist on a network that can see such pictures and says what the header calls for."""
    latent, conditioning = found.latent, found.conditioning
    anchors = conditioning.num_anchors(latent)
    has: set[int] = set()
    seeds: set[int] = set()
    tree_map(lambda leaf: (seeds.add(leaf.shape[0]), has.add(leaf.shape[1])), policy)
    if seeds != {num_seeds} or not policy.fits(picture, conditioning.input_size(latent, 0)):
        raise _Unfit(f"its policy does not fit pictures of {picture}")
    said, needs = policy.head.layers[-1].bias.shape[-1], distribution_of(action).num_outputs + 1
    has -= {1} if policy.shared else set()
    if said != needs or not has <= {anchors}:
        raise _Unfit(
            f"its policy has {said} outputs and {max(has, default=1)} anchors, "
            f"its header says {needs} and {anchors}"
        )
