"""What the fields of a train state are called in checkpoints."""

from __future__ import annotations

_KEPT = (
    # TrainState, and the algorithm's networks in it
    ("networks", "running", "key", "policy", "critic", "auxiliary", "optimisers"),
    # networks
    ("layers", "weight", "bias", "shared", "last", "head", "entry", "residual"),
    # moments of observations, environments on their way
    ("count", "mean", "deviations", "env_state", "observation", "z", "elapsed", "episode_return"),
)

FIELD_NAMES = {name: name for names in _KEPT for name in names} | {"moments": "seen"}
"""Field -> name in files. Whoever renames a field keeps its old name here, as `moments` has, and
runs can still be resumed. Fields that are not ours (Optax's, an environment's own) are called as
they are."""
