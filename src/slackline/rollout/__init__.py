"""The runner, which plays every episode: of training, adaptation, films and analyses.

It handles resets, time limits, one z per episode, values that are not finite, and recording. There
are two back ends: `compiled` for environments in JAX, `host` for pools of those outside it.
Training asks for steps (`steps`), everything else for whole episodes (`episodes`).
"""

from slackline.envs.api import Env
from slackline.envs.host import HostEnv
from slackline.rollout.base import (
    Act,
    DrawZ,
    Greedy,
    Jobs,
    Moment,
    Played,
    Recorder,
    Totals,
    insist_on_finite_returns,
)
from slackline.rollout.compiled import CompiledRunner, Fixed, Running
from slackline.rollout.host import HostJobs, HostRunner, HostRunning
from slackline.rollout.recorders import Film, Filmed, Visits

__all__ = [
    "Act",
    "CompiledRunner",
    "DrawZ",
    "Film",
    "Filmed",
    "Fixed",
    "Greedy",
    "HostJobs",
    "HostRunner",
    "HostRunning",
    "Jobs",
    "Moment",
    "Played",
    "Recorder",
    "Running",
    "Totals",
    "Visits",
    "insist_on_finite_returns",
    "runner_of",
]


def runner_of(env: Env | HostEnv, horizon: int) -> CompiledRunner | HostRunner:
    """The back end that can play `env`."""
    return HostRunner(env, horizon) if isinstance(env, HostEnv) else CompiledRunner(env, horizon)
