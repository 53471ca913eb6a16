"""The null baseline: a single policy and noisy copies of it, tried like the policies of a line.

Trying K policies and keeping the best gains a little whatever the policies are. What is left of a
line's gain beyond that of K perturbed copies of one policy is due to the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from slackline.errors import SlacklineError
from slackline.methods.catalogue import method
from slackline.subspace import Subspace


def perturbed(subspace: Subspace, members: int, noise: float) -> Subspace:
    """A single policy and `members` − 1 noisy copies of it, one for every one-hot z.

    The first is the policy itself. Copy k is drawn from the subspace's seed and k, so that fewer
    members are the first ones of more.
    """
    if subspace.method.name != "single":
        raise SlacklineError(
            f"this is a run of {subspace.method.name}; only a single policy can be perturbed"
        )
    chosen = method("perturbed", members=members, noise=noise)
    copies = [noisy(subspace.policy, noise, (subspace.seed, k)) for k in range(1, members)]
    stacked = jax.tree.map(lambda *leaves: np.concatenate(leaves), subspace.policy, *copies)
    return replace(subspace, method=chosen, policy=stacked, training=None)


def noisy(network: Any, noise: float, seed: Sequence[int]) -> Any:
    """Every tensor x of a network as x + noise · rms(x) · N(0, 1), rms(x) = √mean(x²)."""
    generator = np.random.default_rng(seed)

    def disturbed(tensor: Any) -> np.ndarray:
        x = np.asarray(tensor)
        scale = noise * np.sqrt(np.mean(np.square(x, dtype=np.float64)))
        return (x + scale * generator.standard_normal(x.shape)).astype(x.dtype)

    return jax.tree.map(disturbed, network)
