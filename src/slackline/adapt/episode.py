"""Stop hopeless episodes early: those that are far behind the best one at the same step.

An episode is hopeless at step t if its return so far is `margin` standard deviations of an episode
below what the best whole episode had by step t. The adapter is told its return so far plus what the
best episode earned after step t: most likely more than it would have returned, and still less than
the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from slackline.adapt.adapter import LARGEST
from slackline.errors import SlacklineError, require_number

if TYPE_CHECKING:
    from slackline.adapt.asktell import AskTell

MARGIN = 3.0


@dataclass(eq=False)
class Course:
    """How the best whole episode went, and what stopping others has saved."""

    partial: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Its return after every step, (T,)."""
    saved_steps: int = 0
    """Steps that stopped episodes would have had, had they been as long as it."""

    def partial_at(self, step: int) -> float:
        """Its return after so many steps, or the whole one if it had fewer."""
        return float(self.partial[min(step, len(self.partial)) - 1])

    @property
    def known(self) -> bool:
        return len(self.partial) > 0

    def finished(self, partial: np.ndarray) -> None:
        """A whole episode: the best one so far, or not."""
        if not self.known or partial[-1] > self.partial[-1]:
            self.partial = partial

    def given_up(self, step: int) -> float:
        """Another episode was stopped after so many steps: what it might have earned after them,
        going on as well as this one."""
        self.saved_steps += max(0, len(self.partial) - step)
        return max(0.0, float(self.partial[-1]) - self.partial_at(step))

    def to_json(self) -> dict[str, Any]:
        return {"partial": [float(x) for x in self.partial], "saved_steps": self.saved_steps}

    @staticmethod
    def from_json(values: Any) -> Course:
        """What `to_json` wrote; ValueError if it is anything else."""
        partial, saved = np.asarray(values["partial"], float), values["saved_steps"]
        if partial.ndim != 1 or not (np.abs(partial) <= LARGEST).all():
            raise ValueError("the course of its best episode is not a list of numbers")
        if not isinstance(saved, int) or saved < 0:
            raise ValueError(f"saved_steps is {saved!r}")
        return Course(partial, saved)


class Episode:
    """One episode that an adapter asked for, told step by step: what `adapter.episode()` gives."""

    def __init__(self, adapter: AskTell, z: np.ndarray, margin: float):
        self.z = z
        """The z to play it with."""
        self.hopeless = False
        """Whether it was said to stop."""
        self._adapter, self._rewards = adapter, list[float]()
        self._behind = margin * adapter.noise if adapter.course.known else np.inf
        self._return = 0.0

    def on_step(self, reward: float, done: bool = False) -> bool:
        """Count a step's reward. True: it is hopeless, stop it and call `end()`.

        `done` says that the episode ended with this step, by itself or by its time limit: then it
        is never hopeless, and its return is told as it is.
        """
        require_number("reward", reward, low=-LARGEST, high=LARGEST)
        self._return += float(reward)
        self._rewards.append(float(reward))
        if np.isfinite(self._behind):
            at_best = self._adapter.course.partial_at(len(self._rewards))
            self.hopeless = not done and self._return < at_best - self._behind
        return self.hopeless

    def end(self) -> float:
        """The episode is over: tell its return, or that of a hopeless one at best."""
        if not self._rewards:
            raise SlacklineError("the episode has no step; call on_step(reward) after each")
        course, told = self._adapter.course, self._return
        if self.hopeless:
            told += course.given_up(len(self._rewards))
        self._adapter.tell(self.z, told)
        if not self.hopeless:
            course.finished(np.cumsum(self._rewards))
        return told
