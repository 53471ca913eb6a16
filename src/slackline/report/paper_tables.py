"""The paper's tables, made of stored runs: what was measured, beside what the paper prints.

A cell that was not run says so, and the last table has the command that would run it. Every table
comes with records, plain numbers for a program (`--format csv`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from slackline.adapt.catalogue import adapt_command
from slackline.bench.pooled import probability_of_improvement
from slackline.bench.stats import Estimate, decimals, summarise
from slackline.methods.catalogue import BASELINE, CATALOGUE, FAN, SENSES, VIGOUR
from slackline.methods.latent import OneHot
from slackline.methods.method import Method
from slackline.paper import (
    SAME_CHANGES,
    paper_average,
    paper_ratio,
    paper_score,
    paper_summary,
    paper_train,
    printed_betas,
    printed_methods,
    printed_shots,
)
from slackline.report.results import Entry, Results, SuiteResult
from slackline.report.table import Column, Row, Table
from slackline.report.tables import benchmark_table
from slackline.report.words import COST_RATIO, IMPROVEMENT, PAPER_SCORING
from slackline.shown import command, counted

FAMILIES = (
    *("cartpole", "acrobot", "pendulum", "minigrid"),
    *("halfcheetah", "ant", "fruitbot", "maze2d"),
)
"""Of the paper's first table, in its order."""
FURTHER = ("halfcheetah-mujoco", "ant-mujoco")
"""The same robots on another engine, which the paper has not."""
FURTHER_METHODS = ("single", "lop", "diayn_r", "lc")
SEARCHED = ("diayn_r", "diayn_r_l2", "lc")
"""Methods that the paper reports with the β that was best on the test environments."""
METHODS = (
    *("single", "lop", "diayn_r", "diayn_r_l2", "lc"),
    *("ensemble", "cop", "bop", FAN, SENSES, VIGOUR, "perturbed"),
)
"""In the paper's order, then those that are not in its first table."""
SHOTS = 10
"""K of the paper's first table."""
NOT_RUN = "not run"
SEEDS = 10
"""The paper's."""


class PaperTable(NamedTuple):
    tables: list[Table]
    records: list[dict[str, Any]]


class Missing(NamedTuple):
    """A number that the paper has and the store has not."""

    what: str
    command: str


# What is in a cell


def record(result: SuiteResult, entry: Entry, shots: int) -> dict[str, Any]:
    """Everything that is known of an entry at K, as plain numbers."""
    suite, name, method = result.suite.name, entry.name, entry.method
    average = summarise(result.matrix(name, shots).mean(axis=1))
    train, rival = result.train_scores(name, shots), result.rival(name, shots)
    biased = result.measured(name, shots).by_selection
    found = {
        "suite": suite,
        "method": method.name,
        "entry": name,
        "beta": method.options.get("beta"),
        "K": shots,
        "seeds": average.num_seeds,
        "steps": entry.config.steps,
        "variations": len(result.variations(shots)),
        "changes": len(result.suite.variations),
        "mean": average.mean,
        "std": average.std,
        **_named("iqm", result.iqm(name, shots)),
        **_named("ratio", result.ratio_to_single(name, shots)),
        **_named("better", result.improvement(name, shots)),
        "paired": None if rival is None else rival.paired,
        "train": None if train is None else float(train.mean()),
        "paper_scoring_biased": float(biased.mean()),
        "paper_mean": paper_average(suite, method, shots),
        "paper_ratio": paper_ratio(suite, method, shots),
        "paper_train": paper_train(suite, method),
        "folders": " ".join(str(run.path) for run in entry.runs),
    }
    return {key: _rounded(value) for key, value in found.items()}


