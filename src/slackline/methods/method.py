"""A method is four small parts; its options are the parts' fields."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from slackline.errors import SlacklineError
from slackline.methods.auxiliary import Auxiliary
from slackline.methods.conditioning import Anchors, Conditioning
from slackline.methods.latent import Copies, Latent, Members, Point
from slackline.methods.movement import Movement
from slackline.networks.impala import Network
from slackline.types import Array


@dataclass(frozen=True)
class Method:
    """How z is drawn, how it reaches the policy, what else is optimised, how anchors move."""

    name: str
    title: str
    latent: Latent
    conditioning: Conditioning
    auxiliary: Auxiliary
    movement: Movement = field(default_factory=Movement)

    @property
    def options(self) -> dict[str, Any]:
        """Every setting of the parts by name, e.g. {"anchors": 2, "beta": 1.0}.

        A name that two parts have (a fan's `opens`) is one option of both.
        """
        parts: tuple[Any, ...] = (self.latent, self.conditioning, self.auxiliary, self.movement)
        return {f.name: getattr(part, f.name) for part in parts for f in fields(part)}

    @property
    def num_members(self) -> int:
        """How many independent policies are trained: an ensemble takes n times the samples."""
        return self.latent.num_trained

    @property
    def member(self) -> Method:
        """The method that trains one of them."""
        if isinstance(self.latent, Members):
            return replace(self, latent=Point())
        if self.conditioning.made_of_single:
            return replace(self, latent=Point(), conditioning=Anchors())
        return self

    @property
    def made_of_single(self) -> bool:
        """Whether its policies are those of a single policy's training, changed afterwards."""
        return self.conditioning.made_of_single or isinstance(self.latent, Copies)

    @property
    def continuous_only(self) -> bool:
        """Whether it cannot be trained where actions are discrete."""
        return self.auxiliary.continuous_only or self.conditioning.continuous_only

    @property
    def is_trained(self) -> bool:
        """Whether there is anything to train: noisy copies are made of a policy that was."""
        return not isinstance(self.latent, Copies)

    def at(self, progress: Array) -> Method:
        """The method in force at `progress` in [0, 1] of the training."""
        return replace(
            self, auxiliary=self.auxiliary.at(progress), movement=self.movement.at(progress)
        )

    def outputs(self, policy: Network, observation: Array, z: Array) -> Array:
        """The policy's outputs at observations (..., obs), each with its own z (..., size)."""
        return self.conditioning.outputs(self.latent, policy, observation, z)

    def with_options(self, **options: Any) -> Method:
        """The same method with some settings changed."""
        for name in options:
            if name not in self.options:
                has = ", ".join(self.options) or "none"
                raise SlacklineError(f"method {self.name!r} has no option {name!r} (it has: {has})")

        def changed(part: Any) -> Any:
            own = {f.name for f in fields(part)}
            return replace(part, **{k: v for k, v in options.items() if k in own})

        return replace(
            self,
            latent=changed(self.latent),
            conditioning=changed(self.conditioning),
            auxiliary=changed(self.auxiliary),
            movement=changed(self.movement),
        )
