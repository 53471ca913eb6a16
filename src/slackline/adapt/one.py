"""Adapt one subspace to one change: what `line.adapt` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slackline.adapt.adapter import numbered
from slackline.adapt.catalogue import spending
from slackline.adapt.kshot import Adaptation, Adapting, adapt_by, suite_for
from slackline.adapt.trained import with_training_returns
from slackline.envs.api import Params
from slackline.envs.host import HostEnv
from slackline.subspace import Subspace
from slackline.suites.own import another
from slackline.suites.suite import Suite, Variation

Change = str | Variation | HostEnv | Callable[[Params], Params]


def adapt_one(
    subspace: Subspace,
    change: Change,
    adapter: str | None,
    budget: int | None,
    shots: int | None,
    episodes: int | None,
    score_episodes: int | None,
    suite: Suite | None = None,
    **options: Any,
) -> Adaptation:
    """Adapt one subspace to one variation of `suite`; None means its own, and its protocol."""
    suite = suite_for(subspace, suite)
    variation = as_variation(suite, change)
    usual = Adapting.of(suite.protocol, shots, episodes, score_episodes)
    chosen = spending(
        subspace.method.latent,
        adapter,
        budget,
        shots,
        episodes,
        usual=(usual.shots, usual.episodes),
        **options,
    )
    known = with_training_returns([subspace], suite_for(subspace, None))
    found = adapt_by(
        chosen.adapter,
        chosen.budget,
        known,
        [variation],
        usual.score_episodes,
        suite=suite,
        beside_default=True,
        stop_hopeless=chosen.stop_hopeless,
    )
    assert found.default_scores is not None
    candidates, number, repeat = numbered(found.asked[0, 0])
    returns = np.full((len(candidates), repeat.max() + 1), np.nan)
    returns[number, repeat] = found.returns[0, 0]
    return Adaptation(
        variation=variation.name,
        z=found.z[0, 0],
        score=float(found.scores[0, 0].mean()),
        scores=found.scores[0, 0],
        candidates=candidates,
        returns=returns,
        adapter=chosen.adapter.name,
        default_z=found.default_z[0],
        default_scores=found.default_scores[0, 0],
        saved_steps=int(found.saved_steps[0, 0]),
    )


def as_variation(suite: Suite, change: Change) -> Variation:
    """A variation from its name in the suite, or from anything else that `line.adapt` takes."""
    if isinstance(change, str):
        return suite.variation(change)
    if isinstance(change, HostEnv):
        return another(change)
    if isinstance(change, Variation):
        return change
    return Variation("Custom", "a change of yours", change)
