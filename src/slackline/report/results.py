"""What the report shows, read from run folders and nothing else."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from slackline.bench.cells import runs_below, scores_by_suite, suite_played
from slackline.bench.measured import BesideSingle, Measured, beside_single, measure
from slackline.bench.merged import brief, nearest_preset
from slackline.bench.pooled import (
    LEVEL,
    differences,
    holm,
    probability_of_improvement,
    share_seeds,
)
from slackline.bench.stats import Estimate, decimals, iqm, iqm_interval, score_matrix, seed_scores
from slackline.errors import SlacklineError
from slackline.learn.hyper import Hyper
from slackline.methods.catalogue import BASELINE, CATALOGUE, HEADLINERS
from slackline.methods.latent import Latent, OneHot
from slackline.methods.method import Method
from slackline.shown import counted
from slackline.store.run import RunConfig, RunFolder
from slackline.subspace import Subspace
from slackline.suites import is_own
from slackline.suites.recorded import difference
from slackline.suites.suite import TRAIN, Suite


@dataclass(frozen=True)
class RunResult:
    """One run: what was trained, by which command, and how training went."""

    path: Path
    config: RunConfig
    method: Method
    provenance: dict[str, Any]
    progress: list[dict[str, Any]]
    """One entry per stride: steps, seconds, and per-seed lists of return, losses, …"""
    display_scale: float
    """Returns are multiplied by this where they are shown."""
    name: str
    """Of the entry that it belongs to, see `Entry`."""
    title: str
    root: Path
    """The folder that the report is of."""

    @property
    def folder(self) -> str:
        """Its path below that."""
        return self.path.name if self.path == self.root else os.path.relpath(self.path, self.root)

    @property
    def has_weights(self) -> bool:
        """Whether the trained artefact is there: scores may be kept without it."""
        return RunFolder(self.path).subspace_file.exists()

    def subspace(self) -> Subspace:
        """The trained artefact of the first seed."""
        return RunFolder(self.path).subspaces()[0]

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Training curve: steps (P,) and displayed returns (P, S), NaN where no episode ended."""
        try:
            steps = np.array([point["steps"] for point in self.progress], float)
            rows = [
                [np.nan if r is None else r for r in point["return"]] for point in self.progress
            ]
            returns = np.array(rows, float).reshape(len(steps), len(self.config.seeds))
            return steps, returns * self.display_scale
        except (KeyError, TypeError, ValueError) as error:
            raise SlacklineError(
                f"{self.folder}/progress.jsonl: is corrupt ({type(error).__name__}: {error})"
            ) from None


@dataclass(frozen=True)
class Entry:
    """A column of the tables: the runs of one method that differ in their seeds alone."""

    name: str
    """The method's, with what sets it apart where a suite has several entries of one method."""
    title: str
    method: Method
    runs: tuple[RunResult, ...]
    variant: int = 0
    """Which of the suite's entries of this method it is."""

    @property
    def config(self) -> RunConfig:
        """The settings that all runs share; the seeds are the first one's."""
        return self.runs[0].config

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted(seed for run in self.runs for seed in run.config.seeds))

    @property
    def budget(self) -> str:
        return f"{counted(len(self.seeds), 'seed')} × {self.config.steps:,} steps"

    @property
    def is_baseline(self) -> bool:
        return self.method.name == BASELINE


class Regions(NamedTuple):
    """Choices of seeds that each drew candidates of their own, told by what they lie near to."""

    landmarks: list[list[float]]
    """z's all over the space: the centre, the anchors and, of few anchors, the midpoints."""
    nearest: np.ndarray
    """Index of the landmark nearest to the z that each seed kept, (S,)."""


def regions(latent: Latent, kept: np.ndarray) -> Regions:
    """Where the z's (S, size) that seeds kept lie."""
    size = latent.size
    midpoints = size * (size - 1) // 2 if size <= 4 else 0
    landmarks = latent.nested(1 + size + midpoints)
    nearest = np.square(kept[:, None] - landmarks).sum(axis=-1).argmin(axis=1)
    return Regions(landmarks.tolist(), nearest)


