"""The trained artefact: N anchors, and the rule that turns z into a policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from slackline.arrays import jnp, tree_map
from slackline.envs.api import Continuous, Discrete, Spaces
from slackline.errors import SlacklineError
from slackline.io.files import as_path
from slackline.methods.catalogue import BASELINE, method, recommended
from slackline.methods.method import Method
from slackline.methods.training_returns import TrainingReturns
from slackline.networks.impala import Impala, Network
from slackline.networks.mlp import MLP, NormedMLP
from slackline.networks.normaliser import Normaliser
from slackline.subspace.policy import Policy, show_action


@dataclass(frozen=True, repr=False)
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
    training: TrainingReturns | None = field(default=None, compare=False)
    """What its policies return on the training environment; None: it was not measured."""
    spec: dict[str, Any] | None = field(default=None, compare=False)
    """What is kept of a suite of the user's own, as plain data; see `suites/recorded.py`."""
    home: Any = field(default=None, compare=False)
    """The `Suite` as an object, for playing; None: the one that name and spec describe. It is not
    saved."""
    where: str | Path | None = field(default=None, compare=False)
    """The file or run folder it was loaded from, for messages about it."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """What its policies see: (size,), or (H, W, C)."""
        if self.picture is not None:
            return self.picture
        assert isinstance(self.critic, MLP)
        return (self.critic.layers[0].weight.shape[-2] - self.method.member.latent.size,)

    @property
    def spaces(self) -> Spaces:
        """What its policies see and do."""
        return Spaces(self.observation_shape, self.action)

    @property
    def acting(self) -> Network:
        """The anchors as they act on raw observations: the normaliser folded in (by JAX), no
        values."""
        if self.normaliser is None:
            return _acting(self.policy, None)
        return _acting(self.policy, Normaliser(*map(jnp.asarray, self.normaliser)))

    @property
    def acting_on_numpy(self) -> Network:
        """The same by NumPy alone; JAX may round it otherwise."""
        policy, normaliser = tree_map(np.asarray, (self.policy, self.normaliser))
        return _acting(policy, normaliser)

    def network_at(self, z: Any = None) -> Network:
        """The plain network at z, on NumPy."""
        latent = self.method.latent
        return self.method.conditioning.at(latent, self.acting_on_numpy, latent.parse(z))  # type: ignore[arg-type]

    def at(self, z: Any = None) -> Policy:
        """The policy at z: "centre", an anchor ("#3"), or all numbers of z; for a line one number
        in [0, 1] will do, for one policy nothing."""
        return Policy(self.network_at(z), self.action, self.picture)

    def opened(self, **options: Any) -> Self:
        """A single policy as the subspace that is made of one: a line from cautious to bold
        (docs/vigour.md) where actions are continuous and no pictures are seen, else anchors that
        trust their sensors differently (docs/senses.md). `options` are that method's:
        `opened(cautious=0.3)`."""
        if self.method.name != BASELINE:
            raise SlacklineError(
                f"this is a {self.method.name}; only a single policy can be opened"
            )
        found = method(recommended(self.action, self.picture), **options)
        policy = tree_map(np.asarray, self.policy)
        anchors = found.conditioning.spelt_out(found.latent, policy, self.seed)
        return replace(self, method=found, policy=anchors, training=None)

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file that `slackline.load` reads anywhere."""
        from slackline.subspace.files import save_subspaces

        path = as_path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_subspaces(path, [self])
        return path

    def __repr__(self) -> str:
        """Three lines: what it is, what z is, what it sees, does and computes with."""
        method, seen = self.method, " × ".join(map(str, self.observation_shape))
        return (
            f"{type(self).__name__}: {method.title} ({method.name}), trained on {self.suite}, "
            f"seed {self.seed}\n"
            f"  z: {method.latent.describe}\n"
            f"  {seen} numbers seen, {show_action(self.action)}, {self._show_network()}"
        )

    def _show_network(self) -> str:
        """ "2 anchors of 64-64, LayerNorm, normalised observations" """
        anchors = self.method.conditioning.num_anchors(self.method.latent)
        head = self.policy.head if isinstance(self.policy, Impala) else self.policy
        widths = "-".join(str(layer.bias.shape[-1]) for layer in head.layers[:-1]) or "no"
        parts = [
            f"{anchors} anchors of {widths} units" if anchors > 1 else f"{widths} hidden units",
            "convolutions below" if isinstance(self.policy, Impala) else "",
            "LayerNorm" if isinstance(self.policy, NormedMLP) else "",
            "observations normalised" if self.normaliser is not None else "",
        ]
        return ", ".join(part for part in parts if part)


def _acting(policy: Network, normaliser: Normaliser | None) -> Network:
    if isinstance(policy, Impala):
        return policy.without_value()
    return policy if normaliser is None else normaliser.folded_into(policy)
