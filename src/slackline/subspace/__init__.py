"""The trained artefact, its NumPy policies and its files. Works on NumPy and safetensors alone."""

from slackline.subspace.artefact import Subspace
from slackline.subspace.files import load_subspaces, save_subspaces
from slackline.subspace.policy import Policy

__all__ = ["Policy", "Subspace", "load_subspaces", "save_subspaces"]
