"""What is optimised beside the return.

An auxiliary may bring a network of its own (a discriminator), add to the reward, and add to the
policy's loss. Each part has a default that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from slackline.arrays import jax, jnp
from slackline.errors import SlacklineError
from slackline.io.decode import check, number, one_of
from slackline.methods.latent import Latent, Skills
from slackline.networks.impala import Network
from slackline.types import Array, Transition

Penalty = Literal["tensor", "vector"]

MakeNetwork = Callable[[int, int], Network]
"""(how many numbers it sees beside the observation, how many outputs) -> a fresh network"""


@dataclass(frozen=True)
class Auxiliary:
    """Nothing but the return is optimised."""

    continuous_only = False
    """Whether it needs the gradient through a continuous action."""

    def __post_init__(self) -> None:
        check(self)

    def at(self, progress: Array) -> Auxiliary:
        """What is in force at `progress` in [0, 1] of the training."""
        return self

    def init(self, make: MakeNetwork, latent: Latent, action_size: int) -> Any:
        """The network it learns, if any."""
        return ()

    def bonus(self, network: Any, latent: Latent, steps: Transition) -> Array:
        """What it adds to the reward of every step."""
        return jnp.zeros_like(steps.reward)

    def policy_loss(
        self, network: Any, latent: Latent, policy: Network, steps: Transition, action: Array
    ) -> Array:
        """What it adds to the policy's loss; `action` is the policy's deterministic one."""
        return jnp.zeros(())

    def own_loss(self, network: Any, latent: Latent, steps: Transition, action: Array) -> Array:
        """What its own network minimises."""
        return jnp.zeros(())


@dataclass(frozen=True)
class CosinePenalty(Auxiliary):
    """β Σ cos²(θ_i, θ_j) over pairs of anchors, which pushes them apart."""

    beta: float = number(1.0, low=0.0, high=1e6)
    penalty: Penalty = one_of("tensor", lambda: get_args(Penalty))
    """Compare anchors tensor by tensor (the authors' code) or as whole vectors (the formula)."""

    def policy_loss(
        self, network: Any, latent: Latent, policy: Network, steps: Transition, action: Array
    ) -> Array:
        return self.beta * cosine_penalty(policy.anchored, self.penalty)


@dataclass(frozen=True)
class LateAngle(Auxiliary):
    """β Σ max(0, cos²(θ_i, θ_j) − cos² φ), tensor by tensor, whose angle φ grows late in training.

    Until then anchors may stay as close as they are. Under Adam the penalty acts as a constraint,
    and moves most what the return depends on least: its steps are divided by the size of the
    return's own gradients.
    """

    beta: float = number(1.0, low=0.0, high=1e6)
    angle: float = number(75.0, low=0.0, high=90.0)
    """Degrees between any two anchors at the end of training."""
    opens: float = number(0.5, low=0.0, high=1.0)
    """Share of the training after which the angle begins to grow."""
    opened: float = number(0.9, low=0.0, high=1.0)
    """Share of the training after which it has grown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.opens >= self.opened:
            raise SlacklineError(
                f"opens is {self.opens:g}; it must be less than opened, {self.opened:g}"
            )

    def at(self, progress: Array) -> Hinge:
        share = jnp.clip((progress - self.opens) / (self.opened - self.opens), 0.0, 1.0)
        return Hinge(self.beta, jnp.square(jnp.cos(jnp.deg2rad(self.angle * share))))


@dataclass(frozen=True)
class Hinge(Auxiliary):
    """The penalty of a `LateAngle` at one moment, its angle fixed."""

    beta: float
    allowed: Array
    """cos² of the angle; pairs of anchors below it are not penalised."""

    def policy_loss(
        self, network: Any, latent: Latent, policy: Network, steps: Transition, action: Array
    ) -> Array:
        return self.beta * cosine_penalty(policy.anchored, allowed=self.allowed)


def cosine_penalty(
    anchors: Any, penalty: Penalty = "tensor", allowed: float | Array = 0.0
) -> Array:
    """Σ_{i<j} max(0, cos²(θ_i, θ_j) − allowed) over unordered pairs, averaged over tensors or of
    the whole vector.

    A line has one pair, so its penalty lies in [0, 1].
    """
    flat = [jnp.reshape(leaf, (leaf.shape[0], -1)) for leaf in jax.tree.leaves(anchors)]
    if penalty == "vector":
        flat = [jnp.concatenate(flat, axis=1)]
    return jnp.mean(jnp.stack([_pairwise_cosine_squared(tensor, allowed) for tensor in flat]))


def _pairwise_cosine_squared(vectors: Array, allowed: float | Array) -> Array:
    """Σ_{i<j} max(0, cos²(v_i, v_j) − allowed) for vectors (N, D)."""
    gram = vectors @ vectors.T
    squared_norms = jnp.diag(gram)
    # Anchors of zero length have no angle; the floor's square must not underflow in the gradient.
    products = jnp.maximum(squared_norms[:, None] * squared_norms[None, :], 1e-18)
    excess = jnp.square(gram) / products - allowed
    return jnp.sum(jnp.triu(jnp.maximum(excess, 0.0), k=1))


@dataclass(frozen=True)
class DiscriminatorReward(Auxiliary):
    """DIAYN+R: reward + β (log q(z|s') − log p(z)), where q guesses z from where the step led.

    The prior is subtracted because a bonus that is always negative makes ending the episode early
    the best policy (CartPole drops its pole at once).
    """

    beta: float = number(1.0, low=0.0, high=1e6)

    def init(self, make: MakeNetwork, latent: Latent, action_size: int) -> Network:
        return make(0, latent.size)

    def bonus(self, network: Network, latent: Latent, steps: Transition) -> Array:
        return self.beta * log_ratio(network(steps.next_observation), latent, steps.z)

    def own_loss(self, network: Network, latent: Latent, steps: Transition, action: Array) -> Array:
        return -jnp.mean(log_ratio(network(steps.next_observation), latent, steps.z))


@dataclass(frozen=True)
class DiscriminatorLoss(Auxiliary):
    """Lc: β log q(z|s, π(s, z)) in the loss, its gradient flowing through the policy's action."""

    beta: float = number(1.0, low=0.0, high=1e6)
    continuous_only = True

    def init(self, make: MakeNetwork, latent: Latent, action_size: int) -> Network:
        return make(action_size, latent.size)

    def policy_loss(
        self, network: Network, latent: Latent, policy: Network, steps: Transition, action: Array
    ) -> Array:
        return self.beta * self.own_loss(network, latent, steps, action)

    def own_loss(self, network: Network, latent: Latent, steps: Transition, action: Array) -> Array:
        return -jnp.mean(log_ratio(network.beside(steps.observation, action), latent, steps.z))


PRIOR_STD = 12.0**-0.5
"""Standard deviation of a uniform z in [0, 1]: the fixed one of the Gaussian that guesses it, so
that knowing nothing (always guessing the middle) earns about nothing."""


def log_ratio(guess: Array, latent: Latent, z: Array) -> Array:
    """log q(z|·) − log p(z); q is a softmax over skills, or a Gaussian around a guess of z."""
    if isinstance(latent, Skills):
        return jnp.sum(jax.nn.log_softmax(guess) * z, axis=-1) + jnp.log(float(latent.skills))
    error = jnp.square((z - guess) / PRIOR_STD) + jnp.log(2.0 * jnp.pi * PRIOR_STD**2)
    return -0.5 * jnp.sum(error, axis=-1)
