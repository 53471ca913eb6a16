"""The trained artefact: a subspace of policies that acts on plain NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from slackline.envs.api import Continuous, Discrete, Params
from slackline.errors import SlacklineError
from slackline.learn.distributions import distribution_of
from slackline.learn.normalise import Normaliser
from slackline.methods.catalogue import method
from slackline.methods.method import Method
from slackline.networks import MLP, Layer
from slackline.store.files import (
    check_format,
    from_tensors,
    read_tensors,
    to_tensors,
    write_tensors,
)

if TYPE_CHECKING:
    from slackline.adapt.adapter import GridAdapter
    from slackline.adapt.kshot import Adaptation
    from slackline.envs.host import HostEnv
    from slackline.suites.suite import Variation

FORMAT = "slackline-subspace"
SCHEMA = 1


class Policy:
    """One policy of a subspace. Call it with an observation (or a batch) to get the action.

    It is a plain NumPy network with a `mode`: no environment, no JAX.
    """

    def __init__(self, network: MLP, action: Discrete | Continuous):
        self._layers = [(np.asarray(w[0]), np.asarray(b[0])) for w, b in network.layers]
        self._distribution = distribution_of(action)
        self.observation_size = self._layers[0][0].shape[0]

    def outputs(self, observation: Any) -> np.ndarray:
        """What the network says: logits, or means before squashing."""
        x = np.asarray(observation, np.float32)
        if x.ndim not in (1, 2) or x.shape[-1] != self.observation_size:
            raise SlacklineError(
                f"observation has shape {x.shape}; it must be ({self.observation_size},) "
                f"or (batch, {self.observation_size})"
            )
        if not np.isfinite(x).all():
            raise SlacklineError("observation holds NaN or infinite values")
        for weight, bias in self._layers[:-1]:
            x = np.maximum(x @ weight + bias, 0.0)
        weight, bias = self._layers[-1]
        return x @ weight + bias

    def __call__(self, observation: Any) -> Any:
        """The deterministic action: an int (or an array of them) for discrete actions."""
        outputs: Any = self.outputs(observation)
        action = np.asarray(self._distribution.greedy(outputs))
        return int(action) if action.ndim == 0 else action


@dataclass(frozen=True)
class Subspace:
    """N anchors and the rule that turns z into one policy: `line.at(z)`."""

    suite: str
    """Name of the suite it was trained on."""
    method: Method
    seed: int
    action: Discrete | Continuous
    policy: MLP
    """The anchors; every array has a leading axis N."""
    critic: MLP
    normaliser: Normaliser | None = None
    """What observations were normalised by in training, if they were; frozen."""

    @property
    def acting(self) -> MLP:
        """The anchors as they act on raw observations: the normaliser folded in."""
        return self.policy if self.normaliser is None else self.normaliser.folded_into(self.policy)

    def networks_at(self, zs: np.ndarray) -> MLP:
        """The plain networks at several z (K, size), stacked along a leading axis K."""
        conditioning, latent = self.method.conditioning, self.method.latent
        acting = jax.tree.map(jax.numpy.asarray, self.acting)
        return jax.vmap(lambda z: conditioning.at(latent, acting, z))(jax.numpy.asarray(zs))

    def at(self, z: Any = None) -> Policy:
        """The policy at z. For a line one number in [0, 1] will do; for one policy, nothing."""
        conditioning, latent = self.method.conditioning, self.method.latent
        plain = conditioning.at(latent, self.acting, jax.numpy.asarray(latent.parse(z)))
        return Policy(plain, self.action)

    def adapter(self, shots: int = 10, episodes: int = 1) -> GridAdapter:
        """Ask/tell adaptation, for episodes that you run yourself: `shots` z's, `episodes` each."""
        from slackline.adapt.adapter import GridAdapter

        return GridAdapter(self.method.latent, shots=shots, episodes=episodes)

    def adapt(
        self,
        variation: str | Variation | HostEnv | Callable[[Params], Params],
        shots: int | None = None,
        episodes: int | None = None,
        score_episodes: int | None = None,
    ) -> Adaptation:
        """Try K values of z on a changed environment, keep the best, score it on fresh episodes.

        `variation` is a name of the suite's, or a function from the environment's standard
        parameters to changed ones; on environments outside JAX also another environment, as from
        `sl.gymnasium`. Counts left out are the suite's protocol.
        """
        from slackline.adapt.kshot import adapt_one

        return adapt_one(self, variation, shots, episodes, score_episodes)

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
    kind = "discrete" if isinstance(first.action, Discrete) else "continuous"
    header = {
        "format": FORMAT,
        "schema": SCHEMA,
        "suite": first.suite,
        "method": first.method.name,
        "options": first.method.options,
        "seeds": [s.seed for s in subspaces],
        "action": {"kind": kind, **vars(first.action)},
    }
    write_tensors(path, to_tensors(stacked), header)


def load_subspaces(path: Path) -> list[Subspace]:
    """Every seed of a subspace file."""
    tensors, header = read_tensors(path)
    check_format(path, header.get("format"), header.get("schema"), expected=FORMAT, newest=SCHEMA)
    try:
        found = method(header["method"], **header["options"])
        space: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in header["action"].items()
        }
        action = {"discrete": Discrete, "continuous": Continuous}[space.pop("kind")](**space)
        suite, seeds = str(header["suite"]), [int(seed) for seed in header["seeds"]]
        like = {
            "policy": _mlp_like(tensors, "policy"),
            "critic": _mlp_like(tensors, "critic"),
            **_normaliser_like(tensors),
        }
    except (KeyError, TypeError, ValueError, SlacklineError) as error:
        raise SlacklineError(f"{path}: has an unusable header ({error})") from None
    networks = from_tensors(like, tensors, path)
    _check_fit(path, found, action, len(seeds), **networks)
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], networks) for i in range(len(seeds))]
    return [
        Subspace(suite, found, seed, action, **one) for seed, one in zip(seeds, each, strict=True)
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