@dataclass(frozen=True)
class Selection:
    """The candidates one method tried on one variation, and the one each seed kept."""

    seeds: list[int]
    zs: list[list[float]]
    """The K values of z tried."""
    on_a_line: bool
    """Whether the first number of z says all."""
    returns: np.ndarray
    """Mean selection return, (S, K); NaN where nothing was measured."""
    errors: np.ndarray
    """Its standard error over the selection episodes, (S, K)."""
    chosen: np.ndarray
    """Index of the candidate each seed kept, (S,)."""
    regions: Regions | None = None
    """Where each seed drew candidates of its own; `zs` are then the first seed's, and the same
    number is another z in another seed."""

    @property
    def positions(self) -> np.ndarray:
        """Where the candidates stand on an axis: a line's first coordinate, else their number."""
        if self.on_a_line:
            return np.array([z[0] for z in self.zs])
        return np.arange(len(self.zs), dtype=float)

    @property
    def axis_title(self) -> str:
        return "z" if self.on_a_line else "candidate"

    @property
    def counted_zs(self) -> list[list[float]]:
        """What choices can be counted by: the candidates, or else landmarks."""
        return self.zs if self.regions is None else self.regions.landmarks

    @property
    def counted(self) -> np.ndarray:
        """Which of these each seed kept, or kept something near to, (S,)."""
        return self.chosen if self.regions is None else self.regions.nearest

    @property
    def tellable(self) -> bool:
        """Whether a candidate's z can be told: few numbers, the same for all seeds."""
        return self.regions is None and 0 < len(self.zs[0]) <= 4


Query = TypeVar("Query", bound=Callable[..., Any])


def _remembered(query: Query) -> Query:
    """Answer a question about a suite's scores once: a page asks the same ones many times."""

    @wraps(query)
    def answer(self: SuiteResult, *asked: Any) -> Any:
        key = (query.__name__, *asked)
        if key not in self.answers:
            self.answers[key] = query(self, *asked)
        return self.answers[key]

    return answer  # type: ignore[return-value]


