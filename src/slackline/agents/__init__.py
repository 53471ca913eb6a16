"""Agents: policy and value networks conditioned on z."""

from __future__ import annotations

from slackline.agents.agent import Agent
from slackline.agents.pictures import PictureAgent
from slackline.agents.vector import VectorAgent
from slackline.envs.api import Continuous, Discrete
from slackline.methods.method import Method


def agent_of(observation: tuple[int, ...], action: Discrete | Continuous, method: Method) -> Agent:
    """The agent of `method` for observations of this shape: (size,), or (H, W, C) of pictures."""
    kind = PictureAgent if len(observation) == 3 else VectorAgent
    return kind(observation, action, method)
