"""A benchmark is made of cells; each is a run folder with a stable name. `grid` lays them out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from slackline.adapt.catalogue import PAPER, Spending, adapt_command, spending
from slackline.adapt.kshot import Adapted, Adapting, adapt_by, suite_for
from slackline.adapt.perturb import perturbed
from slackline.adapt.scores import score_table
from slackline.adapt.trained import with_training_returns
from slackline.envs.impaired import Impaired
from slackline.errors import SlacklineError
from slackline.io.files import TEMPORARY, remove_leftovers
from slackline.io.lock import LOCK, locked
from slackline.store.run import RunConfig, RunFolder
from slackline.store.scores import merge_scores, read_scores
from slackline.subspace import Subspace, save_subspaces
from slackline.suites import is_own
from slackline.suites.suite import TRAIN, Suite, Variation
from slackline.training import OnTick, may_begin, prepare, run_training

PATIENCE = 60.0
"""Seconds to wait for another process that writes in the same run."""


@dataclass(frozen=True)
class Cell:
    """One method with its options on one suite: a block of seeds, trained and adapted."""

    suite: Suite
    config: RunConfig
    adaptings: tuple[Adapting, ...]
    """One for every K."""
    path: Path
    word: str
    """The suite as the user named it."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.path)

    def is_finished(self) -> bool:
        """Whether it is trained to the end, and adapted with every K."""
        run = self.run
        if not run.run_file.exists() or not run.finished():
            return False
        return all(is_scored(run, self.suite, how) for how in self.adaptings)


BESIDE_RUNS = {"report.html", "figures", "analyses", "logs", LOCK}
"""What a benchmark's folder may hold beside its runs."""


def insist_on_room(cells: Sequence[Cell], out: Path) -> None:
    """Refuse a folder that holds anything else, or runs that the cells would be mixed up with."""
    for cell in cells:
        for how in cell.adaptings:  # refuses more shots than there can be
            cell.config.resolved_method.latent.candidates(how.shots)
    if out.exists() and not out.is_dir():
        raise SlacklineError(f"{out}: is a file; the output must be a folder")
    known = {cell.name for cell in cells}
    for entry in sorted(out.iterdir()) if out.exists() else []:
        _insist_on_ours(entry, known | BESIDE_RUNS)
    for cell in cells:
        if not cell.run.is_empty():
            may_begin(cell.run, cell.config, resume=True)  # refuses what is another run
    _insist_on_new_seeds(cells, out)


def _insist_on_ours(entry: Path, known: set[str]) -> None:
    if entry.is_symlink():
        raise SlacklineError(
            f"{entry}: is a symbolic link; a benchmark writes only into folders of its own"
        )
    ours = entry.name in known or entry.suffix in (TEMPORARY, ".md", ".png", ".json")
    if not ours and not (entry / "run.json").exists():
        raise SlacklineError(
            f"{entry.parent}: holds something that is not a benchmark ({entry.name}); "
            "choose another folder"
        )


def _insist_on_new_seeds(cells: Sequence[Cell], out: Path) -> None:
    """Refuse to train a seed again that a run has already which is another division of the same
    seeds into cells."""
    names = {cell.name for cell in cells}
    undivided = {without_seeds(name) for name in names}
    for file in sorted(out.glob("*/run.json")):
        path = file.parent
        if path.name in names or without_seeds(path.name) not in undivided:
            continue
        saved = RunFolder(path).config().spelt_out
        for cell in cells:
            again = sorted(set(saved.seeds) & set(cell.config.seeds))
            if again and replace(saved, seeds=cell.config.seeds) == cell.config.spelt_out:
                raise SlacklineError(
                    f"{path}: has seed {again[0]} already, and {cell.name} would train it again; "
                    "divide the seeds as before, or choose another folder"
                )


def without_seeds(name: str) -> str:
    """A cell's name without its block of seeds."""
    return re.sub(r"-seeds\d+-\d+$", "", name)


@contextmanager
def bench_folder(out: Path) -> Iterator[None]:
    """Be the only benchmark that writes in `out`."""
    with locked(out):
        remove_leftovers(out)
        yield


