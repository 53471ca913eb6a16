"""What training returns and `slackline.load` finds: a subspace that can be adapted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from slackline.adapt.adapter import GridAdapter
from slackline.adapt.kshot import Adaptation, adapt_one
from slackline.envs.api import Params
from slackline.envs.host import HostEnv
from slackline.subspace import Subspace
from slackline.suites.suite import Suite, Variation


@dataclass(frozen=True)
class Line(Subspace):
    """A subspace with its ways to adapt, which the artefact itself knows nothing of."""

    @staticmethod
    def of(subspace: Subspace) -> Line:
        return Line(**{field.name: getattr(subspace, field.name) for field in fields(Subspace)})

    def adapter(self, shots: int = 10, episodes: int = 1) -> GridAdapter:
        """Ask/tell adaptation, for episodes that you run yourself: `shots` z's, `episodes` each."""
        return GridAdapter(self.method.latent, shots=shots, episodes=episodes)

    def adapt(
        self,
        variation: str | Variation | HostEnv | Callable[[Params], Params],
        shots: int | None = None,
        episodes: int | None = None,
        score_episodes: int | None = None,
        suite: str | Suite | None = None,
    ) -> Adaptation:
        """Try K values of z on a changed environment, keep the best, score it on fresh episodes.

        `variation` is a name of the suite's, or a function from the environment's standard
        parameters to changed ones; on environments outside JAX also another environment, as from
        `sl.gymnasium`. Counts left out are the suite's protocol. `suite` is another one than it was
        trained on, with the same observations and actions: `suite="halfcheetah-dev"`.
        """
        return adapt_one(self, variation, shots, episodes, score_episodes, suite)
