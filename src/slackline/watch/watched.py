"""What there is to watch: K episodes and all there is to say about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackline.bench.stats import decimals
from slackline.drawing.labels import labels_of
from slackline.envs.api import Env, Params
from slackline.errors import require_count
from slackline.subspace import Subspace
from slackline.suites.recorded import home_of
from slackline.suites.suite import TRAIN, Variation
from slackline.watch.episodes import Episodes, run_episodes
from slackline.watch.filmed import film_episodes, paint_shot
from slackline.watch.scenes import SKY, Painter, Picture, Shape, mix, painter_of, rgb

ENDED = 0.5
"""How far a policy whose episode is over fades."""
MAX_PANELS = 16
"""Policies on one sheet; more would be too small to see."""
STEPS = 200
"""How many steps are shown by default."""


@dataclass(frozen=True)
class Watched:
    """K episodes and all there is to say about them."""

    title: str
    change: str
    """What is different from training, in words."""
    is_changed: bool
    """Whether anything is."""
    who: str
    """Which method and seed."""
    labels: tuple[str, ...]
    """What tells a policy from the others, (K,)."""
    episodes: Episodes
    paint: Painter
    steps: int
    """How many steps to show, from the start."""
    seconds: float | None = None
    """Simulated seconds of one step, where that has a meaning."""
    pace: float | None = None
    """Seconds for which a film shows a step whose duration is unknown."""
    scale: float = 1.0
    """Returns are multiplied by this where they are shown."""
    digits: int | None = None
    """Decimals of returns, where the suite fixes them."""

    @property
    def horizon(self) -> int:
        return len(self.episodes.rewards)

    @property
    def shown(self) -> int:
        """Steps shown: as many as were asked for, but nothing after the last policy's end."""
        return min(self.steps, int(self.episodes.lengths.max()))

    @property
    def best(self) -> np.ndarray:
        """Which policies no other beats over the whole episode; none where all are alike, (K,)."""
        returns = self.episodes.returns
        return (returns == returns.max()) & (returns.min() < returns.max())

    def returns(self, step: int | None = None) -> list[str]:
        """What the policies returned in the first `step` steps, or in the whole episode."""
        values = self.episodes.returns if step is None else self.episodes.return_until(step)
        digits = decimals(self.scale * self.episodes.returns, self.digits)
        return [minus(f"{self.scale * value:.{digits}f}") for value in values]

    def picture(self, policy: int, step: int) -> Picture:
        """A policy after `step` steps; faded once its episode is over."""
        picture = self.paint(self.episodes.past(policy, step))
        return faded(picture) if self.over(policy, step) else picture

    def over(self, policy: int, step: int) -> bool:
        return bool(self.episodes.terminated[policy] and step >= self.episodes.lengths[policy])

    def meaning(self, policy: int) -> str:
        """What stands below the return that counts up."""
        if self.episodes.lengths[policy] <= self.shown:
            return "return"
        return f"return so far · {self.returns()[policy]} in all"

    def clock(self, step: int) -> str:
        return f"step {step}" if self.seconds is None else f"{step * self.seconds:.1f} s"

    def name(self, policy: int) -> str:
        return f"{self.labels[policy]}  best" if self.best[policy] else self.labels[policy]

    @property
    def explanation(self) -> str:
        """What is shown, and what the returns are of."""
        one = "One episode each from the same start"
        if self.partial:
            span = f"the first {self.shown} of {self.horizon} steps shown"
            framed = "best return of the whole episode"
        else:
            span, framed = "shown to the end", "best return"
        scaled = "" if self.scale == 1.0 else f" Returns × {self.scale:g}."
        return f"{one}; {span}.{f' Framed: {framed}.' if self.best.any() else ''}{scaled}"

    @property
    def partial(self) -> bool:
        """Whether some episode goes on after what is shown."""
        return bool((self.episodes.lengths > self.shown).any())


def minus(text: str) -> str:
    return text.replace("-", "−")


def faded(picture: Picture) -> Picture:
    """The same picture as if behind thin paper."""
    shapes = [
        Shape(s.outline, mix(s.fill, SKY, ENDED), s.edge and mix(s.edge, SKY, ENDED))
        for s in picture.shapes
    ]
    image = picture.image
    if image is not None:
        image = (image + ENDED * (np.array(rgb(SKY)) - image)).astype(np.uint8)
    return Picture(picture.window, shapes, picture.labels, picture.note, image)


def watch(
    subspace: Subspace, variation: Variation, zs: np.ndarray, steps: int | None = None
) -> Watched:
    """Run one episode of the policy at each z and say how to draw it.

    The whole episode is run, since that is what a return is of; its first `steps` are shown.
    """
    suite = home_of(subspace)
    require_count("number of policies", len(zs), high=MAX_PANELS)
    steps = min(STEPS, suite.horizon) if steps is None else steps
    require_count("steps", steps, high=suite.horizon)
    shown = _filmed if not suite.env.in_jax else _drawn
    return Watched(
        title=f"{suite.title}, {variation.name}",
        change=variation.description,
        is_changed=variation.name != TRAIN.name,
        who=f"{subspace.method.title}, seed {subspace.seed}",
        labels=labels_of(subspace.method.latent, zs),
        steps=steps,
        scale=suite.display_scale,
        digits=suite.digits,
        **shown(subspace, variation, zs, steps),
    )


def _drawn(subspace: Subspace, variation: Variation, zs: np.ndarray, _steps: int) -> dict[str, Any]:
    """Episodes in JAX, painted from the environment's view."""
    env = home_of(subspace).jax_env
    usual = env.default_params()
    params = variation.apply(usual)
    return {
        "paint": painter_of(env, params, usual),
        "episodes": run_episodes(subspace, variation, zs),
        "seconds": step_seconds(env, params),
    }


def _filmed(subspace: Subspace, variation: Variation, zs: np.ndarray, steps: int) -> dict[str, Any]:
    """Episodes of environments outside JAX, which draw themselves."""
    episodes, fps = film_episodes(subspace, variation, zs, steps)
    return {"paint": paint_shot, "episodes": episodes, "pace": None if fps is None else 1.0 / fps}


def step_seconds(env: Env, params: Params) -> float | None:
    """Simulated seconds of one step, or None where time is only counted."""
    view = env.view()
    return None if view is None or view.seconds is None else view.seconds(view.unwrap(params))
