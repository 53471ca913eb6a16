"""The trained artefact: a subspace of policies that acts on plain NumPy arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from slackline.envs.api import Continuous, Discrete, action_from_json, action_to_json
from slackline.errors import SlacklineError
from slackline.io.files import check_format
from slackline.io.tensors import from_tensors, read_tensors, to_tensors, write_tensors
from slackline.methods.catalogue import method
from slackline.methods.method import Method
from slackline.networks.distributions import distribution_of
from slackline.networks.impala import RESIDUALS, Block, Convolution, Impala, Network
from slackline.networks.mlp import MLP, Layer, NormedMLP
from slackline.networks.normaliser import Normaliser

FORMAT = "slackline-subspace"
SCHEMA = 2
"""Files that an earlier reader would misread have it: those with LayerNorm, and those of users'
environments, which it would import. The rest say 1."""


class Policy:
    """One policy of a subspace. Call it with an observation (or a batch) to get the action.

    It is a plain NumPy network with a `mode`: no environment, no JAX.
    """

    def __init__(
        self,
        network: Network,
        action: Discrete | Continuous,
        picture: tuple[int, int, int] | None = None,
    ):
        self._network: Any = jax.tree.map(np.asarray, network)
        self._distribution = distribution_of(action)
        self._picture = picture

    @property
    def observation_size(self) -> int:
        if self._picture is not None:
            return math.prod(self._picture)
        return self._network.layers[0].weight.shape[-2]

    def outputs(self, observation: Any) -> np.ndarray:
        """What the network says: logits, or means before squashing."""
        if self._picture is not None:
            return self._network(as_pictures(observation, self._picture))
        x, size = np.asarray(observation, np.float32), self.observation_size
        if x.ndim not in (1, 2) or x.shape[-1] != size:
            raise SlacklineError(
                f"observation has shape {x.shape}; it must be ({size},) or (batch, {size})"
            )
        if not np.isfinite(x).all():
            raise SlacklineError("observation holds NaN or infinite values")
        return self._network(x)

    def __call__(self, observation: Any) -> Any:
        """The deterministic action: an int (or an array of them) for discrete actions."""
        outputs: Any = self.outputs(observation)
        action = np.asarray(self._distribution.greedy(outputs))
        return int(action) if action.ndim == 0 else action


def as_pictures(observation: Any, picture: tuple[int, int, int]) -> np.ndarray:
    """One picture or a batch, colours last; bytes, colours first or last, are accepted. (A batch of
    one picture without colours needs their axis.)"""
    x, (height, width, colours) = np.asarray(observation), picture
    if x.ndim in (3, 4) and x.dtype == np.uint8:
        if x.shape[-3:] == picture:
            return x
        if x.shape[-3:] == (colours, height, width):
            return np.moveaxis(x, -3, -1)
    if x.ndim in (2, 3) and x.dtype == np.uint8 and (*x.shape[-2:], 1) == picture:
        return x[..., None]
    raise SlacklineError(
        f"observation is {x.dtype}{list(x.shape)}; it must be a picture of uint8, "
        f"{height} × {width} × {colours}, or a batch of them"
    )


@dataclass(frozen=True)
class Subspace:
    """N anchors and the rule that turns z into one policy: `line.at(z)`."""

    suite: str
    """Name of the suite it was trained on."""
    method: Method
    seed: int
    action: Discrete | Continuous
    policy: Network
    """The anchors; every array has a leading axis N, or 1 where they share it."""
    critic: Network | tuple[()]
    """() where the policy's network has the value as its last output."""
    normaliser: Normaliser | None = None
    """What observations were normalised by in training, if they were; frozen."""
    picture: tuple[int, int, int] | None = None
    """(H, W, C) of what is seen, if it is pictures."""
    spec: dict[str, Any] | None = field(default=None, compare=False, repr=False)
    """What is kept of a suite of the user's own, as plain data; see `suites/recorded.py`."""
    home: Any = field(default=None, compare=False, repr=False)
    """The `Suite` as an object, for whoever plays on it; None: as the name and the spec say. It is
    not saved."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """What its policies see: (size,), or (H, W, C)."""
        if self.picture is not None:
            return self.picture
        assert isinstance(self.critic, MLP)
        return (self.critic.layers[0].weight.shape[-2] - self.method.member.latent.size,)

    @property
    def acting(self) -> Network:
        """The anchors as they act on raw observations: the normaliser folded in, no values."""
        if isinstance(self.policy, Impala):
            return self.policy.without_value()
        return self.policy if self.normaliser is None else self.normaliser.folded_into(self.policy)

    def networks_at(self, zs: np.ndarray) -> Network:
        """The plain networks at several z (K, size), stacked along a leading axis K."""
        conditioning, latent = self.method.conditioning, self.method.latent
        acting = jax.tree.map(jax.numpy.asarray, self.acting)
        return jax.vmap(lambda z: conditioning.at(latent, acting, z))(jax.numpy.asarray(zs))

    def at(self, z: Any = None) -> Policy:
        """The policy at z. For a line one number in [0, 1] will do; for one policy, nothing."""
        conditioning, latent = self.method.conditioning, self.method.latent
        plain = conditioning.at(latent, self.acting, jax.numpy.asarray(latent.parse(z)))
        return Policy(plain, self.action, self.picture)

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file that `slackline.load` reads anywhere."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_subspaces(path, [self])
        return path


def save_subspaces(path: Path, subspaces: list[Subspace]) -> None:
    """Several seeds of one training in one file."""
    first = subspaces[0]
    networks = [
        {"policy": s.policy, "critic": s.critic}
        | ({} if s.normaliser is None else {"normaliser": s.normaliser})
        for s in subspaces
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *networks)
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
    write_tensors(path, to_tensors(stacked), header)


def load_subspaces(path: Path) -> list[Subspace]:
    """Every seed of a subspace file."""
    tensors, header = read_tensors(path)
    check_format(path, header.get("format"), header.get("schema"), expected=FORMAT, newest=SCHEMA)
    try:
        found = method(header["method"], **header["options"])
        action = action_from_json(header["action"])
        suite, seeds = str(header["suite"]), [int(seed) for seed in header["seeds"]]
        spec = header.get("spec")
        if not isinstance(spec, dict | None):
            raise ValueError(f"spec is {spec!r}")
        picture = _picture(header.get("picture"))
        like = {
            "policy": _policy_like(tensors, picture is not None, header.get("layer_norm", False)),
            "critic": () if picture else _mlp_like(tensors, "critic"),
            **_normaliser_like(tensors),
        }
    except (KeyError, TypeError, ValueError, SlacklineError) as error:
        raise SlacklineError(f"{path}: has an unusable header ({error})") from None
    networks = from_tensors(like, tensors, path)
    if picture:
        _check_pictures_fit(path, found, action, len(seeds), picture, networks["policy"])
    else:
        _check_fit(path, found, action, len(seeds), **networks)
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], networks) for i in range(len(seeds))]
    return [
        Subspace(suite, found, seed, action, **one, picture=picture, spec=spec)
        for seed, one in zip(seeds, each, strict=True)
    ]


def _check_fit(
    path: Path,
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
        if normaliser.mean.shape not in {(num_seeds, n, observation_size) for n in rows}:
            raise SlacklineError(f"{path}: its normaliser does not fit its networks")
        if not (np.asarray(normaliser.std) > 0.0).all():
            raise SlacklineError(f"{path}: its normaliser has a standard deviation of 0 or less")
    for what, (has, needs) in checks.items():
        if has != needs or has < 1:
            raise SlacklineError(f"{path}: its policy has {has} {what}, its header says {needs}")


def _check_pictures_fit(
    path: Path,
    found: Method,
    action: Discrete | Continuous,
    num_seeds: int,
    picture: tuple[int, int, int],
    policy: Impala,
) -> None:
    """Insist on a network that can see such pictures and says what the header calls for."""
    seen = jax.ShapeDtypeStruct((num_seeds, 1, *picture), np.uint8)
    z = jax.ShapeDtypeStruct((num_seeds, 1, found.latent.size), np.float32)
    anchors = found.conditioning.num_anchors(found.latent)
    has = {leaf.shape[1] for leaf in jax.tree.leaves(policy)} - ({1} if policy.shared else set())
    try:
        said = jax.eval_shape(jax.vmap(found.outputs), policy, seen, z).shape[-1]
    except (TypeError, ValueError) as error:
        raise SlacklineError(f"{path}: its policy does not fit pictures of {picture}") from error
    needs = distribution_of(action).num_outputs + 1
    if said != needs or not has <= {anchors}:
        raise SlacklineError(
            f"{path}: its policy has {said} outputs and {max(has, default=1)} anchors, "
            f"its header says {needs} and {anchors}"
        )


def _picture(size: Any) -> tuple[int, int, int] | None:
    if size is None:
        return None
    height, width, colours = map(int, size)
    return height, width, colours


def _policy_like(tensors: dict[str, np.ndarray], pictures: bool, normed: bool) -> Network:
    """The skeleton of the policy's network."""
    if not isinstance(normed, bool) or (pictures and normed):
        raise ValueError(f"layer_norm is {normed!r}")
    if pictures:
        return _impala_like(tensors)
    plain = _mlp_like(tensors, "policy")
    return NormedMLP(plain.layers) if normed else plain


