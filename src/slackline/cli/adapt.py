"""slackline adapt"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import tyro

from slackline.adapt.catalogue import ADAPTERS
from slackline.cli.options import (
    Count,
    Devices,
    Spread,
    Switch,
    count,
    number,
    one_of,
    optional,
)
from slackline.cli.own import changed_by_hand, suite_to_play
from slackline.cli.parsing import parse_as
from slackline.errors import SlacklineError
from slackline.progress import waiting
from slackline.runtime import set_up_jax
from slackline.store.pretrained import is_pretrained, located
from slackline.store.run import RunFolder
from slackline.suites.suite import Suite, Variation

if TYPE_CHECKING:
    from slackline.adapt.catalogue import Spending
    from slackline.adapt.kshot import Adapted, Adapting


@dataclass
class Adapt:
    """Adapt a trained run to changed environments: spend a budget of episodes on choosing z, score
    the chosen z on fresh ones beside the default z, and say whether it helped.

    Every seed of the run is adapted. The scores are kept in the run folder; `slackline report`
    shows those of the paper's grid (--adapter grid).
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run folder that `slackline train` made, or pretrained:NAME, whose scores are not kept."""
    variation: tuple[str, ...] = ()
    """Variations to adapt to (`slackline list` names them). Default: all of the suite."""
    suite: str | None = None
    """Adapt to the variations of another suite, with the same observations and actions. Default:
    the one trained on."""
    env: tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]] = ()
    """The environment of yours that the run was trained on, named again (nothing is imported or
    made because a file names it): gym:ID, envpool:ID or module:function. All of them, if
    variations have environments of their own."""
    to: str | None = None
    """Adapt to this other environment of yours instead: gym:ID, envpool:ID or module:function."""
    kwargs: tuple[str, ...] = ()
    """Keyword arguments that make the environment of --to, NAME=VALUE; without --to, the one
    trained on."""
    adapter: Annotated[
        str | None, optional(one_of(*ADAPTERS), "NAME", "grid, or bayes with a --budget")
    ] = None
    """How z is chosen: grid (the paper's rule, which reports are made of), nested, halving, bayes
    or safe."""
    budget: Annotated[int | None, optional(count, "INT", "20")] = None
    """Episodes to spend on choosing, for each seed and variation."""
    floor: Annotated[float | None, optional(number, "FLOAT", "none")] = None
    """--adapter safe: no z is tried that is predicted to return less."""
    stop_hopeless: Annotated[float | None, optional(number, "FLOAT", "never")] = None
    """Stop an episode that is so many standard deviations of a return behind the best one before
    (3, say), and say how many steps that saved. Not for the grid."""
    shots: Count = None
    """K: how many values of z the grid tries."""
    episodes: Count = None
    """Episodes for each of them."""
    score_episodes: Count = None
    """Fresh episodes for the final score of the chosen z, and of the default one."""
    spread: Spread = None
    """Three anchors or more: candidates drawn from the flat Dirichlet law, spread evenly, or
    corners first; only shown, not kept."""
    perturb: Annotated[float | None, optional(number, "FLOAT", "no")] = None
    """For a run of single: try the policy and K − 1 copies of it with Gaussian noise on the
    weights, whose standard deviation is this share of each tensor's root mean square (0.1, say).
    Shows what trying K policies gains by itself."""
    open: Switch = False
    """For a run of single: first make a subspace of the policy (a line of vigour, from cautious to
    bold, where actions are continuous and no pictures are seen, else reweighted sensors), and adapt
    that."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """With --open or --perturb: the run folder for the policies that are made, and their scores."""
    devices: Devices = None
    """CPU devices to spread the seeds over, or the blocks of one. Default: all cores."""
    json: Switch = False
    """Print JSON for programs instead of a table for people."""

    def run(self) -> None:
        from slackline.adapt.kshot import Adapting
        from slackline.bench.cells import adapt_run
        from slackline.report.table import show
        from slackline.report.tables import adaptation_json, adaptation_table

        set_up_jax(self.devices)
        self.check_out()
        run = RunFolder(located(self.path))
        run.insist_on_finished()
        suite = self.played(run)
        chosen = self.chosen(suite)
        usual = Adapting.of(suite.protocol, self.shots, self.episodes, self.score_episodes)
        run = self.made(run, usual.shots)
        found: list[Adapted] = []
        with waiting(f"adapting {run.path}"):
            options: dict[str, Any] = {} if self.spread is None else {"spread": self.spread}
            table: pl.DataFrame = adapt_run(
                run,
                chosen,
                self.spent(run, usual),
                usual.score_episodes,
                suite=suite,
                keep=not options and not is_pretrained(self.path),
                beside_default=True,
                on_found=found.append,
                **options,
            )
        if self.json:
            print(json.dumps(self.with_steps(adaptation_json(table), found[0]), indent=2))
            return
        show(adaptation_table(table, suite, run.config().resolved_method, chosen or ()))
        if self.stop_hopeless is not None:
            played, saved = int(found[0].played_steps.sum()), int(found[0].saved_steps.sum())
            print(f"stopping hopeless episodes saved {saved:,} of {played + saved:,} steps")

    def with_steps(self, rows: list[dict[str, Any]], found: Adapted) -> list[dict[str, Any]]:
        """What was played and saved beside each variation, where hopeless episodes are stopped."""
        if self.stop_hopeless is None:
            return rows
        played, saved = (x.sum(axis=0).tolist() for x in (found.played_steps, found.saved_steps))
        pairs = zip(rows, played, saved, strict=True)
        return [row | {"played_steps": p, "saved_steps": s} for row, p, s in pairs]

    def check_out(self) -> None:
        """--out goes with just one of the flags that make something to keep there."""
        if self.open and self.perturb is not None:
            raise SlacklineError("--open and --perturb exclude each other; give one of them")
        if (self.open or self.perturb is not None) != (self.out is not None):
            flag = "--open" if self.open else "--perturb"
            raise SlacklineError(f"{flag} and --out FOLDER belong together; give both or neither")

    def made(self, run: RunFolder, shots: int) -> RunFolder:
        """What to adapt: the run itself, or what is made of its policies."""
        from slackline.bench.cells import open_run, perturb_run

        if self.out is None:
            return run
        if self.perturb is None:
            return open_run(run, self.out)
        return perturb_run(run, self.out, shots, self.perturb)

    def spent(self, run: RunFolder, usual: Adapting) -> Spending:
        """The adapter that is meant, and its budget."""
        from slackline.adapt.catalogue import PAPER, spending

        # Candidates that are spread otherwise, and noisy copies, are compared by the paper's rule.
        paper = self.perturb is not None or self.spread is not None
        return spending(
            run.config().resolved_method.latent,
            self.adapter or (PAPER if paper else None),
            self.budget,
            self.shots,
            self.episodes,
            usual=(usual.shots, usual.episodes),
            stop_hopeless=self.stop_hopeless,
            **({} if self.floor is None else {"floor": self.floor}),
        )

    def played(self, run: RunFolder) -> Suite:
        """The suite whose variations to adapt to."""
        return suite_to_play(run, self.suite, self.env, self.to)

    def chosen(self, suite: Suite) -> list[Variation] | None:
        """What to adapt to; None: all that the suite has."""
        if self.to is None and not self.kwargs:
            return [suite.variation(name) for name in dict.fromkeys(self.variation)] or None
        for flag, given in (("--variation", self.variation), ("--suite", self.suite)):
            if given:
                raise SlacklineError(f"{flag} and --to (or --kwargs) exclude each other")
        return [changed_by_hand(suite, self.to, self.kwargs)]


def parse(argv: list[str]) -> Adapt:
    return parse_as("adapt", Adapt, argv)
