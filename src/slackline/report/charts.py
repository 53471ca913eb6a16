"""The report's charts: what of the results they show."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from slackline.bench.stats import decimals, summarise
from slackline.drawing.sheet import NUM_COLOURS
from slackline.methods.catalogue import CATALOGUE
from slackline.methods.method import Method
from slackline.paper import paper_score
from slackline.report.chart import Axis, Band, Bars, Chart, Diamonds, Line, Mark
from slackline.report.results import Entry, RunResult, Selection, SuiteResult
from slackline.report.words import in_a_sentence
from slackline.shown import counted

NUM_PATTERNS = 4
"""Hatchings of bars that the style sheet has."""
MAX_THIN_LINES = 24
"""More seeds than this are shown by their band alone."""
MAX_POINTS = 400
"""Of a training curve."""


def colour_index(method: Method) -> int:
    """A method keeps its colour in every chart of every report."""
    return list(CATALOGUE).index(method.name) % NUM_COLOURS


def mean_over_seeds(values: np.ndarray) -> np.ndarray:
    """Mean over the leading axis of what was measured; NaN where nothing was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "mean of empty slice"
        return np.nanmean(values, axis=0)


# Scores


def scores_chart(result: SuiteResult, shots: int) -> Chart:
    """Bars: fresh-episode score by variation and method; the paper's as open diamonds."""
    names, methods = result.variations(shots), result.methods(shots)
    bars = [_score_bars(result, method, shots) for method in methods]
    papers = [_paper_diamonds(result, method, shots) for method in methods]
    return Chart(
        marks=(*bars, *filter(None, papers)),
        x=Axis(names=tuple(names)),
        y=Axis("return on fresh episodes", from_zero=True),
        label=f"Bar chart of the score on {len(names)} variations of {result.suite.title}, "
        f"K = {shots}. The table below holds its numbers.",
        height=max(56 + len(names) * (16 + (20 if len(methods) <= 3 else 13) * len(methods)), 150),
        whiskers="± standard deviation over seeds",
    )


def _score_bars(result: SuiteResult, method: Entry, shots: int) -> Bars:
    names, digits = result.variations(shots), result.digits(shots)
    cells = [summarise(column) for column in result.matrix(method.name, shots).T]
    return Bars(
        x=range(len(names)),
        y=[cell.mean for cell in cells],
        colour=colour_index(method.method),
        label=method.title,
        hover=tuple(
            f"{method.title} on {name}\n{cell.shown(digits)} over {counted(cell.num_seeds, 'seed')}"
            for name, cell in zip(names, cells, strict=True)
        ),
        errors=[cell.std for cell in cells] if cells[0].num_seeds > 1 else None,
        pattern=method.variant % NUM_PATTERNS,
        group=method.name,
    )


def _paper_diamonds(result: SuiteResult, method: Entry, shots: int) -> Diamonds | None:
    names = result.variations(shots)
    cells = [paper_score(result.suite.name, method.method, name, shots) for name in names]
    if not any(cells):
        return None
    return Diamonds(
        x=range(len(names)),
        y=[cell.mean if cell else np.nan for cell in cells],
        colour=None,
        label="the paper’s",
        hover=tuple(
            f"the paper's {method.title} on {name}\n{cell}" if cell else ""
            for name, cell in zip(names, cells, strict=True)
        ),
        group=method.name,
    )


# Ratios to Single


def ratio_chart(records: Sequence[dict[str, Any]]) -> Chart | None:
    """A row a suite and method: its ratio to Single with the 95 % interval, and 1 as a line."""
    found = [record for record in records if record["ratio"] is not None]
    if not found:
        return None
    marks: list[Mark] = [
        Line([0, *range(len(found))], [1.0] * (len(found) + 1), None, "as good as Single",
             width=1.2, dashed=True),
    ]  # fmt: skip
    for i, record in enumerate(found):
        colour = colour_index(CATALOGUE[record["method"]])
        hover = (f"{record['suite']}, {record['entry']}: {_ratio_words(record)}",)
        group = {"group": record["method"]}
        if record["ratio_low"] is not None:
            ends = [record["ratio_low"], record["ratio_high"]]
            marks.append(Line([i, i], ends, colour, hover=hover * 2, width=2.0, **group))
        marks.append(Diamonds([i], [record["ratio"]], colour, "", hover, filled=True))
    names = tuple(f"{record['suite']}: {record['method']}" for record in found)
    low, high = min(r["ratio"] for r in found), max(r["ratio"] for r in found)
    return Chart(
        marks=tuple(marks),
        x=Axis(names=names),
        y=Axis("ratio to Single", span=(max(min(0.5, low - 0.1), 0.0), max(1.6, high + 0.2))),
        label=f"Ratios to Single of {len(found)} suites and methods with their intervals. The "
        "table below holds the numbers.",
        height=80 + 20 * len(found),
    )


