"""Adapters at work on lines that have no networks to speak of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from slackline.adapt.asktell import AskTell
from slackline.adapt.catalogue import spending
from slackline.methods.latent import Latent
from slackline.methods.training_returns import TrainingReturns


def fake_line(latent: Latent, training: TrainingReturns | None = None, seed: int = 0) -> Any:
    method = SimpleNamespace(latent=latent, name="lop")
    policy = (np.full((2, 3), seed, np.float32),)
    return SimpleNamespace(
        method=method, training=training, policy=policy, suite="cartpole", seed=seed
    )


def by_hand(
    latent: Latent,
    name: str | None = None,
    budget: int | None = None,
    training: TrainingReturns | None = None,
    **options: Any,
) -> AskTell:
    """As `line.adapter(...)`."""
    chosen = spending(latent, name, budget, **options)
    return AskTell(chosen.adapter, fake_line(latent, training), chosen.budget)
