"""The algorithms, one line each. A new one is a new file and a new line here."""

from __future__ import annotations

from slackline.algorithms.a2c import A2C
from slackline.algorithms.base import Algorithm
from slackline.algorithms.ppo import PPO

ALGORITHMS: dict[str, Algorithm] = {a.name: a for a in (A2C(), PPO())}
