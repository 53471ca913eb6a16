"""What the report shows, read from run folders and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from slackline.bench.cells import finished_runs, scores_by_suite, suite_played
from slackline.bench.measured import BesideSingle, Measured, beside_single, measure
from slackline.bench.stats import Estimate, decimals, iqm, iqm_interval, score_matrix, seed_scores
from slackline.errors import SlacklineError
from slackline.methods.catalogue import BASELINE, CATALOGUE, HEADLINERS
from slackline.methods.catalogue import method as find_method
from slackline.methods.latent import OneHot
from slackline.methods.method import Method
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

    @property
    def folder(self) -> str:
        return self.path.name

    @property
    def budget(self) -> str:
        return f"{len(self.config.seeds)} seeds × {self.config.steps:,} steps"

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

    @property
    def positions(self) -> np.ndarray:
        """Where the candidates stand on an axis: a line's first coordinate, else their number."""
        if self.on_a_line:
            return np.array([z[0] for z in self.zs])
        return np.arange(len(self.zs), dtype=float)

    @property
    def axis_title(self) -> str:
        return "z" if self.on_a_line else "candidate"


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
        """The variations that every run was adapted to, in the suite's order, without Train."""
        measured = [
            set(self.scores.filter(method=run.config.method, shots=shots)["variation"].unique())
            for run in self.runs
            if not self.scores.filter(method=run.config.method, shots=shots).is_empty()
        ]
        common = set.intersection(*measured) if measured else set()
        return [v.name for v in self.suite.variations if v.name in common]

    @_remembered
    def runs_at(self, shots: int) -> list[RunResult]:
        """The runs measured at K, in the order of the catalogue."""
        present = set(self.scores.filter(shots=shots)["method"].unique())
        return [run for run in self.runs if run.method.name in present]

    def methods(self, shots: int) -> list[Method]:
        return [run.method for run in self.runs_at(shots)]

    def baseline(self, shots: int) -> Method | None:
        """The single policy, if it was measured at K."""
        return next((m for m in self.methods(shots) if m.name == BASELINE), None)

    def headliner(self, shots: int) -> Method | None:
        """The method that the headline speaks of, if it was measured at K."""
        return headliner_of(self.methods(shots))

    def adapting(self, shots: int) -> list[Method]:
        """The methods that had more than one candidate to choose from."""
        tried = self.scores.filter(shots=shots, phase="select")
        several = tried.filter(tried["candidate"] > 0)["method"].unique()
        return [method for method in self.methods(shots) if method.name in several]

    def main_method(self, shots: int) -> Method:
        """Of the methods that had a choice, the one to show first."""
        methods = self.adapting(shots)
        return headliner_of(methods) or methods[0]

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
    def beside_single(self, method: str, shots: int) -> BesideSingle | None:
        """A method compared with the single policy; None where there is none, or it is the one."""
        single = self.baseline(shots)
        if single is None or method == single.name:
            return None
        return beside_single(self.measured(method, shots), self.measured(single.name, shots))

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
        return self.measured(method, shots).headroom if method == BASELINE else None

    @_remembered
    def iqm(self, method: str, shots: int) -> Estimate:
        """The interquartile mean over seeds and variations."""
        matrix = self.matrix(method, shots)
        return Estimate(iqm(matrix), *iqm_interval(matrix))

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
        z_of = dict(tried.select("candidate", "z").unique("candidate").iter_rows())
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
                "that was never tried; adapt that run again: slackline adapt"
            ) from None
        line = next(r.method.latent.is_line for r in self.runs if r.method.name == method)
        zs = [list(z_of[n]) for n in numbers]
        return Selection(seeds, zs, line, returns, errors, chosen)

    def remarks(self, shots: int) -> list[str]:
        """What a reader of the table at K must know beside its numbers."""
        methods = self.methods(shots)
        samples = [
            f"{m.title} trains {m.num_members} policies: {m.num_members} times the samples."
            for m in methods
            if m.num_members > 1
        ]
        partly = [
            f"{m.title} tries the first {shots} of its {m.latent.size} policies."
            for m in methods
            if isinstance(m.latent, OneHot) and m.latent.size > shots
        ]
        return [self.suite.note] * bool(self.suite.note) + samples + partly


def headliner_of(methods: list[Method]) -> Method | None:
    """The one of several methods that a report speaks of."""
    named = {method.name: method for method in methods}
    return next((named[name] for name in HEADLINERS if name in named), None)


@dataclass(frozen=True)
class Results:
    """Everything below one folder."""

    path: Path
    suites: list[SuiteResult]


def load_results(path: Path) -> Results:
    """Read every scored run in a folder."""
    by_suite: dict[str, list[tuple[RunFolder, pl.DataFrame]]] = defaultdict(list)
    seen: dict[tuple[str, str], str] = {}
    for run in finished_runs(path):
        method = run.config().method
        for suite, scores in scores_by_suite(run).items():
            twin = seen.setdefault((suite, method), run.path.name)
            if twin != run.path.name:
                raise SlacklineError(
                    f"{path}: {twin} and {run.path.name} are both {method} on {suite}; "
                    "report them from folders of their own, or with --summary"
                )
            by_suite[suite].append((run, scores))
    suites = [suite_result(name, path, played) for name, played in by_suite.items()]
    return Results(path, suites)


def suite_result(
    name: str, path: Path, played: list[tuple[RunFolder, pl.DataFrame]]
) -> SuiteResult:
    """The runs that were adapted to one suite, each with its scores there."""
    order, suite = list(CATALOGUE), _suite_of_all(name, path, played)
    played = sorted(played, key=lambda pair: order.index(pair[0].config().method))
    scores = pl.concat([rows for _, rows in played])
    shown = scores.with_columns(pl.col("return") * suite.display_scale)
    return SuiteResult(suite, [_run_result(run) for run, _ in played], shown)


def _suite_of_all(name: str, path: Path, played: list[tuple[RunFolder, pl.DataFrame]]) -> Suite:
    """The suite as its runs keep it; they must agree, or their scores do not compare."""
    kept = [(run.path.name, run.spec(name)) for run, _ in played]
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
    suites = [suite_played(run, name, scores) for run, scores in played]
    return max(suites, key=lambda suite: len(suite.variations))


def _run_result(run: RunFolder) -> RunResult:
    config = run.config()
    return RunResult(
        path=run.path,
        config=config,
        method=find_method(config.method, **config.options),
        provenance=run.read()["provenance"],
        progress=run.read_progress(),
        display_scale=run.suite().display_scale,
    )