def run_cell(cell: Cell, on_tick: OnTick | None = None) -> None:
    """Train (or go on training) a cell, then adapt it; whatever is finished is skipped.

    A worker whose command has ended may still be saving its last stride there: it is waited for.
    """
    run_training(
        cell.config, cell.path, suite=cell.suite, resume=True, on_tick=on_tick, wait=PATIENCE
    )
    for how in cell.adaptings:
        if not is_scored(cell.run, cell.suite, how):
            spent = by_the_paper(cell.run, how)
            steps = adapting_steps(cell.suite, len(cell.config.seeds), how)
            adapt_run(cell.run, None, spent, how.score_episodes, suite=cell.suite, steps=steps)


def adapting_steps(suite: Suite, seeds: int, how: Adapting) -> int:
    """Environment steps of adapting to all variations and Train, if no episode ends early."""
    episodes = how.shots * how.episodes + how.score_episodes
    return seeds * (1 + len(suite.variations)) * episodes * suite.horizon


def by_the_paper(run: RunFolder, adapting: Adapting) -> Spending:
    """The paper's grid for a run, which all comparisons are made with."""
    latent = run.config().resolved_method.latent
    return spending(latent, PAPER, shots=adapting.shots, episodes=adapting.episodes)


def is_scored(run: RunFolder, suite: Suite, adapting: Adapting) -> bool:
    """Whether the run was adapted to every variation with just these counts already."""
    if not run.scores_file.exists():
        return False
    rows = read_scores(run.scores_file).filter(
        suite=suite.name, shots=adapting.shots, adapter=PAPER
    )
    names = [v.name for v in (TRAIN, *suite.variations)]
    last = rows.group_by("variation", "phase").agg(pl.col("episode").max() + 1)
    wanted = {"select": adapting.episodes, "score": adapting.score_episodes}
    return set(last.rows()) >= {(name, *item) for name in names for item in wanted.items()}


def adapt_run(
    run: RunFolder,
    variations: Sequence[Variation] | None,
    spent: Spending,
    score_episodes: int,
    *,
    suite: Suite | None = None,
    keep: bool = True,
    beside_default: bool = False,
    on_found: Callable[[Adapted], None] | None = None,
    steps: int = 0,
    **options: Any,
) -> pl.DataFrame:
    """Adapt every seed of a finished run and keep the scores; None: all variations and Train.

    The variations are those of `suite`, by default the one trained on. With `beside_default` the
    default z plays the fresh episodes too. `on_found` is told what is not in the table. Where
    `steps` says what the episodes may cost, how long they took is kept, to reckon with. `options`
    change the method for this adaptation, as in `spread="even"`; such scores should not be kept,
    since the table would not tell them from the method's own.
    """
    began = time.monotonic()
    if keep and run.scores_file.exists():
        own_scores(run)  # refused before anything is played or noted
    subspaces = [
        replace(subspace, method=subspace.method.with_options(**options))
        for subspace in run.subspaces()
    ]
    suite = suite_for(subspaces[0], suite)
    run.insist_on_same(suite)
    chosen = (TRAIN, *suite.variations) if variations is None else variations
    if beside_default:
        home = suite if suite.name == subspaces[0].suite else suite_for(subspaces[0], None)
        subspaces = with_training_returns(subspaces, home)
    found = adapt_by(
        spent.adapter,
        spent.budget,
        subspaces,
        chosen,
        score_episodes,
        suite=suite,
        beside_default=beside_default,
        stop_hopeless=spent.stop_hopeless,
    )
    if on_found is not None:
        on_found(found)
    table = score_table(found, subspaces, suite, chosen, spent)
    if keep:
        with run.writing(wait=PATIENCE):
            # The scores come last: where they are, nothing is adapted again.
            run.note_adaptation(spent.shots, suite, spent.adapter.name)
            if steps:
                run.note_adapting_speed(steps, time.monotonic() - began)
            merge_scores(run.scores_file, table)
    return table


def perturb_run(run: RunFolder, out: Path, members: int, noise: float) -> RunFolder:
    """A run folder whose policies are those of a single policy's run and noisy copies of each: the
    null baseline, to be adapted like any other. See `adapt/perturb.py`."""
    return made_of(run, [perturbed(one, members, noise) for one in run.subspaces()], out)


def open_run(run: RunFolder, out: Path) -> RunFolder:
    """A run folder whose lines of vigour are made of a single policy's run."""
    lines = [one.opened() for one in run.subspaces()]
    return made_of(run, with_training_returns(lines, suite_for(lines[0], None)), out)