def _ratio_words(record: dict[str, Any]) -> str:
    interval = ""
    if record["ratio_low"] is not None:
        interval = f" [{record['ratio_low']:.2f}, {record['ratio_high']:.2f}]"
    return f"{record['ratio']:.2f}{interval}, {counted(record['seeds'], 'seed')}"


# Return against z


def selection_charts(
    result: SuiteResult, method: Entry, shots: int, seed: int | None = None
) -> list[Chart]:
    """Return against z, a chart a variation, all of one scale.

    Bold is the mean over seeds, or one seed with its choice; the other seeds are thin.
    """
    span = return_span(result, method, shots)
    names = result.variations(shots)
    return [selection_chart(result, method, name, shots, span, seed) for name in names]


def return_span(result: SuiteResult, method: Entry, shots: int) -> tuple[float, float]:
    """One scale for all variations, so that they compare at a glance."""
    names = result.variations(shots)
    values = [result.selection(method.name, name, shots).returns.ravel() for name in names]
    if baseline := result.baseline(shots):
        values.append(result.matrix(baseline.name, shots).mean(axis=0))
    flat = np.concatenate(values)
    flat = flat[np.isfinite(flat)]
    return _padded(flat, 0.06) if flat.size else (0.0, 1.0)


def _padded(values: np.ndarray, share: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = share * (high - low or abs(high) or 1.0)
    return low - pad, high + pad


def selection_chart(
    result: SuiteResult,
    method: Entry,
    variation: str,
    shots: int,
    span: tuple[float, float],
    seed: int | None,
) -> Chart:
    found, digits = result.selection(method.name, variation, shots), result.digits(shots)
    colour, reference = (
        colour_index(method.method),
        _reference(result, found, variation, shots, seed),
    )
    # A mean over seeds says something only where the candidates of all are the same.
    bold = found.regions is None or seed is not None or len(found.seeds) == 1
    marks = (
        *_seed_lines(found, colour, digits, seed),
        *([_bold_line(found, colour, digits, seed)] if bold else []),
        *([reference] if reference else []),
        _choices(found, colour, digits, seed),
    )
    return Chart(
        marks=marks,
        x=Axis(
            "z" if found.on_a_line else "candidate",
            "z: where on the line the policy lies" if found.on_a_line else "",
            ticks=(0, 0.25, 0.5, 0.75, 1) if found.on_a_line else (),
            span=_padded(found.positions, 0.05),
        ),
        y=Axis("", "return", span=span),
        label=_selection_label(result, found, variation, shots),
        height=220,
        name=variation,
        note=result.suite.variation(variation).description,
    )


def places(found: Selection) -> list[str]:
    """Each candidate in words: "z = 0.33", or its number and its whole z."""
    if found.on_a_line:
        return [f"z = {x:.2f}" for x in found.positions]
    return [
        f"candidate {i}" + (f" ({', '.join(f'{x:.2f}' for x in z)})" if found.tellable else "")
        for i, z in enumerate(found.zs)
    ]


def _seed_lines(found: Selection, colour: int, digits: int, bold: int | None) -> list[Line]:
    """Seeds joined up along a line; for unrelated candidates, as dots."""
    if len(found.seeds) == 1 or (bold is None and len(found.seeds) > MAX_THIN_LINES):
        return []
    return [
        Line(
            found.positions,
            row,
            colour,
            "one seed" if bold is None else "the other seeds",
            _hover(found, f"seed {seed}, {{}}: ", row, digits),
            width=1.0,
            opacity=0.5 if bold is None else 0.28,
            dot=0.0 if found.on_a_line else 4.0,
            joined=found.on_a_line,
        )
        for seed, row in zip(found.seeds, found.returns, strict=True)
        if seed != bold
    ]


def _hover(found: Selection, words: str, values: np.ndarray, digits: int) -> tuple[str, ...]:
    return tuple(
        f"{words.format(place)}{value:.{digits}f}"
        for place, value in zip(places(found), values, strict=True)
    )


def _bold_line(found: Selection, colour: int, digits: int, seed: int | None) -> Line:
    several = len(found.seeds) > 1
    if seed is None:
        values, label = mean_over_seeds(found.returns), "mean over seeds" if several else "return"
    else:
        values = found.returns[found.seeds.index(seed)]
        label = "one training run" if several else "the training run"
    over = f"mean of {len(found.seeds)} seeds" if several else f"seed {found.seeds[0]}"
    return Line(
        found.positions,
        values,
        colour,
        label,
        _hover(found, f"{{}}: {over} ", values, digits),
        width=2.6,
        dot=6.0 if len(values) <= 40 else 3.0,
        joined=found.on_a_line,
    )


def _reference(
    result: SuiteResult, found: Selection, variation: str, shots: int, seed: int | None
) -> Line | None:
    """The baseline's score."""
    baseline, score = result.baseline(shots), baseline_score(result, variation, shots)
    if baseline is None or score is None:
        return None
    name, (low, high) = in_a_sentence(baseline), _padded(found.positions, 0.05)
    return Line(
        [low, *found.positions, high],
        [score] * (len(found.zs) + 2),
        colour_index(baseline.method),
        f"{name}’s score" if seed is None else f"{name}, mean of seeds",
        (f"{name}: {score:.{result.digits(shots)}f} on fresh episodes",),
        width=1.8,
        dashed=True,
    )


def baseline_score(result: SuiteResult, variation: str, shots: int) -> float | None:
    """The single policy's mean score on a variation, if it was measured."""
    baseline = result.baseline(shots)
    if baseline is None:
        return None
    matrix = result.matrix(baseline.name, shots)
    return float(matrix[:, result.variations(shots).index(variation)].mean())


def _choices(found: Selection, colour: int, digits: int, bold: int | None) -> Diamonds:
    shown = [i for i, seed in enumerate(found.seeds) if bold in (None, seed)]
    kept = found.chosen[shown]
    picked, labels = found.returns[shown, kept], places(found)
    return Diamonds(
        found.positions[kept],
        picked,
        colour,
        "what a seed chose" if bold is None else "the z it chose",
        tuple(
            f"seed {found.seeds[i]} chose {labels[k]}\nselection return {value:.{digits}f}"
            for i, k, value in zip(shown, kept, picked, strict=True)
        ),
        size=9.0 if bold is None else 13.0,
        filled=True,
    )


def _selection_label(result: SuiteResult, found: Selection, name: str, shots: int) -> str:
    digits, mean = result.digits(shots), mean_over_seeds(found.returns)
    if not np.isfinite(mean).any():
        return f"Return against z on {name}: nothing was measured."
    if found.regions is not None:
        return f"Return on {name} of the candidates that every seed drew for itself."
    best, beside = int(np.nanargmax(mean)), ""
    baseline, score = result.baseline(shots), baseline_score(result, name, shots)
    if baseline and score is not None:
        beside = f"; the {in_a_sentence(baseline)} scores {score:.{digits}f}"
    return (
        f"Return against z on {name}: the mean over seeds is highest, {mean[best]:.{digits}f}, "
        f"at {places(found)[best]}{beside}."
    )


# Which z was chosen


def chosen_chart(result: SuiteResult, method: Entry, shots: int) -> Chart:
    """How often each candidate was chosen, stacked by variation."""
    names = result.variations(shots)
    found = {name: result.selection(method.name, name, shots) for name in names}
    first = found[names[0]]
    return Chart(
        marks=tuple(_choice_bars(name, found[name], i) for i, name in enumerate(names)),
        x=_choice_axis(first),
        y=Axis("times chosen", decimals=0, from_zero=True),
        label=f"Stacked bar chart: how often each z was chosen with {method.title}, by variation.",
        height=290 + 12 * len(names),
        legend=len(names) > 1,
    )


def _choice_axis(found: Selection) -> Axis:
    if found.regions is not None:
        return Axis("nearest z", names=tuple(map(_short_z, found.regions.landmarks)))
    ticks = tuple(found.positions) if len(found.zs) <= 12 else ()
    return Axis(found.axis_title, ticks=ticks, decimals=2 if found.on_a_line else 0)


def _short_z(z: Sequence[float]) -> str:
    """As in "0.33 0.33 0.33"."""
    return " ".join(f"{x:.2g}" for x in z)


def _choice_bars(name: str, found: Selection, index: int) -> Bars:
    counts = np.bincount(found.counted, minlength=len(found.counted_zs))
    own = found.regions is not None
    labels = [f"z near {_short_z(z)}" for z in found.counted_zs] if own else places(found)
    return Bars(
        np.arange(len(counts), dtype=float) if own else found.positions,
        counts,
        (index + 2) % NUM_COLOURS,
        name,
        tuple(
            f"{name}: {place} chosen by {count} of {counted(len(found.seeds), 'seed')}"
            for place, count in zip(labels, counts, strict=True)
        ),
        pattern=index // NUM_COLOURS % NUM_PATTERNS,
    )


# Training


def training_chart(result: SuiteResult) -> Chart | None:
    """Return against steps: mean over seeds, min to max as a band, seeds as thin lines.

    None if no episode ended.
    """
    entries, digits = result.all_entries(), result.suite.digits
    marks = [mark for entry in entries for mark in _training_marks(entry, digits)]
    methods = ", ".join(entry.title for entry in entries)
    chart = Chart(
        marks=tuple(marks),
        x=Axis("environment steps per seed", from_zero=True, large=True),
        y=Axis("return while training"),
        label=f"Training curves: return against environment steps, {methods}.",
        height=380,
        legend=True,
    )
    return chart if marks else None


def thinned_curve(run: RunResult) -> tuple[np.ndarray, np.ndarray]:
    """A training curve of at most MAX_POINTS points: neighbours are averaged."""
    steps, returns = run.curve()
    stride = -(-len(steps) // MAX_POINTS)
    if stride <= 1:
        return steps, returns
    starts = range(0, len(steps), stride)
    means = [mean_over_seeds(returns[i : i + stride]) for i in starts]
    return np.array([steps[i : i + stride][-1] for i in starts]), np.array(means)


def where_episodes_ended(steps: np.ndarray, returns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A training curve (P,) or (P, S) without the moments between episodes, which are no gaps:
    where all environments end theirs at once there are more of them than others."""
    some = np.isfinite(returns.reshape(len(steps), -1)).any(axis=1)
    return steps[some], returns[some]


def curves_of(entry: Entry) -> list[tuple[np.ndarray, np.ndarray]]:
    """The training curves of an entry's runs, as one where they were logged at the same steps."""
    curves = [thinned_curve(run) for run in entry.runs]
    steps = curves[0][0]
    if all(np.array_equal(steps, other) for other, _ in curves):
        return [(steps, np.concatenate([returns for _, returns in curves], axis=1))]
    return curves


def _training_marks(entry: Entry, digits: int | None) -> list[Mark]:
    marks: list[Mark] = []
    for steps, returns in curves_of(entry):
        marks += _curve_marks(entry, steps, returns, digits, labelled=not marks)
    return marks


def _curve_marks(
    entry: Entry, steps: np.ndarray, returns: np.ndarray, digits: int | None, *, labelled: bool
) -> list[Mark]:
    if not np.isfinite(returns).any():
        return []
    colour, group, marks = colour_index(entry.method), entry.name, []
    (steps, returns), num_seeds = where_episodes_ended(steps, returns), returns.shape[1]
    if num_seeds > 1:
        low, high = (extreme(returns, axis=1) for extreme in (np.nanmin, np.nanmax))
        marks.append(Band(steps, low, high, colour, group=group))
    if 1 < num_seeds <= MAX_THIN_LINES:
        thin = {"width": 0.8, "opacity": 0.3, "group": group}
        marks += [Line(*where_episodes_ended(steps, r), colour, **thin) for r in returns.T]
    mean, places = mean_over_seeds(returns.T), decimals(returns, digits)
    hover = tuple(
        f"{entry.title}\n{int(step):,} steps: {_spread(value, row, places)}"
        for step, value, row in zip(steps, mean, returns, strict=True)
    )
    label, dashed = entry.title if labelled else "", bool(entry.variant % 2)
    return [*marks, Line(steps, mean, colour, label, hover, group=group, dashed=dashed)]


def _spread(mean: float, row: np.ndarray, digits: int) -> str:
    if len(row) == 1:
        return f"{mean:.{digits}f}"
    low, high = np.nanmin(row), np.nanmax(row)
    return f"mean {mean:.{digits}f}, seeds from {low:.{digits}f} to {high:.{digits}f}"
