"""The report's pictures as PNG files."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from slackline.bench.stats import summarise
from slackline.drawing.sheet import COLOURS, DPI, INK, QUIET, WIDTH, new_figure, styled
from slackline.methods.method import Method
from slackline.paper import paper_score
from slackline.report.charts import (
    colour_index,
    mean_over_seeds,
    single_mean,
    thinned_curve,
)
from slackline.report.results import Results, Selection, SuiteResult
from slackline.report.trajectories import tiles_of, trajectories_png

HATCHES = ("", "///", "xxx", "...")
SURE = 3.0
"""Standard errors by which a policy must be worse before a picture's title calls it worse."""


def draw_figures(results: Results, folder: Path) -> list[Path]:
    """Draw every suite's figures at its main K; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with styled():
        for result in results.suites:
            for name, draw in pictures(result).items():
                figure = new_figure(WIDTH, 4.5, DPI, layout="constrained")
                draw(figure, result)
                written.append(folder / f"{result.suite.name}-{name}.png")
                figure.savefig(written[-1])
            written += draw_walks(result, folder)
    return written


def draw_walks(result: SuiteResult, folder: Path) -> list[Path]:
    """The paper's maze pictures, one a method, of its first seed."""
    if tiles_of(result.suite) is None:
        return []
    return [
        trajectories_png(
            run.subspace(),
            result.main_shots,
            folder / f"{result.suite.name}-walks-{run.method.name}.png",
        )
        for run in result.runs
        if run.has_weights and run.method in result.methods(result.main_shots)
    ]


def pictures(result: SuiteResult) -> dict[str, Any]:
    """The pictures there is data for, by the end of their file name."""
    shots, found = result.main_shots, {}
    if result.variations(shots):
        if result.adapting(shots):
            found |= {"return-against-z": draw_return_against_z, "chosen-z": draw_chosen_z}
        found["kshot"] = draw_scores
    if any(np.isfinite(run.curve()[1]).any() for run in result.runs):
        found["training"] = draw_training
    return found


def headed(figure: Any, title: str, subtitle: str) -> None:
    """A title in words and, smaller, what is shown; the axes keep clear of both."""
    subtitle = fill(subtitle, 132)
    inches = 0.62 + 0.18 * (subtitle.count("\n") + 1)
    width, height = figure.get_size_inches()
    figure.get_layout_engine().set(rect=(0.005, 0.005, 0.99, 1 - inches / height - 0.01))
    left = 0.12 / width
    figure.text(left, 1 - 0.14 / height, title, size=16, weight="bold", va="top")
    figure.text(
        left, 1 - 0.52 / height, subtitle, size=9.5, color=QUIET, va="top", linespacing=1.35
    )


# Return against z


def draw_return_against_z(figure: Any, result: SuiteResult) -> None:
    """A panel a variation: one typical seed in bold, its choice marked, the other seeds thin."""
    shots = result.main_shots
    method, names = result.main_method(shots), result.variations(shots)
    found = {name: result.selection(method.name, name, shots) for name in names}
    seed = typical_seed(result, method, shots)
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure.set_size_inches(WIDTH, 1.6 + 2.3 * rows)
    figure.get_layout_engine().set(hspace=0.07, wspace=0.03)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for panel, name in zip(panels.flat, names, strict=False):
        draw_selection(panel, found[name], seed, colour_index(method))
        draw_reference(panel, single_mean(result, name, shots))
        change = result.suite.variation(name).description
        panel.set_title(name, weight="bold", pad=6)
        panel.set_title(change, loc="right", size=9, color=QUIET, pad=6)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    first = found[names[0]]
    for column, panel in enumerate(panels[-1]):
        label_z(panels[rows - 2][column] if not panel.axison else panel, first)
    for panel in panels[:, 0]:
        panel.set_ylabel("return")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    headed(figure, selection_title(found, seed), selection_subtitle(result, method, shots, seed))


def label_z(panel: Any, found: Selection) -> None:
    panel.tick_params(labelbottom=True)
    if found.axis_title == "z":
        panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        panel.set_xlabel("z: where on the line the policy lies")
    else:
        panel.set_xlabel("candidate")


