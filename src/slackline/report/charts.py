"""The page's charts: Plotly figures as plain dicts.

Colours are names that page.js resolves from the style sheet ("@ink", "@c2", or "@c2/0.3" with an
opacity), so that one figure serves the light and the dark page.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from slackline.bench.stats import decimals, summarise
from slackline.methods.catalogue import BASELINE, CATALOGUE
from slackline.methods.method import Method
from slackline.paper import paper_score
from slackline.report.results import RunResult, Selection, SuiteResult

Figure = dict[str, Any]

NUM_COLOURS = 10
"""Of the style sheet, and of `sheet.COLOURS`."""
PATTERNS = ("", "/", "x", ".")
MAX_THIN_LINES = 24
"""More seeds than this are shown by their band alone."""
MAX_POINTS = 400
"""Of a training curve."""
TOP_LEGEND = {
    "orientation": "h",
    "x": 0,
    "y": 1.02,
    "yanchor": "bottom",
    "traceorder": "normal",
    "font": {"size": 12},
}


def colour_index(method: Method) -> int:
    """A method keeps its colour in every chart of every report."""
    return list(CATALOGUE).index(method.name) % NUM_COLOURS


def scores_chart(result: SuiteResult, shots: int) -> Figure:
    """Bars: fresh-episode score by variation and method; the paper's as open diamonds."""
    names, digits = result.variations(shots), result.digits(shots)
    methods = result.methods(shots)
    bars, diamonds = [], []
    for method in methods:
        colour = f"@c{colour_index(method)}"
        cells = [summarise(column) for column in result.matrix(method.name, shots).T]
        words = [
            f"{c.mean:.{digits}f} ± {c.std:.{digits}f} over {c.num_seeds} seeds" for c in cells
        ]
        shared = {"y": names, "orientation": "h", "offsetgroup": method.name}
        bars.append(
            shared
            | {
                "type": "bar",
                "name": method.title,
                "x": [c.mean for c in cells],
                "marker": {"color": colour},
                "error_x": {
                    "array": [c.std for c in cells],
                    "color": "@ink",
                    "thickness": 1.2,
                    "width": 3,
                },
                "hovertext": [
                    f"{method.title} on {n}<br>{w}" for n, w in zip(names, words, strict=True)
                ],
                "hoverinfo": "text",
            }
        )
        paper = [paper_score(result.suite.name, method, name, shots) for name in names]
        if any(paper):
            diamonds.append(
                shared
                | {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{method.title}, the paper's",
                    "x": [cell and cell.mean for cell in paper],
                    "marker": {
                        "symbol": "diamond-open",
                        "size": 9,
                        "color": "@ink",
                        "line": {"width": 1.8},
                    },
                    "hovertext": [
                        cell and f"the paper's {method.title} on {name}<br>{cell}"
                        for name, cell in zip(names, paper, strict=True)
                    ],
                    "hoverinfo": "text",
                    "showlegend": False,
                }
            )
    height = 56 + len(names) * (16 + (20 if len(methods) <= 3 else 13) * len(methods))
    layout = {
        "barmode": "group",
        "scattermode": "group",
        "bargap": 0.28,
        "height": max(height, 150),
        "showlegend": False,
        "margin": {"t": 8, "r": 16, "b": 44, "l": 8},
        "xaxis": {"title": {"text": "return on fresh episodes"}, "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed", "automargin": True, "showgrid": False},
    }
    return {"data": bars + diamonds, "layout": layout}


def return_range(result: SuiteResult, method: Method, shots: int) -> list[float]:
    """One y range for all variations, so that the panels compare at a glance."""
    names = result.variations(shots)
    values = [result.selection(method.name, name, shots).returns for name in names]
    values += [m.mean(axis=0) for m in [single_matrix(result, shots)] if m is not None]
    flat = np.concatenate([v[np.isfinite(v)] for v in values])
    if not flat.size:
        return [0.0, 1.0]
    low, high = float(flat.min()), float(flat.max())
    pad = 0.06 * (high - low or abs(high) or 1.0)
    return [low - pad, high + pad]


def single_matrix(result: SuiteResult, shots: int) -> np.ndarray | None:
    """The single policy's scores, the reference of many charts."""
    measured = {method.name for method in result.methods(shots)}
    return result.matrix(BASELINE, shots) if BASELINE in measured else None


def single_mean(result: SuiteResult, variation: str, shots: int) -> float | None:
    matrix = single_matrix(result, shots)
    if matrix is None:
        return None
    return float(matrix[:, result.variations(shots).index(variation)].mean())