def _named(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    values = estimate or (None, None, None)
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if np.isfinite(value) else None


def shown(found: dict[str, Any], digits: int) -> str:
    """Mean ± std over seeds, and how many those are; where the average is of some changes only,
    of how many, since the paper's beside it is of all."""
    some = f", {found['variations']} of {counted(found['changes'], 'change')}"
    part = some if found["variations"] < found["changes"] else ""
    return f"{found['mean']:.{digits}f} ± {found['std']:.{digits}f} ({found['seeds']}){part}"


def number(value: float | None, digits: int | None = None) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if digits is None else f"{value:.{digits}f}"


def estimate_of(found: dict[str, Any], name: str) -> str:
    values = [found[key] for key in (name, f"{name}_low", f"{name}_high")]
    if values[0] is None:
        return "–"
    return Estimate(*(np.nan if value is None else value for value in values)).shown(2)


def places(result: SuiteResult, shots: Iterable[int]) -> int:
    """Decimals of a suite's averages: none where returns are in the thousands."""
    averages = [result.matrix(entry.name, k).mean() for k in shots for entry in result.methods(k)]
    if any(abs(value) >= 1000.0 for value in averages):
        return 0
    return decimals(averages, result.suite.digits)


# Which run is in a cell


def entries_of(result: SuiteResult, method: str, shots: int) -> list[Entry]:
    """A suite's entries of a method that have scores at K: those that began by themselves first,
    then by most seeds, then by fewest options that are not the suite's."""
    found = [e for e in result.methods(shots) if e.method.name == method]
    usual = CATALOGUE[method].options | result.suite.options.get(method, {})

    def place(entry: Entry) -> tuple[bool, int, int, int]:
        changed = sum(usual.get(name) != value for name, value in entry.method.options.items())
        return bool(entry.config.from_single), -len(entry.seeds), changed, entry.variant

    return sorted(found, key=place) if result.variations(shots) else []


def at_beta(result: SuiteResult, method: str, shots: int, beta: float | None) -> Entry | None:
    """Of those with one β, or any if it is None, the first; with as many skills as are tried, if
    there are such."""
    found = entries_of(result, method, shots)
    if beta is not None:
        found = [e for e in found if e.method.options.get("beta") == beta]
    whole = [e for e in found if not _tries_a_part(e.method, shots)]
    return next(iter(whole or found), None)


def _tries_a_part(method: Method, shots: int) -> bool:
    return isinstance(method.latent, OneHot) and method.latent.size > shots


def usual(result: SuiteResult, method: str, shots: int) -> Entry | None:
    """The entry that stands for a method: with the β of the paper if it says one and there is such
    a run; of the methods whose β it searched for, the best on the changed environments."""
    found = entries_of(result, method, shots)
    if method in SEARCHED and found:
        best = [at_beta(result, method, shots, beta) for beta in betas_of(found)]
        scored = [e for e in best if e is not None] or found
        return max(scored, key=lambda e: result.matrix(e.name, shots).mean())
    printed = [e for e in found if paper_average(result.suite.name, e.method, shots) is not None]
    return at_beta(result, method, shots, _beta(printed[0])) if printed else next(iter(found), None)


def betas_of(entries: Iterable[Entry]) -> list[float]:
    return sorted({beta for e in entries if (beta := _beta(e)) is not None})


def _beta(entry: Entry) -> float | None:
    return entry.method.options.get("beta")


# Table 1


def summary(results: Results, *, stored_only: bool = False) -> PaperTable:
    """All families and methods at K = 10: returns, ratios to Single, and who is likely better.

    With `stored_only` no rows of suites that have not been run.
    """
    by_name = {result.suite.name: result for result in results.suites}
    first = [n for n in (*FAMILIES, *FURTHER) if n in by_name or not stored_only]
    names = [*first, *(name for name in by_name if name not in first)]
    held: dict[tuple[str, str], dict[str, Any]] = {}
    for name in names:
        for method in METHODS if name in by_name else ():
            shots = shots_of(by_name[name])
            entry = usual(by_name[name], method, shots)
            if entry is not None:
                held[name, method] = record(by_name[name], entry, shots)
    shown_methods = [m for m in METHODS if any(key[1] == m for key in held)]
    missing = [each for name in first for each in missing_methods(name, held)]
    tables = [
        _returns_table(by_name, names, shown_methods, held),
        _ratio_table(by_name, names, shown_methods, held),
        _better_table(by_name, names, shown_methods, held),
        *missing_table(missing),
    ]
    return PaperTable(tables, list(held.values()))


def shots_of(result: SuiteResult) -> int:
    return SHOTS if SHOTS in result.shots else result.main_shots


Cells = dict[tuple[str, str], dict[str, Any]]


def _returns_table(
    by_name: dict[str, SuiteResult], names: Sequence[str], methods: Sequence[str], held: Cells
) -> Table:
    rows = []
    for name in names:
        digits = places(by_name[name], [shots_of(by_name[name])]) if name in by_name else 0
        cells = []
        for method in methods:
            found, paper = held.get((name, method)), _paper_in_summary(name, method)
            text = _cell(found, digits, paper is not None or _wanted(name, method))
            cells.append(text + _other_shots(found) + _other_beta(found, paper))
            cells += [number(paper)] * _has_paper(method)
        rows.append((name, *cells))
    return Table(
        f"Table 1: average return over the changed environments, K = {SHOTS}",
        (Column("suite", "Suite", words=True), *_paper_columns(methods)),
        tuple(map(tuple, _in_sections(rows))),
        "mean ± std over seeds (number of seeds) of fresh episodes; 'paper' is the paper's own "
        "number, of other engines and budgets. Of DIAYN+R and Lc it is the β that was best on the "
        "changed environments where several were run, as the paper reports them: optimistic. "
        f"{_optimistic(by_name, held)}{NOT_RUN}: the paper has a number, the store has none.",
    )


def _cell(found: dict[str, Any] | None, digits: int, wanted: bool) -> str:
    if found is not None:
        return shown(found, digits)
    return NOT_RUN if wanted else "–"


def _other_shots(found: dict[str, Any] | None) -> str:
    """Said where nothing was measured at the table's K."""
    return "" if found is None or found["K"] == SHOTS else f", K = {found['K']}"


def _other_beta(found: dict[str, Any] | None, paper: float | None) -> str:
    """Said where the paper's number beside it is of another β."""
    if found is None or paper is None or found["beta"] is None or found["method"] in SEARCHED:
        return ""
    return "" if found["paper_mean"] is not None else f", β = {found['beta']:g}"


def _optimistic(by_name: dict[str, SuiteResult], held: Cells) -> str:
    """Which β's were chosen where there were several."""
    words = [
        f"{suite}'s {method} β = {found['beta']:g}"
        for (suite, method), found in held.items()
        if method in SEARCHED and len(betas_of(entries_of(by_name[suite], method, found["K"]))) > 1
    ]
    return f"Here: {', '.join(words)}. " if words else ""


def _paper_in_summary(suite: str, method: str) -> float | None:
    """What the paper prints in its first table, or of further methods in those of the suite."""
    printed = paper_summary(suite, method)
    if printed is not None or suite in SAME_CHANGES:
        return printed
    return paper_average(suite, CATALOGUE[method], SHOTS)


def _with_beta(method: Method, beta: float | None) -> Method:
    if beta is None or "beta" not in method.options:
        return method
    return method.with_options(beta=beta)


def _has_paper(method: str) -> bool:
    return any(_paper_in_summary(suite, method) is not None for suite in FAMILIES)


def _wanted(suite: str, method: str) -> bool:
    return suite in FURTHER and method in FURTHER_METHODS


def _paper_columns(methods: Sequence[str], *, paper: bool = True) -> list[Column]:
    columns = []
    for method in methods:
        columns.append(Column(method, CATALOGUE[method].title, tags=(("method", method),)))
        if paper and _has_paper(method):
            columns.append(Column("paper", "paper’s", quoted=True, tags=(("method", method),)))
    return columns


def _in_sections(rows: list[tuple[str, ...]]) -> list[list[Row]]:
    """The paper's families, then the rest."""
    made = [Row(cells, tags=(("suite", cells[0]),)) for cells in rows]
    families = [row for row in made if row.cells[0] in FAMILIES]
    return [families, [row for row in made if row.cells[0] not in FAMILIES]]


def _ratio_table(
    by_name: dict[str, SuiteResult], names: Sequence[str], methods: Sequence[str], held: Cells
) -> Table:
    others, rows = [m for m in methods if m != BASELINE], []
    for name in names:
        cells = []
        for method in others:
            found = held.get((name, method))
            cells.append("–" if found is None else estimate_of(found, "ratio"))
            ratio = None if found is None else found["paper_ratio"]
            cells += [number(ratio, 2)] * _has_paper(method)
        rows.append((name, *cells))
    costs = any(
        result.ratios_of_costs(shots_of(result))
        for result in by_name.values()
        if result.variations(shots_of(result))
    )
    return Table(
        "Ratio to Single, with 95 % intervals",
        (Column("suite", "Suite", words=True), *_paper_columns(others)),
        tuple(map(tuple, _in_sections(_filled(rows)))),
        "of the averages over changed environments, to the Single of the same settings where there "
        "is one; pair by pair where both are of the same seeds; Fieller's interval. More than 1 is "
        f"better. {f'Of negative returns: {COST_RATIO}. ' if costs else ''}",
    )


def _filled(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [row for row in rows if set(row[1:]) - {"–"}]


def _better_table(
    by_name: dict[str, SuiteResult], names: Sequence[str], methods: Sequence[str], held: Cells
) -> Table:
    others = [m for m in methods if m != BASELINE]
    rows = [
        (
            name,
            *(
                "–" if (name, m) not in held else estimate_of(held[name, m], "better")
                for m in others
            ),
        )
        for name in names
    ]
    sections = _in_sections(_filled(rows))
    pooled = Row(("all families", *(_pooled(by_name, held, m) for m in others)), kind="strong")
    return Table(
        "Probability that a run is better than one of Single",
        (Column("suite", "Suite", words=True), *_paper_columns(others, paper=False)),
        (*map(tuple, sections), (pooled,)),
        f"{IMPROVEMENT[0].upper()}{IMPROVEMENT[1:]}. All families: the average over those of the "
        "paper's that were run, seeds resampled within each (stratified bootstrap).",
    )


def _pooled(by_name: dict[str, SuiteResult], held: Cells, method: str) -> str:
    pairs, paired = [], []
    for name in FAMILIES:
        found = held.get((name, method))
        if found is None:
            continue
        rival = by_name[name].rival(found["entry"], found["K"])
        if rival is not None:
            pairs.append((by_name[name].matrix(found["entry"], found["K"]), rival.measured.changed))
            paired.append(rival.paired)
    if not pairs:
        return "–"
    return f"{probability_of_improvement(pairs, paired=paired).shown(2)} ({len(pairs)})"


def missing_methods(suite: str, held: Cells) -> list[Missing]:
    """What Table 1 lacks of a suite, as one command."""
    wanted = [m for m in METHODS if _paper_in_summary(suite, m) is not None or _wanted(suite, m)]
    lacking = [m for m in wanted if (suite, m) not in held]
    if not lacking:
        return []
    out = f"runs/{suite}"
    bench = command("bench", suite, "--methods", *lacking, "--seeds", SEEDS, "--out", out)
    return [Missing(f"{suite}: {', '.join(lacking)}", bench)]


def missing_table(missing: Sequence[Missing]) -> list[Table]:
    """What has not been run, and how it would be; no table where nothing is missing."""
    if not missing:
        return []
    columns = (Column("not run", "Not run", words=True), Column("command", "Command", words=True))
    rows = tuple(Row(tuple(each)) for each in missing)
    return [Table("Cells that have not been run", columns, (rows,))]


# K × method


def shots_table(results: Results) -> PaperTable:
    """Average return by K, of suites where the paper or the store has several."""
    made = [suite_by_shots(result) for result in results.suites if len(_every_shots(result)) > 1]
    missing = [lack for _, _, lacking in made for lack in lacking]
    records = [record for _, found, _ in made for record in found]
    return PaperTable([*(table for table, _, _ in made), *missing_table(_once(missing))], records)


def _every_shots(result: SuiteResult) -> list[int]:
    """The K's of the store and of the paper."""
    stored = [k for k in result.shots if result.variations(k)]
    return sorted({*stored, *printed_shots(result.suite.name)}) if stored else []


Made = tuple[Table, list[dict[str, Any]], list[Missing]]
"""A table, its records, and what it lacks."""


def suite_by_shots(result: SuiteResult) -> Made:
    """A row for every K, a column a method."""
    home, every = result.suite.name, _every_shots(result)
    methods = [
        m
        for m in METHODS
        if _printed_anywhere(home, m, every) or any(entries_of(result, m, k) for k in result.shots)
    ]
    rows, records, missing, notes = [], [], [], []
    for k in every:
        cells: list[str] = []
        for method in methods:
            text, found, lacking = cell_at_shots(result, method, k)
            cells += [text, *_paper_cell(result, method, k, every)]
            records += [] if found is None else [found]
            missing += [] if lacking is None else [lacking]
            if text.endswith("*"):
                notes.append(f"{method} at K = {k} tries the first {k} of its skills.")
        rows.append(Row((str(k), *cells), tags=(("k", str(k)),)))
    table = Table(
        f"{result.suite.title}: average return by the number K of policies tried",
        (Column("K", words=True), *_shots_columns(home, methods, every)),
        (tuple(rows),),
        " ".join(["mean ± std over seeds (number of seeds), fresh episodes.", *_marked(notes)]),
    )
    return table, records, missing


def cell_at_shots(
    result: SuiteResult, method: str, shots: int
) -> tuple[str, dict[str, Any] | None, Missing | None]:
    """What a method scores at K: the text, the record, and what is missing for it."""
    entry = at_beta(result, method, shots, _usual_beta(result, method))
    if entry is None:
        wanted = method in printed_methods(result.suite.name, shots)
        lacking = missing_shots(result, method, shots) if wanted else None
        return NOT_RUN if wanted else "–", None, lacking
    found, part = record(result, entry, shots), _tries_a_part(entry.method, shots)
    text = shown(found, places(result, [k for k in result.shots if result.variations(k)]))
    lacking = missing_shots(result, method, shots) if part else None
    return text + "*" * part, found | {"part_of_skills": part}, lacking


def _marked(notes: list[str]) -> list[str]:
    return [f"* {note}" for note in notes]


def _paper_cell(result: SuiteResult, method: str, shots: int, every: list[int]) -> list[str]:
    printed = _printed_anywhere(result.suite.name, method, every)
    return [number(_paper_at(result, method, shots))] if printed else []


def _shots_columns(suite: str, methods: Sequence[str], shots: list[int]) -> list[Column]:
    columns = []
    for method in methods:
        columns.append(Column(method, CATALOGUE[method].title, tags=(("method", method),)))
        if _printed_anywhere(suite, method, shots):
            columns.append(Column("paper", "paper’s", quoted=True, tags=(("method", method),)))
    return columns


def _usual_beta(result: SuiteResult, method: str) -> float | None:
    """The β of the entry that stands for a method at any K."""
    for k in sorted(result.shots, key=lambda k: (k != SHOTS, k)):
        entry = usual(result, method, k)
        if entry is not None:
            return _beta(entry)
    return None


def _printed_anywhere(suite: str, method: str, shots: Iterable[int]) -> bool:
    return any(method in printed_methods(suite, k) for k in shots)


def _paper_at(result: SuiteResult, method: str, shots: int) -> float | None:
    """The paper's average with the β of the run, or its own where nothing was run."""
    beta = _usual_beta(result, method)
    ours = result.suite.options.get(method, {}).get("beta") if beta is None else beta
    return paper_average(result.suite.name, _with_beta(CATALOGUE[method], ours), shots)


def missing_shots(result: SuiteResult, method: str, shots: int) -> Missing:
    """How to get a method at K: adapt what is trained, or train it with as many skills."""
    suite, what = result.suite.name, f"{result.suite.name}: {method} at K = {shots}"
    stored = [e for k in result.shots for e in entries_of(result, method, k)]
    skills = method == "diayn_r"
    if stored and not skills:
        return Missing(what, " && ".join(adapt_command(run.path, shots) for run in stored[0].runs))
    out = f"runs/{suite}-{method}" + (f"-{shots}" if skills else "")
    options = ("--skills", shots) if skills else ()
    home = stored[0].config.suite if stored else suite
    return Missing(what, train_and_adapt(home, method, options, out, shots))


def train_and_adapt(suite: str, method: str, options: Iterable, out: str, shots: int) -> str:
    """The commands that train a method with some options and adapt it with K shots."""
    train = command("train", suite, "--method", method, *options, "--seeds", SEEDS, "--out", out)
    return f"{train} && {adapt_command(out, shots)}"


def _once(missing: Iterable[Missing]) -> list[Missing]:
    return list(dict.fromkeys(missing))


# β


def beta_table(results: Results) -> PaperTable:
    """Return by β and K, and on the unchanged environment, of suites where the paper or the store
    has several β's; and the best β on the changed environments, which is optimistic."""
    made = [each for result in results.suites if (each := suite_by_beta(result)) is not None]
    missing = [lack for _, _, lacking in made for lack in lacking]
    records = [record for _, found, _ in made for record in found]
    return PaperTable([*(table for table, _, _ in made), *missing_table(_once(missing))], records)


def suite_by_beta(result: SuiteResult) -> Made | None:
    """A section a method, a row for every β; None where no method has two."""
    shots, sections, records, missing = _every_shots(result), [], [], []
    for method in METHODS if shots else ():
        stored = [e for k in result.shots for e in entries_of(result, method, k)]
        betas = sorted({*betas_of(stored), *printed_betas(result.suite.name, method)})
        if len(betas) < 2:
            continue
        cells = {(b, k): at_beta(result, method, k, b) for b in betas for k in shots}
        found = {at: record(result, e, at[1]) for at, e in cells.items() if e is not None}
        rows = [beta_row(result, method, beta, shots, found) for beta in betas]
        sections.append((*rows, best_row(result, method, betas, shots, found)))
        records += list(found.values())
        missing += [
            missing_beta(result, method, beta, k)
            for beta, k in cells
            if (beta, k) not in found and _paper_at_beta(result, method, beta, k) is not None
        ]
    if not sections:
        return None
    columns = [Column("method", words=True), Column("β")]
    for name in (*(f"K = {k}" for k in shots), "Train"):
        columns += [Column(name), Column("paper", "paper’s", quoted=True)]
    title = f"{result.suite.title}: average return by β"
    return Table(title, tuple(columns), tuple(sections), BETA_CAPTION), records, missing


BETA_CAPTION = (
    "mean ± std over seeds (number of seeds), fresh episodes; Train is the unchanged environment. "
    "'best' is the β that scores best on the changed environments, as the paper reports DIAYN+R "
    "and Lc: chosen by what it is judged by, so optimistic."
)
ByBeta = dict[tuple[float, int], dict[str, Any]]
"""Records by β and K."""


def beta_row(
    result: SuiteResult, method: str, beta: float, shots: Sequence[int], found: ByBeta
) -> Row:
    """What one β returns at every K and on the unchanged environment, beside the paper's."""
    digits = places(result, [k for k in result.shots if result.variations(k)])
    cells = []
    for k in shots:
        paper = _paper_at_beta(result, method, beta, k)
        cells += [_cell(found.get((beta, k)), digits, paper is not None), number(paper)]
    trains = [found[beta, k]["train"] for k in shots if (beta, k) in found]
    train = next((value for value in trains if value is not None), None)
    theirs = paper_train(result.suite.name, _with_beta(CATALOGUE[method], beta))
    tags = (("method", method), ("beta", f"{beta:g}"))
    return Row((method, f"{beta:g}", *cells, number(train, digits), number(theirs)), tags=tags)


def best_row(
    result: SuiteResult,
    method: str,
    betas: Sequence[float],
    shots: Sequence[int],
    found: ByBeta,
) -> Row:
    """The best β at every K, ours and the paper's."""
    digits = places(result, [k for k in result.shots if result.variations(k)])
    cells = []
    for k in shots:
        ours = [(found[b, k]["mean"], b) for b in betas if (b, k) in found]
        papers = [_paper_at_beta(result, method, b, k) for b in betas]
        known = [value for value in papers if value is not None]
        best = max(ours, default=None)
        cells.append("–" if best is None else f"{best[0]:.{digits}f} (β = {best[1]:g})")
        cells.append(number(max(known, default=None)))
    return Row((method, "best", *cells, "", ""), kind="quiet", tags=(("method", method),))


def _paper_at_beta(result: SuiteResult, method: str, beta: float, shots: int) -> float | None:
    return paper_average(result.suite.name, _with_beta(CATALOGUE[method], beta), shots)


def missing_beta(result: SuiteResult, method: str, beta: float, shots: int) -> Missing:
    suite = result.suite.name
    stored = [
        e
        for k in result.shots
        for e in entries_of(result, method, k)
        if _beta(e) == beta and method != "diayn_r"
    ]
    what = f"{suite}: {method}, β = {beta:g}, K = {shots}"
    if stored:
        return Missing(what, adapt_command(stored[0].runs[0].path, shots))
    skills = ("--skills", shots) if method == "diayn_r" and shots != SHOTS else ()
    out = f"runs/{suite}-{method}-beta-{beta:g}" + (f"-{shots}" if skills else "")
    options = ("--beta", f"{beta:g}", *skills)
    return Missing(what, train_and_adapt(suite, method, options, out, shots))


# Every variation


def variations_table(results: Results, *, paper_scoring: bool = False) -> PaperTable:
    """A table a suite and K: every changed environment, every entry."""
    tables, records = [], []
    for result in results.suites:
        for shots in result.shots:
            if not result.variations(shots):
                continue
            tables.append(benchmark_table(result, shots, paper_scoring=paper_scoring))
            for entry in result.methods(shots):
                records += variation_records(result, entry, shots)
    return PaperTable(tables, records)


def variation_records(result: SuiteResult, entry: Entry, shots: int) -> list[dict[str, Any]]:
    matrix, biased = (
        result.matrix(entry.name, shots),
        result.measured(entry.name, shots).by_selection,
    )
    found = []
    for i, variation in enumerate(result.variations(shots)):
        cell = summarise(matrix[:, i])
        paper = paper_score(result.suite.name, entry.method, variation, shots)
        found.append(
            {
                "suite": result.suite.name,
                "method": entry.method.name,
                "entry": entry.name,
                "beta": _beta(entry),
                "K": shots,
                "variation": variation,
                "mean": _rounded(cell.mean),
                "std": _rounded(cell.std),
                "seeds": cell.num_seeds,
                "paper_scoring_biased": _rounded(float(biased[:, i].mean())),
                "paper_mean": paper and paper.mean,
                "paper_std": paper and paper.std,
                "folders": " ".join(str(run.path) for run in entry.runs),
            }
        )
    return found


def with_paper_scoring(made: PaperTable) -> PaperTable:
    """The same, and a table of the biased numbers that the paper's scoring gives."""
    if not made.records:
        return made
    rows = tuple(
        Row(
            (
                f["suite"],
                f["entry"],
                str(f["K"]),
                f"{f['mean']:.6g}",
                f"{f['paper_scoring_biased']:.6g}",
            )
        )
        for f in made.records
    )
    words = [Column(name, words=True) for name in ("suite", "method")]
    columns = (*words, Column("K"), Column("score"), Column("paper's scoring (biased)"))
    table = Table("Scored as the paper does (biased)", columns, (rows,), f"{PAPER_SCORING}.")
    return PaperTable([*made.tables, table], made.records)


TABLES: dict[str, Callable[..., PaperTable]] = {
    "summary": summary,
    "shots": shots_table,
    "beta": beta_table,
    "variations": variations_table,
}


def paper_table(
    results: Results, name: str, *, paper_scoring: bool = False, stored_only: bool = False
) -> PaperTable:
    """One of the paper's tables by name; with `stored_only` the summary has no other suites."""
    if name == "variations":
        return variations_table(results, paper_scoring=paper_scoring)
    only = {"stored_only": True} if stored_only and name == "summary" else {}
    made = TABLES[name](results, **only)
    return with_paper_scoring(made) if paper_scoring else made