def _impala_like(tensors: dict[str, np.ndarray]) -> Impala:
    """The skeleton of a policy that sees pictures."""

    def convolution(name: str) -> Any:
        parts = (tensors[f"{name}.{part}"] for part in Convolution._fields)
        return Convolution(*(jax.ShapeDtypeStruct(x.shape, np.float32) for x in parts))  # type: ignore[arg-type]

    def block(name: str) -> Block:
        pairs = [[f"{name}.residual.{i}.{j}" for j in range(2)] for i in range(RESIDUALS)]
        residual = tuple((convolution(a), convolution(b)) for a, b in pairs)
        return Block(convolution(f"{name}.entry"), residual)

    entries = [name for name in tensors if name.startswith("policy.shared.")]
    num_shared = sum(name.endswith(".entry.weight") for name in entries)
    shared = tuple(block(f"policy.shared.{i}") for i in range(num_shared))
    return Impala(shared, block("policy.last"), _mlp_like(tensors, "policy.head"))


def _normaliser_like(tensors: dict[str, np.ndarray]) -> dict[str, Normaliser]:
    """Its skeleton, if there is one."""
    if not any(name.startswith("normaliser.") for name in tensors):
        return {}
    rows = jax.ShapeDtypeStruct(tensors["normaliser.mean"].shape, np.float32)
    return {"normaliser": Normaliser(rows, rows)}  # type: ignore[arg-type]


def _mlp_like(tensors: dict[str, np.ndarray], name: str) -> MLP:
    """The skeleton of the network called `name`, checked for consistent shapes."""
    depth = sum(key.startswith(f"{name}.layers.") and key.endswith(".weight") for key in tensors)
    layers = []
    for i in range(depth):
        weight = tensors[f"{name}.layers.{i}.weight"]
        seeds, anchors, _, fan_out = weight.shape
        if i and layers[-1].weight.shape[-1] != weight.shape[-2]:
            raise ValueError(f"layer {i} of the {name} does not fit the layer before it")
        bias = jax.ShapeDtypeStruct((seeds, anchors, fan_out), np.float32)
        layers.append(Layer(jax.ShapeDtypeStruct(weight.shape, np.float32), bias))  # type: ignore[arg-type]
    if not layers:
        raise ValueError(f"there is no {name} in it")
    return MLP(tuple(layers))