def selection_chart(
    result: SuiteResult, method: Method, variation: str, shots: int, y_range: list[float]
) -> Figure:
    """Return against z on one variation: thin lines are seeds, diamonds their choices."""
    found, digits = result.selection(method.name, variation, shots), result.digits(shots)
    colour = colour_index(method)
    data = [*_seed_traces(found, colour, digits), _mean_trace(found, colour, digits)]
    single = single_mean(result, variation, shots)
    if single is not None:
        data.append(_reference_trace(found, single, digits))
    data.append(_choice_trace(found, colour, digits))
    is_line = found.axis_title == "z"
    layout = {
        "height": 220,
        "showlegend": False,
        "margin": {"t": 8, "r": 10, "b": 40, "l": 44},
        "xaxis": {
            "title": {"text": found.axis_title, "standoff": 4},
            "range": _padded(found.positions),
            **({"tickvals": [0, 0.25, 0.5, 0.75, 1]} if is_line else {"nticks": 8}),
        },
        "yaxis": {"range": y_range, "nticks": 5},
    }
    return {"data": data, "layout": layout}


def _padded(positions: np.ndarray) -> list[float]:
    low, high = float(positions.min()), float(positions.max())
    pad = 0.05 * (high - low or 1.0)
    return [low - pad, high + pad]


def _seed_traces(found: Selection, colour: int, digits: int) -> list[Figure]:
    """Seeds joined up along a line; for unrelated candidates, as dots."""
    if len(found.seeds) > MAX_THIN_LINES or len(found.seeds) == 1:
        return []
    mode = "lines" if found.axis_title == "z" else "markers"
    return [
        {
            "type": "scatter",
            "mode": mode,
            "x": found.positions.tolist(),
            "y": row.tolist(),
            "line": {"color": f"@c{colour}/0.5", "width": 1},
            "marker": {"color": f"@c{colour}/0.5", "size": 4},
            "hovertext": [
                f"seed {seed}, {place}: {value:.{digits}f}"
                for place, value in zip(places(found), row, strict=True)
            ],
            "hoverinfo": "text",
        }
        for seed, row in zip(found.seeds, found.returns, strict=True)
    ]


def places(found: Selection) -> list[str]:
    """Each candidate in words: "z = 0.33", or its number and its whole z."""
    if found.axis_title == "z":
        return [f"z = {x:.2f}" for x in found.positions]
    return [
        f"candidate {i}" + (f" ({', '.join(f'{x:.2f}' for x in z)})" if 0 < len(z) <= 4 else "")
        for i, z in enumerate(found.zs)
    ]


def _mean_trace(found: Selection, colour: int, digits: int) -> Figure:
    mean = mean_over_seeds(found.returns)
    over = f"mean of {len(found.seeds)} seeds" if len(found.seeds) > 1 else f"seed {found.seeds[0]}"
    return {
        "type": "scatter",
        "mode": "lines+markers" if found.axis_title == "z" else "markers",
        "x": found.positions.tolist(),
        "y": mean.tolist(),
        "line": {"color": f"@c{colour}", "width": 2.6},
        "marker": {"color": f"@c{colour}", "size": 6 if len(mean) <= 40 else 3},
        "hovertext": [
            f"{place}: {over} {value:.{digits}f}"
            for place, value in zip(places(found), mean, strict=True)
        ],
        "hoverinfo": "text",
    }