def made_of(run: RunFolder, subspaces: list[Subspace], out: Path) -> RunFolder:
    """Keep what was made of another run's policies as a run of its own, with the same settings."""
    method, made = subspaces[0].method, RunFolder(out)
    config = replace(run.config(), method=method.name, options=method.options)
    may_begin(made, config, resume=True)
    with made.writing():
        prepare(made, config, resume=True)
        if not made.finished():
            save_subspaces(made.subspace_file, subspaces)
            made.finish(0.0)
    return made


def finished_runs(path: Path) -> list[RunFolder]:
    """The runs in a folder that have scores: the folder itself, or its subfolders."""
    itself = (path / "run.json").exists()
    return _scored(path, [path] if itself else [file.parent for file in path.glob("*/run.json")])


def runs_below(paths: Iterable[Path]) -> list[RunFolder]:
    """The runs that have scores at any depth below several folders, each once."""
    found: dict[Path, RunFolder] = {}
    for path in paths:
        for run in _scored(path, [file.parent for file in path.rglob("run.json")]):
            found.setdefault(run.path.resolve(), run)
    return list(found.values())


def _scored(path: Path, folders: list[Path]) -> list[RunFolder]:
    """Those of the run folders found in `path` that have scores; at least one must."""
    if not path.is_dir():
        raise SlacklineError(f"{path}: no such folder")
    runs = [run for run in map(RunFolder, sorted(folders)) if run.scores_file.exists()]
    if not runs:
        hint = "adapt it first: slackline adapt RUN" if folders else "there is no run.json in it"
        raise SlacklineError(f"{path}: holds no scored run ({hint})")
    return runs


def own_scores(run: RunFolder) -> pl.DataFrame:
    """A run's scores; refuses a table that another run's adaptation wrote."""
    scores, config = read_scores(run.scores_file), run.config()
    methods, seeds = sorted(set(scores["method"])), sorted(set(scores["seed"]))
    if not ({*methods} <= {config.method} and {*seeds} <= {*config.seeds}):
        raise SlacklineError(
            f"{run.scores_file}: has scores of {', '.join(methods)} with seeds {seeds}, and this "
            f"is a run of {config.method} with seeds {list(config.seeds)}; move it away and adapt "
            "the run again"
        )
    return scores


def scores_by_suite(run: RunFolder) -> dict[str, pl.DataFrame]:
    """A run's scores, as the paper's grid chose, by the suite whose variations were played.

    Another suite of the same environment has the same Train: where it was not played for that
    suite, it is that of the run's own. (Another simulator has a Train of its own.)
    """
    scores, own = own_scores(run).filter(adapter=PAPER), run.config().suite
    if scores.is_empty():
        raise SlacklineError(
            f"{run.path}: was not adapted with the paper's grid, which tables and pages are made "
            f"of; adapt it first: {adapt_command(run.path)}"
        )
    unchanged = scores.filter(suite=own, variation=TRAIN.name)
    found = {own: scores.filter(suite=own)}
    for (name,), rows in scores.filter(pl.col("suite") != own).group_by("suite"):
        found[str(name)] = rows
        if not same_environment(run.suite(), run.suite(str(name))):
            continue
        played = rows.filter(variation=TRAIN.name)
        missing = unchanged.join(played, on="shots", how="anti").join(rows, on="shots", how="semi")
        found[str(name)] = pl.concat([rows, missing.with_columns(pl.lit(name).alias("suite"))])
    return {name: found[name] for name in sorted(found) if len(found[name])}


def suite_played(run: RunFolder, name: str, scores: pl.DataFrame) -> Suite:
    """The suite that some of a run's scores are of. A user's also has the variations that were only
    given by hand (--kwargs, --to), or that an earlier version kept no copy of."""
    suite = run.suite(name)
    if not is_own(name) and run.spec(name) is None:
        return suite
    known = {variation.name for variation in (*suite.variations, *suite.extras, TRAIN)}
    played = [n for n in scores["variation"].unique(maintain_order=True) if n not in known]
    by_hand = tuple(Variation(n, "", TRAIN.apply) for n in played)
    return replace(suite, variations=(*suite.variations, *by_hand))


def same_environment(one: Suite, other: Suite) -> bool:
    """Whether two suites differ in their variations alone; impairments wrap an environment."""
    envs = [one.env, other.env]
    first, second = (env.env if isinstance(env, Impaired) else env for env in envs)
    return first == second