def typical_seed(result: SuiteResult, method: Method, shots: int) -> int:
    """The seed whose average score is the median (of an even number, the lower middle one)."""
    seeds = result.selection(method.name, result.variations(shots)[0], shots).seeds
    average = result.matrix(method.name, shots).mean(axis=1)
    return seeds[int(np.argsort(average)[(len(average) - 1) // 2])]


def draw_selection(panel: Any, found: Selection, seed: int, colour: int) -> None:
    x, bold, tint = found.positions, found.seeds.index(seed), COLOURS[colour]
    order = np.argsort(x)
    label: str | None = "the other seeds"
    for i, row in enumerate(found.returns):
        if i != bold:
            panel.plot(x[order], row[order], color=tint, alpha=0.28, lw=0.9, label=label)
            label = None
    row, k = found.returns[bold], found.chosen[bold]
    label = "one training run" if len(found.seeds) > 1 else "the training run"
    panel.plot(x[order], row[order], color=tint, lw=2.4, marker="o", ms=3.6, label=label)
    panel.plot(
        x[k],
        row[k],
        "D",
        ms=9,
        mfc="white",
        mec=tint,
        mew=2.2,
        ls="",
        zorder=5,
        label="the z it chose",
    )


def draw_reference(panel: Any, single: float | None) -> None:
    if single is not None:
        panel.axhline(
            single, color=COLOURS[0], lw=1.6, ls=(0, (5, 3)), label="single policy, mean of seeds"
        )


def selection_title(found: dict[str, Selection], seed: int) -> str:
    """Say that the changes want different z's only where this run's episodes show it."""
    if differing_preferences(found, seed):
        return "One training run, many policies: different changes want a different z"
    return "One training run, many policies: the return at every z tried"


def differing_preferences(found: dict[str, Selection], seed: int) -> bool:
    """Whether two variations each do surely worse with the other's z than with their own."""
    selections = list(found.values())
    return any(
        surely_worse(a, b, seed) and surely_worse(b, a, seed)
        for i, a in enumerate(selections)
        for b in selections[:i]
    )


def surely_worse(own: Selection, other: Selection, seed: int) -> bool:
    """Whether on `own` the z chosen for `other` returns less, beyond the episodes' noise."""
    i = own.seeds.index(seed)
    mine, theirs = own.chosen[i], other.chosen[other.seeds.index(seed)]
    gap = own.returns[i, mine] - own.returns[i, theirs]
    return bool(gap > SURE * np.hypot(own.errors[i, mine], own.errors[i, theirs]) and gap > 0)


def selection_subtitle(result: SuiteResult, method: Method, shots: int, seed: int) -> str:
    found = result.selection(method.name, result.variations(shots)[0], shots)
    rows = result.scores.filter(method=method.name, shots=shots, phase="select")
    episodes = rows["episode"].n_unique()
    words = (
        f"{method.title}, trained once on {result.suite.title}. Each panel changes one thing and "
        f"tries the same {len(found.zs)} policies, {episodes} episodes each; nothing is retrained."
    )
    if len(found.seeds) == 1:
        return words
    bold = f"Bold: seed {seed}, the median of {len(found.seeds)} by average score"
    return f"{words} {bold}; each seed is a training run of its own."


# Which z was chosen


def draw_chosen_z(figure: Any, result: SuiteResult) -> None:
    """Stacked bars: how many seeds chose each candidate, by variation."""
    shots = result.main_shots
    method, names = result.main_method(shots), result.variations(shots)
    panel = figure.subplots()
    x = np.zeros(0)
    below: np.ndarray | float = 0.0
    for i, name in enumerate(names):
        found = result.selection(method.name, name, shots)
        x, counts = found.positions, np.bincount(found.chosen, minlength=len(found.zs))
        width = 0.85 * (np.diff(np.sort(x)).min() if len(x) > 1 else 1.0)
        hatch, tint = HATCHES[i // len(COLOURS) % len(HATCHES)], COLOURS[(i + 2) % len(COLOURS)]
        panel.bar(x, counts, width, below, color=tint, hatch=hatch, ec="white", lw=0.8, label=name)
        below = below + counts
        panel.set_xlabel(found.axis_title)
    if len(x) <= 12:
        panel.set_xticks(x, [f"{value:.2f}".rstrip("0").rstrip(".") for value in x])
    panel.set_ylabel("times chosen")
    panel.yaxis.get_major_locator().set_params(integer=True)
    panel.grid(axis="x", visible=False)
    figure.legend(loc="outside right upper", title="changed environment", alignment="left")
    headed(
        figure,
        f"Which of {len(x)} policies was kept",
        f"{method.title} on {result.suite.title}, K = {shots}: "
        "each seed chooses once for every changed environment; of ties, the first.",
    )


# Scores


def draw_scores(figure: Any, result: SuiteResult) -> None:
    """Grouped bars by variation, the average last; the paper's as open diamonds."""
    shots = result.main_shots
    methods, names = result.methods(shots), result.variations(shots)
    panel = figure.subplots()
    places, width = np.arange(len(names)), 0.8 / len(methods)
    several = False
    for i, method in enumerate(methods):
        x = places + (i - (len(methods) - 1) / 2) * width
        cells = [summarise(column) for column in result.matrix(method.name, shots).T]
        several = several or cells[0].num_seeds > 1
        means, stds = [c.mean for c in cells], [c.std for c in cells]
        whiskers = {"ecolor": INK, "elinewidth": 1, "capsize": 2.5}
        panel.bar(
            x,
            means,
            width * 0.92,
            color=COLOURS[colour_index(method)],
            label=method.title,
            yerr=stds if cells[0].num_seeds > 1 else None,
            error_kw=whiskers,
        )
        draw_paper(panel, result, method, x, shots)
    panel.set_xticks(places, names)
    panel.tick_params(axis="x", labelrotation=30 if len(names) > 8 else 0)
    panel.set_ylabel("return on fresh episodes")
    panel.grid(axis="x", visible=False)
    handles, labels = panel.get_legend_handles_labels()
    unique = dict(sorted(zip(labels, handles, strict=True), key=lambda pair: "paper" in pair[0]))
    figure.legend(list(unique.values()), list(unique), loc="outside lower center", ncols=5)
    bars = " Bars: mean over seeds; whiskers: ± standard deviation." if several else " One seed."
    budget = " / ".join(dict.fromkeys(f"{run.config.steps:,}" for run in result.runs))
    headed(
        figure,
        f"{result.suite.title}, changed: the score after adapting",
        f"K = {shots}, {budget} training steps per seed.{bars} Diamonds: the paper’s own.",
    )


def draw_paper(panel: Any, result: SuiteResult, method: Method, x: np.ndarray, shots: int) -> None:
    names = result.variations(shots)
    theirs = [paper_score(result.suite.name, method, name, shots) for name in names]
    if any(theirs):
        y = [np.nan if cell is None else cell.mean for cell in theirs]
        panel.plot(
            x, y, "D", ls="", ms=6, mfc="none", mec=INK, mew=1.3, zorder=4, label="the paper’s"
        )


# Training


def draw_training(figure: Any, result: SuiteResult) -> None:
    """Mean over seeds in bold, lowest to highest seed as a band, seeds thin."""
    panel = figure.subplots()
    for run in result.runs:
        steps, returns = thinned_curve(run)
        measured = np.isfinite(returns).any(axis=1)
        steps, returns = steps[measured], returns[measured]
        if not len(steps):
            continue
        tint = COLOURS[colour_index(run.method)]
        if returns.shape[1] > 1:
            low, high = np.nanmin(returns, axis=1), np.nanmax(returns, axis=1)
            panel.fill_between(steps, low, high, color=tint, alpha=0.12, lw=0)
            panel.plot(steps, returns, color=tint, alpha=0.3, lw=0.6)
        panel.plot(steps, mean_over_seeds(returns.T), color=tint, lw=2.2, label=run.method.title)
    panel.set_xlabel("environment steps per seed")
    panel.set_ylabel("return while training")
    panel.xaxis.set_major_formatter(lambda value, _: short_count(value))
    panel.margins(x=0.01)
    figure.legend(loc="outside lower center", ncols=4)
    headed(
        figure,
        f"Learning the unchanged {result.suite.title}",
        "Bold: mean over seeds. Thin: each seed. Shade: from the lowest seed to the highest.",
    )


def short_count(value: float) -> str:
    """20000 as 20k, 1500000 as 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