def mean_over_seeds(values: np.ndarray) -> np.ndarray:
    """Mean over the leading axis of what was measured; NaN where nothing was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "mean of empty slice"
        return np.nanmean(values, axis=0)


def _reference_trace(found: Selection, single: float, digits: int) -> Figure:
    low, high = _padded(found.positions)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [low, *found.positions.tolist(), high],
        "y": [single] * (len(found.zs) + 2),
        "line": {"color": "@c0", "width": 1.8, "dash": "dash"},
        "hovertext": f"single policy: {single:.{digits}f} on fresh episodes",
        "hoverinfo": "text",
    }


def _choice_trace(found: Selection, colour: int, digits: int) -> Figure:
    picked = found.returns[np.arange(len(found.seeds)), found.chosen]
    labels = places(found)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": found.positions[found.chosen].tolist(),
        "y": picked.tolist(),
        "marker": {
            "symbol": "diamond",
            "size": 9,
            "color": "@surface",
            "line": {"color": f"@c{colour}", "width": 1.8},
        },
        "hovertext": [
            f"seed {seed} chose {labels[k]}<br>selection return {value:.{digits}f}"
            for seed, k, value in zip(found.seeds, found.chosen, picked, strict=True)
        ],
        "hoverinfo": "text",
        "cliponaxis": False,
    }


def chosen_chart(result: SuiteResult, method: Method, shots: int) -> Figure:
    """How often each candidate was chosen, stacked by variation."""
    names = result.variations(shots)
    found = {name: result.selection(method.name, name, shots) for name in names}
    first = next(iter(found.values()))
    data = [_choice_bars(name, selection, i) for i, (name, selection) in enumerate(found.items())]
    layout = {
        "barmode": "stack",
        "bargap": 0.12,
        "height": 290 + 12 * len(names),
        "showlegend": len(names) > 1,
        "legend": TOP_LEGEND,
        "margin": {"t": 8, "r": 12, "b": 44, "l": 56},
        "xaxis": {
            "title": {"text": first.axis_title, "standoff": 4},
            "tickvals": first.positions.tolist() if len(first.zs) <= 12 else None,
            "tickformat": ".2f" if first.axis_title == "z" else "d",
            "automargin": True,
        },
        "yaxis": {"title": {"text": "times chosen"}, "tickformat": "d", "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}


def _choice_bars(name: str, found: Selection, index: int) -> Figure:
    counts = np.bincount(found.chosen, minlength=len(found.zs))
    return {
        "type": "bar",
        "name": name,
        "x": found.positions.tolist(),
        "y": counts.tolist(),
        "marker": {
            "color": f"@c{(index + 2) % NUM_COLOURS}",
            "line": {"color": "@surface", "width": 1},
            "pattern": {
                "shape": PATTERNS[index // NUM_COLOURS % len(PATTERNS)],
                "fgcolor": "@surface",
                "size": 6,
            },
        },
        "hovertext": [
            f"{name}: {place} chosen by {count} of {len(found.seeds)} seeds"
            for place, count in zip(places(found), counts, strict=True)
        ],
        "hoverinfo": "text",
    }


def training_chart(result: SuiteResult) -> Figure:
    """Return against steps: mean over seeds, min to max as a band, seeds as thin lines."""
    data = [trace for run in result.runs for trace in _training_traces(run, result.suite.digits)]
    layout = {
        "height": 380,
        "showlegend": True,
        "legend": TOP_LEGEND,
        "margin": {"t": 8, "r": 12, "b": 44, "l": 62},
        "xaxis": {
            "title": {"text": "environment steps per seed", "standoff": 6},
            "rangemode": "tozero",
        },
        "yaxis": {"title": {"text": "return while training"}},
    }
    return {"data": data, "layout": layout}


def thinned_curve(run: RunResult) -> tuple[np.ndarray, np.ndarray]:
    """A training curve of at most MAX_POINTS points: neighbours are averaged."""
    steps, returns = run.curve()
    stride = -(-len(steps) // MAX_POINTS)
    if stride <= 1:
        return steps, returns
    starts = range(0, len(steps), stride)
    means = [mean_over_seeds(returns[i : i + stride]) for i in starts]
    return np.array([steps[i : i + stride][-1] for i in starts]), np.array(means)


def _training_traces(run: RunResult, digits: int | None) -> list[Figure]:
    steps, returns = thinned_curve(run)
    if not np.isfinite(returns).any():
        return []
    colour, group = colour_index(run.method), {"legendgroup": run.folder}
    seeds = run.config.seeds
    quiet = group | {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    traces: list[Figure] = []
    some = np.isfinite(returns).any(axis=1)
    if len(seeds) > 1:
        x, kept = steps[some], returns[some]
        band = np.concatenate([np.nanmax(kept, axis=1), np.nanmin(kept, axis=1)[::-1]])
        outline = {"x": [*x.tolist(), *x[::-1].tolist()], "y": band.tolist()}
        fill = {"fill": "toself", "fillcolor": f"@c{colour}/0.12", "line": {"width": 0}}
        traces.append(quiet | outline | fill)
    if 1 < len(seeds) <= MAX_THIN_LINES:
        thin = {"line": {"color": f"@c{colour}/0.3", "width": 0.8}}
        traces += [
            quiet | thin | {"x": steps.tolist(), "y": column.tolist()} for column in returns.T
        ]
    mean, digits = mean_over_seeds(returns.T), decimals(returns, digits)
    return [
        *traces,
        group
        | {
            "type": "scatter",
            "mode": "lines",
            "name": run.method.title,
            "x": steps.tolist(),
            "y": mean.tolist(),
            "line": {"color": f"@c{colour}", "width": 2.4},
            "hovertext": [
                f"{run.method.title}<br>{int(step):,} steps: {_spread(value, row, digits)}"
                for step, value, row in zip(steps, mean, returns, strict=True)
            ],
            "hoverinfo": "text",
        },
    ]


def _spread(mean: float, row: np.ndarray, digits: int) -> str:
    if not np.isfinite(row).any():
        return "no episode ended"
    if len(row) == 1:
        return f"{mean:.{digits}f}"
    low, high = np.nanmin(row), np.nanmax(row)
    return f"mean {mean:.{digits}f}, seeds from {low:.{digits}f} to {high:.{digits}f}"
