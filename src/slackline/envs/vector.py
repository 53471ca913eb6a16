"""Single Gymnasium environments stepped one after the other, with little around them.

Gymnasium is imported here, so this module is imported on first use.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import concatenate

DISABLED = gym.vector.AutoresetMode.DISABLED


class LoopVector(gym.vector.SyncVectorEnv):
    """A `SyncVectorEnv` that never resets by itself and drops infos, which nobody reads: collecting
    them costs as much as a step of a small environment."""

    def __init__(self, makers: Any):
        super().__init__(makers, autoreset_mode=DISABLED, copy=False)
        space = self.single_observation_space
        self._shapes = None
        if isinstance(space, gym.spaces.Box) and space.shape:
            self._shapes = [space.shape] * self.num_envs

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        seen, reward = self._env_obs, self._rewards
        terminated, truncated = self._terminations, self._truncations
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            seen[i], reward[i], terminated[i], truncated[i], info = env.step(action)
            if not isinstance(info, dict):
                raise TypeError(f"its info is of type {type(info).__name__}, not a dict")
        return self._batch(), reward.copy(), terminated.copy(), truncated.copy(), {}

    def _batch(self) -> Any:
        """The last observations of all, in one array that the next ones are written over."""
        if self._shapes is not None and self._shapes == [
            getattr(x, "shape", 0) for x in self._env_obs
        ]:
            # Along the axis there is: one call, where stacking makes a new axis for each.
            flat = self._observations.reshape(-1, *self._shapes[0][1:])
            seen: Any = self._env_obs
            np.concatenate(seen, out=flat)
            return self._observations
        space: Any = self.single_observation_space
        self._observations = concatenate(space, self._env_obs, self._observations)
        return self._observations
