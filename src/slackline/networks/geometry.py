"""How the anchors of a network lie to each other: angles and distances, on NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slackline.arrays import tree_map


class Geometry(NamedTuple):
    """Of N anchors; every field is (N, N)."""

    by_tensor: np.ndarray
    """cos(θ_i, θ_j) tensor by tensor, averaged over the tensors, as the paper's penalty has it."""
    cosine: np.ndarray
    """cos(θ_i, θ_j) of all weights as one vector."""
    distance: np.ndarray
    """‖θ_i − θ_j‖"""

    @property
    def pairs(self) -> Geometry:
        """Of the unordered pairs i < j, (pairs,)."""
        above = np.triu_indices(len(self.cosine), k=1)
        return Geometry(*(matrix[above] for matrix in self))


def geometry(network: Any) -> Geometry:
    """Of a network's anchors; every tensor has a leading axis N."""
    rows: list[np.ndarray] = []
    tree_map(lambda x: rows.append(np.asarray(x, np.float64).reshape(len(x), -1)), network.anchored)
    whole = np.concatenate(rows, axis=1)
    apart = np.linalg.norm(whole[:, None] - whole[None], axis=-1)
    return Geometry(np.mean([cosines(each) for each in rows], axis=0), cosines(whole), apart)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """cos(v_i, v_j) of vectors (N, D); a vector of zeros has no angle, and counts as 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0.0, lengths, 1.0)
    return units @ units.T
