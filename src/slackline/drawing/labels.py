"""What policies are called in a drawing."""

from __future__ import annotations

import numpy as np

from slackline.methods.latent import Latent


def labels_of(latent: Latent, zs: np.ndarray) -> tuple[str, ...]:
    """What tells policies from each other: z on a line, their number elsewhere."""
    if latent.is_line:
        return tuple(f"z = {z[0]:.2f}" for z in zs)
    return tuple(f"policy {i}" for i in range(1, len(zs) + 1))
