"""The adapters, one line each. A new one is a file in this folder and a new line here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from slackline.adapt.adapter import MAX_CANDIDATES, Adapter
from slackline.adapt.bayes import Bayes
from slackline.adapt.grid import Grid
from slackline.adapt.halving import Halving
from slackline.adapt.nested import Nested
from slackline.adapt.safe import Safe
from slackline.errors import SlacklineError, require_count, require_name, require_number
from slackline.shown import command

if TYPE_CHECKING:
    from slackline.methods.latent import Latent

ADAPTERS: dict[str, type[Adapter]] = {a.name: a for a in (Grid, Nested, Halving, Bayes, Safe)}

PAPER = Grid.name
"""What tables that compare with the paper are made with."""

WITH_BUDGET = Bayes.name
"""What is used where a budget is given and no name; where neither is, the paper's grid."""

BUDGET = 20
"""Episodes, where an adapter is named and no budget."""


@dataclass(frozen=True)
class Spending:
    """An adapter and what it may spend."""

    adapter: Adapter
    budget: int
    """Episodes for each seed and changed environment."""
    stop_hopeless: float | None = None
    """How many standard deviations of a return behind the best an episode is stopped; None: never.
    """

    def __post_init__(self) -> None:
        if self.stop_hopeless is None:
            return
        require_number("stop_hopeless", self.stop_hopeless, above=0.0, high=1e6)
        if isinstance(self.adapter, Grid):
            raise SlacklineError(
                "stop_hopeless is not for the grid, the paper's rule, which plays every episode; "
                "name another adapter, or give a budget"
            )

    @property
    def shots(self) -> int:
        """The score table's `shots`: K for the paper's grid, else the budget."""
        return self.adapter.shots if isinstance(self.adapter, Grid) else self.budget


def spending(
    latent: Latent,
    name: str | None = None,
    budget: int | None = None,
    shots: int | None = None,
    episodes: int | None = None,
    usual: tuple[int, int] = (10, 1),
    stop_hopeless: float | None = None,
    **options: Any,
) -> Spending:
    """The adapter and the budget that these arguments stand for. `shots` and `episodes` are the
    paper's: without a name they mean its grid, whose budget is their product; `usual` are their
    defaults."""
    paper = budget is None or shots is not None or episodes is not None
    if name is None:
        name = PAPER if paper else WITH_BUDGET
    require_name("adapter", name, ADAPTERS)
    if episodes is not None and (name != PAPER or budget is not None):
        raise SlacklineError(
            f"episodes is {episodes}, an option of the grid without a budget; "
            f"adapter {name!r} takes a budget of episodes instead"
        )
    if name == PAPER:
        options["shots"] = usual[0] if shots is None else shots
    elif shots is not None:
        options["shots"] = shots
    adapter = adapter_named(name, **options)
    if budget is None and isinstance(adapter, Grid):
        each = usual[1] if episodes is None else episodes
        require_count("episodes", each, high=MAX_CANDIDATES)
        budget = len(latent.candidates(adapter.shots)) * each
        return Spending(adapter, budget, stop_hopeless)
    budget = BUDGET if budget is None else budget
    require_count("budget", budget, high=MAX_CANDIDATES)
    return Spending(adapter, budget, stop_hopeless)


def adapter_named(name: str, **options: Any) -> Adapter:
    """The adapter called `name`, with its options."""
    require_name("adapter", name, ADAPTERS)
    kind: Any = ADAPTERS[name]
    known = [field.name for field in fields(kind)]
    for option in options:
        if option not in known:
            has = ", ".join(known) or "none"
            raise SlacklineError(f"adapter {name!r} has no option {option!r} (it has: {has})")
    return kind(**options)


def adapt_command(folder: object, shots: int | None = None) -> str:
    """The command to type that adapts a run by the paper's grid, with K shots or the protocol's."""
    how = ("--adapter", PAPER) if shots is None else ("--shots", shots)
    return command("adapt", folder, *how)