@dataclass(frozen=True)
class SuiteResult:
    """All runs on one suite."""

    suite: Suite
    runs: list[RunResult]
    scores: pl.DataFrame
    """Every episode of these runs, as in `slackline.store.scores.SCHEMA`, scaled for display."""
    answers: dict[tuple, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was asked already; see `_remembered`."""

    @property
    def shots(self) -> list[int]:
        """The K's that were measured."""
        return sorted(self.scores["shots"].unique())

    @property
    def main_shots(self) -> int:
        """The K to show first: the largest measured up to the paper's 10, else the smallest."""
        return max((k for k in self.shots if k <= 10), default=self.shots[0])

    @_remembered
    def variations(self, shots: int) -> list[str]:
        """The variations that every seed was adapted to, in the suite's order, without Train."""
        seeds = pl.col("seed").n_unique()
        rows = self.scores.filter(shots=shots)
        whole = rows.group_by("method").agg(seeds.alias("all"))
        played = rows.group_by("method", "variation").agg(seeds).join(whole, on="method")
        counts = played.filter(pl.col("seed") == pl.col("all")).group_by("variation").len()
        common = set(counts.filter(pl.col("len") == len(whole))["variation"])
        return [v.name for v in self.suite.variations if v.name in common]

    def whole(self, shots: int) -> bool:
        """Whether all of the suite's changes were measured at K, as the paper averages them."""
        return len(self.variations(shots)) == len(self.suite.variations)

    @_remembered
    def all_entries(self) -> list[Entry]:
        """Single first, then the methods of the headline, then the others by the catalogue."""
        by_name: dict[str, list[RunResult]] = defaultdict(list)
        for run in self.runs:
            by_name[run.name].append(run)
        found, seen = [], defaultdict(int)
        for name, runs in by_name.items():
            method = runs[0].method
            variant, seen[method.name] = seen[method.name], seen[method.name] + 1
            found.append(Entry(name, runs[0].title, method, tuple(runs), variant))
        return sorted(found, key=lambda entry: place_of(entry.method))

    @_remembered
    def methods(self, shots: int) -> list[Entry]:
        """The entries that were measured at K."""
        present = set(self.scores.filter(shots=shots)["method"].unique())
        return [entry for entry in self.all_entries() if entry.name in present]

    def entry(self, name: str) -> Entry:
        return next(entry for entry in self.all_entries() if entry.name == name)

    def baseline(self, shots: int) -> Entry | None:
        """The single policy, if it was measured at K; of several, the one with most seeds."""
        singles = [entry for entry in self.methods(shots) if entry.is_baseline]
        return max(singles, key=lambda entry: len(entry.seeds), default=None)

    def headliner(self, shots: int) -> Entry | None:
        """The entry that the headline speaks of, if it was measured at K."""
        return headliner_of(self.methods(shots))

    def adapting(self, shots: int) -> list[Entry]:
        """The entries that had more than one candidate to choose from."""
        tried = self.scores.filter(shots=shots, phase="select")
        several = tried.filter(tried["candidate"] > 0)["method"].unique()
        return [entry for entry in self.methods(shots) if entry.name in several]

    def main_method(self, shots: int) -> Entry:
        """Of those that had a choice, the one to show first."""
        entries = self.adapting(shots)
        return headliner_of(entries) or entries[0]

    @_remembered
    def matrix(self, method: str, shots: int) -> np.ndarray:
        """Fresh-episode scores of one method, [seeds × variations]."""
        per_seed = seed_scores(self.scores.filter(method=method, shots=shots))
        return score_matrix(per_seed, self.variations(shots))

    @_remembered
    def digits(self, shots: int) -> int:
        """Decimals of the returns at K."""
        shown = [self.matrix(method.name, shots).ravel() for method in self.methods(shots)]
        return decimals(np.concatenate(shown), self.suite.digits)

    @_remembered
    def measured(self, method: str, shots: int) -> Measured:
        """All episodes of one method as arrays."""
        return measure(self.scores.filter(method=method, shots=shots), self.variations(shots))

    @_remembered
    def rival(self, name: str, shots: int) -> Rival | None:
        """The single policy that an entry is compared with: of the same settings if there is one.
        None where there is none, or it is the one."""
        entry, singles = self.entry(name), [e for e in self.methods(shots) if e.is_baseline]
        if entry.is_baseline or not singles:
            return None

        def likeness(single: Entry) -> tuple[bool, bool, int]:
            mine, its = entry.config, single.config
            alike = (mine.hyper, mine.steps) == (its.hyper, its.steps)
            return alike, share_seeds(entry.seeds, single.seeds), len(single.seeds)

        single = max(singles, key=likeness)
        measured = self.measured(single.name, shots)
        began = bool(entry.config.from_single) or entry.method.made_of_single
        if began and set(entry.seeds) <= set(single.seeds):
            rows = [single.seeds.index(seed) for seed in entry.seeds]
            return Rival(single, measured.of_rows(rows), paired=True)
        return Rival(single, measured, paired=share_seeds(entry.seeds, single.seeds))

    @_remembered
    def beside_single(self, method: str, shots: int) -> BesideSingle | None:
        """An entry compared with the single policy; None where there is none, or it is the one."""
        rival = self.rival(method, shots)
        if rival is None:
            return None
        mine = self.measured(method, shots)
        return beside_single(mine, rival.measured, paired=rival.paired)

    @_remembered
    def improvement(self, method: str, shots: int) -> Estimate | None:
        """How likely a run of it beats one of the single policy on a variation."""
        rival = self.rival(method, shots)
        if rival is None:
            return None
        pair = self.matrix(method, shots), rival.measured.changed
        return probability_of_improvement([pair], paired=[rival.paired])

    @_remembered
    def significant(self, method: str, shots: int) -> Significant | None:
        """On how many variations it differs from the single policy, and is that still so although
        so many were looked at."""
        rival = self.rival(method, shots)
        if rival is None:
            return None
        mine, theirs = self.matrix(method, shots), rival.measured.changed
        p_values = differences(mine, theirs, paired=rival.paired)
        if np.isnan(p_values).any():
            return None
        gap, corrected = mine.mean(axis=0) - theirs.mean(axis=0), holm(p_values)
        counts = [
            int(((p < LEVEL) & (sign * gap > 0.0)).sum())
            for p in (p_values, corrected)
            for sign in (1.0, -1.0)
        ]
        return Significant(*counts)

    def ratio_to_single(self, method: str, shots: int) -> Estimate | None:
        """How many times as good as the single policy; None where that would mean nothing."""
        beside = self.beside_single(method, shots)
        return beside and beside.changed.ratio

    def ratios_of_costs(self, shots: int) -> bool:
        """Whether the ratios to Single are of costs: Single's ÷ the method's."""
        beside = [self.beside_single(method.name, shots) for method in self.methods(shots)]
        return any(each.of == "costs" for each in beside if each)

    def headroom(self, method: str, shots: int) -> float | None:
        """The single policy's score on the unchanged environment ÷ that on the changed ones."""
        single = self.entry(method).is_baseline
        return self.measured(method, shots).headroom if single else None

    @_remembered
    def iqm(self, method: str, shots: int) -> Estimate:
        """The interquartile mean over seeds and variations."""
        matrix, scale = self.matrix(method, shots), self.suite.display_scale
        low, high = (scale * bound for bound in self.suite.bounds)
        return Estimate(iqm(matrix), *iqm_interval(matrix, bounds=(low, high)))

    @_remembered
    def train_scores(self, method: str, shots: int) -> np.ndarray | None:
        """Fresh-episode scores on the training environment, (S,), if it was evaluated."""
        rows = seed_scores(self.scores.filter(method=method, shots=shots, variation=TRAIN.name))
        return rows.sort("seed")["score"].to_numpy() if len(rows) else None

    @_remembered
    def selection(self, method: str, variation: str, shots: int) -> Selection:
        """What adaptation tried and chose."""
        rows = self.scores.filter(method=method, variation=variation, shots=shots)
        tried = rows.filter(phase="select")
        seeds, numbers = sorted(tried["seed"].unique()), sorted(tried["candidate"].unique())
        by_seed = tried.select("seed", "candidate", "z").sort("seed")
        z_of = dict(by_seed.unique("candidate", keep="first").select("candidate", "z").iter_rows())
        kept = dict(
            rows.filter(phase="score").select("seed", "candidate").unique("seed").iter_rows()
        )
        returns = np.full((len(seeds), len(numbers)), np.nan)
        errors = np.full_like(returns, np.nan)
        value = pl.col("return").cast(pl.Float64)
        cells = tried.group_by("seed", "candidate").agg(
            value.mean().alias("mean"), (value.std() / value.count().sqrt()).alias("error")
        )
        row_of = {seed: i for i, seed in enumerate(seeds)}
        column_of = {number: i for i, number in enumerate(numbers)}
        for seed, number, mean, error in cells.iter_rows():
            at = row_of[seed], column_of[number]
            returns[at] = np.nan if mean is None else mean
            errors[at] = np.nan if error is None else error
        try:
            chosen = np.array([column_of[kept[seed]] for seed in seeds], int)
        except KeyError:
            raise SlacklineError(
                f"the scores of {method} on {variation} at K = {shots} name a candidate "
                "that was never tried; adapt that run again: slackline adapt RUN"
            ) from None
        latent, found = self.entry(method).method.latent, None
        if tried.select("candidate", "z").n_unique() > len(numbers):
            its = {(seed, n): z for seed, n, z in by_seed.unique(["seed", "candidate"]).iter_rows()}
            found = regions(latent, np.array([its[seed, kept[seed]] for seed in seeds]))
        zs = [list(z_of[n]) for n in numbers]
        return Selection(seeds, zs, latent.is_line, returns, errors, chosen, found)

    def remarks(self, shots: int) -> list[str]:
        """What a reader of the table at K must know beside its numbers."""
        entries = self.methods(shots)
        samples = [
            f"{e.title} trains {e.method.num_members} policies: {e.method.num_members} times the "
            "samples."
            for e in entries
            if e.method.num_members > 1
        ]
        partly = [
            f"{e.title} tries the first {shots} of its {e.method.latent.size} policies."
            for e in entries
            if isinstance(e.method.latent, OneHot) and e.method.latent.size > shots
        ]
        return [self.suite.note] * bool(self.suite.note) + samples + partly


@dataclass(frozen=True)
class Rival:
    """The single policy that an entry is compared with."""

    entry: Entry
    measured: Measured
    paired: bool
    """Whether row by row both are of the same seed."""


@dataclass(frozen=True)
class Significant:
    """On how many variations a method is better or worse than Single at the 5 % level."""

    better: int
    worse: int
    better_after_holm: int
    worse_after_holm: int


def place_of(method: Method) -> int:
    """Single first, then what headlines speak of, then the others by the catalogue."""
    first = (BASELINE, *HEADLINERS)
    if method.name in first:
        return first.index(method.name)
    return len(first) + list(CATALOGUE).index(method.name)


def headliner_of(entries: list[Entry]) -> Entry | None:
    """The one of several entries that a report speaks of."""
    return next((e for name in HEADLINERS for e in entries if e.method.name == name), None)


@dataclass(frozen=True)
class Results:
    """Everything below one or several folders."""

    path: Path
    """The first of them."""
    suites: list[SuiteResult]


class Played(NamedTuple):
    """A run that was adapted to one suite."""

    run: RunFolder
    config: RunConfig
    scores: pl.DataFrame

    @property
    def settings(self) -> str:
        """The same for runs that differ in their seeds alone."""
        return json.dumps(self.config.to_json() | {"seeds": None}, sort_keys=True)


def load_results(paths: Path | Sequence[Path]) -> Results:
    """Read every scored run at any depth below some folders."""
    paths = [paths] if isinstance(paths, Path) else list(paths)
    by_suite: dict[str, list[Played]] = defaultdict(list)
    for run in runs_below(paths):
        config = run.config().spelt_out
        for suite, scores in scores_by_suite(run).items():
            by_suite[suite].append(Played(run, config, scores))
    suites = [suite_result(name, paths[0], by_suite[name]) for name in sorted(by_suite)]
    return Results(paths[0], suites)


def suite_result(name: str, path: Path, played: list[Played]) -> SuiteResult:
    """The runs that were adapted to one suite, each with its scores there."""
    suite = _suite_of_all(name, path, played)
    runs, scores = [], []
    for entry, title, group in named_groups(played, path):
        runs += [_run_result(each, entry, title, path) for each in group]
        scores += [each.scores.with_columns(pl.lit(entry).alias("method")) for each in group]
    shown = pl.concat(scores).with_columns(pl.col("return") * suite.display_scale)
    return SuiteResult(suite, runs, shown)


def named_groups(played: list[Played], path: Path) -> list[tuple[str, str, list[Played]]]:
    """(name, title, runs) of what becomes an entry each, in the order of the catalogue."""
    order, found = list(CATALOGUE), []
    for method in sorted({p.config.method for p in played}, key=order.index):
        groups = _groups([p for p in played if p.config.method == method])
        title = CATALOGUE[method].title
        if len(groups) == 1:
            found.append((method, title, groups[0]))
            continue
        for group, words in zip(groups, _set_apart(groups, path), strict=True):
            found.append((f"{method} ({words})", f"{title} ({words})", group))
    return found


def _groups(played: list[Played]) -> list[list[Played]]:
    """Runs of the same settings together, unless they hold the same seed twice."""
    found: dict[tuple[str, int], list[Played]] = {}
    for each in played:
        copy = 0
        while any(
            set(each.config.seeds) & set(other.config.seeds)
            for other in found.get((each.settings, copy), [])
        ):
            copy += 1
        found.setdefault((each.settings, copy), []).append(each)
    return list(found.values())


def _set_apart(groups: list[list[Played]], path: Path) -> list[str]:
    """What the settings of each group are, as far as they are not those of all groups."""
    every = [_settings(group[0]) for group in groups]
    names = [name for name in every[0] if len({repr(s[name]) for s in every}) > 1]
    hyper = {f.name for f in fields(Hyper)}
    names = [name for name in names if name not in hyper or not _explained(name, groups)]
    words = [", ".join(_word(name, s[name]) for name in names) for s in every]
    if len(set(words)) == len(words):
        return words
    folders = [os.path.relpath(group[0].run.path, path) for group in groups]
    pairs = zip(words, folders, strict=True)
    return [f"{word}, {folder}" if word else folder for word, folder in pairs]


def _settings(played: Played) -> dict[str, Any]:
    config = played.config
    preset, _ = nearest_preset(played.run.suite(), config)
    return {
        "preset": preset,
        "steps": config.steps,
        "begun from single": bool(config.from_single),
        "trained on": config.suite,
        **config.options,
        **asdict(config.hyper),
    }


def _explained(name: str, groups: list[list[Played]]) -> bool:
    """Whether each group's preset says what its hyper-parameter `name` is."""
    return all(
        name not in nearest_preset(group[0].run.suite(), group[0].config)[1] for group in groups
    )


def _word(name: str, value: Any) -> str:
    if name == "beta":
        return f"β = {value:g}"
    if name == "preset":
        return str(value)
    if isinstance(value, bool):
        return f"{'' if value else 'not '}{name.replace('_', ' ')}"
    return f"{name.replace('_', ' ')} {brief(value)}"


def _suite_of_all(name: str, path: Path, played: list[Played]) -> Suite:
    """The suite as its runs keep it; they must agree, or their scores do not compare."""
    kept = [(each.run.path.name, each.run.spec(name)) for each in played]
    if is_own(name):  # an earlier version kept no more than the name
        kept = [pair for pair in kept if pair[1]] or kept
    (first, spec), *others = kept
    for folder, other in others:
        different = difference(spec or {}, other or {})
        if different:
            raise SlacklineError(
                f"{path}: {first} and {folder} keep different suites by the name {name} "
                f"({different}); report them from folders of their own"
            )
    suites = [suite_played(each.run, name, each.scores) for each in played]
    return max(suites, key=lambda suite: len(suite.variations))


def _run_result(played: Played, name: str, title: str, root: Path) -> RunResult:
    run, config = played.run, played.config
    return RunResult(
        path=run.path,
        config=config,
        method=config.resolved_method,
        provenance=run.read()["provenance"],
        progress=run.read_progress(),
        display_scale=run.suite().display_scale,
        name=name,
        title=title,
        root=root,
    )
