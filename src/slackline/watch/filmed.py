"""Episodes on environments outside JAX, drawn by their own `render()`."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from slackline.adapt.host import acting, host_of
from slackline.envs.api import State
from slackline.envs.camera import Camera
from slackline.rollout import HostJobs, HostRunner
from slackline.subspace import Subspace
from slackline.suites.recorded import home_of
from slackline.suites.suite import Variation
from slackline.watch.episodes import Episodes
from slackline.watch.scenes import Picture


def film_episodes(
    subspace: Subspace, variation: Variation, zs: np.ndarray, steps: int
) -> tuple[Episodes, float | None]:
    """One whole episode of the policy at each z (K, size), its first `steps` photographed; and how
    many steps a second the environment wants to be shown, if it says so."""
    suite = home_of(subspace)
    env, params = host_of(suite, variation)
    camera = Camera(env.name, steps)
    # The same start and the same chances for all, as far as the environment's seed decides them.
    seed = np.random.SeedSequence([subspace.seed, variation.label]).generate_state(1) >> 1
    jobs = HostJobs(params, zs[None], np.repeat(seed[None], len(zs), axis=1))
    policies = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], subspace.acting)
    act = partial(acting(subspace.method, suite.env.action), policies)
    played = HostRunner(env.filmed(camera), suite.horizon).episodes(act, jobs)
    lengths = played.lengths[0]
    return Episodes(*photographed(camera, lengths), lengths, played.terminated[0]), camera.fps


def photographed(camera: Camera, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(shots (T + 1, K), rewards (T, K)) until the last episode's end; shots as long as they were
    taken, and the last of an episode again and again after its end."""
    longest, num = int(lengths.max()), len(lengths)
    time = np.arange(longest)[:, None]
    rewards = np.where(time < lengths, np.stack(camera.rewards[:longest]), 0.0)
    shots = np.empty((longest + 1, num), object)
    for step in range(min(longest + 1, len(camera.shots))):
        for k in range(num):
            shots[step, k] = camera.shots[min(step, int(lengths[k]))][k]
    return shots, rewards


def paint_shot(past: State) -> Picture:
    """The last of the shots so far (t + 1,), which is all there is to see."""
    image = past[-1].picture()
    height, width, _ = image.shape
    return Picture((0.0, 0.0, float(width), float(height)), image=image)
