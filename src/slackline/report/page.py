"""One self-contained HTML page: opens offline, needs nothing beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from slackline.io.files import write_output
from slackline.methods.method import Method
from slackline.paper import CITATION, paper_average
from slackline.report import plotly_charts
from slackline.report.chart import Chart
from slackline.report.charts import (
    chosen_chart,
    colour_index,
    scores_chart,
    selection_charts,
    training_chart,
)
from slackline.report.markup import asset, fill
from slackline.report.provenance import commands_of, hyper_table, run_table
from slackline.report.results import Results, SuiteResult
from slackline.report.tables import benchmark_table
from slackline.report.trajectories import MAX_COLUMNS, tiles_of, trajectories_html
from slackline.report.words import averages, conditions, headline, verdict

View = dict[str, Any]
"""What a template shows: words, numbers, tables, and where charts are drawn."""


class Charts:
    """The figures of a page, by the name of the element that each is drawn into."""

    def __init__(self) -> None:
        self.figures: dict[str, plotly_charts.Figure] = {}

    def add(self, chart: Chart) -> View:
        """Keep a chart's figure; returns its element."""
        name = f"chart-{len(self.figures)}"
        self.figures[name] = plotly_charts.figure(chart)
        shown = {"label": chart.label, "title": chart.name, "note": chart.note}
        return {"name": name, "height": chart.height, **shown}


def write_page(results: Results, out: Path) -> Path:
    """Write the page of some results; `out` is replaced whole or not at all."""
    return write_output(out, render(results))


def render(results: Results) -> str:
    """The page as text."""
    from plotly.offline import get_plotlyjs

    charts = Charts()
    return fill(
        "page.html",
        suites=[suite_view(result, charts) for result in results.suites],
        charts=charts.figures,
        citation=CITATION,
        style=asset("page.css"),
        script=asset("page.js"),
        plotly=Markup(get_plotlyjs()),
    )


def suite_view(result: SuiteResult, charts: Charts) -> View:
    commands = [command for run in result.runs for command in commands_of(run)]
    panels = [shots_view(result, shots, charts) for shots in result.shots]
    training = training_chart(result)
    return {
        "name": result.suite.name,
        "title": result.suite.title,
        "panels": panels,
        "start": result.shots.index(result.main_shots),
        "training": training and charts.add(training),
        "commands": list(dict.fromkeys(commands)),
        "runs": run_table(result.runs),
        "hyper": hyper_table(result.runs),
    }


def shots_view(result: SuiteResult, shots: int, charts: Charts) -> View:
    """Everything measured at one K."""
    tab = {"tab": f"K = {shots}", "shots": shots, "name": f"{result.suite.name}-{shots}"}
    if not result.variations(shots):
        return tab | {"scores": None}
    scores, methods = scores_chart(result, shots), result.adapting(shots)
    return tab | {
        "headline": headline(result, shots),
        "verdict": verdict(result, shots),
        "cards": [card(result, method, shots) for method in result.methods(shots)],
        "legend": plotly_charts.legend(scores),
        "scores": charts.add(scores),
        "table": benchmark_table(result, shots),
        "conditions": conditions(result, shots),
        "methods": [selection_view(result, method, shots, charts) for method in methods],
        "start": methods.index(result.main_method(shots)) if methods else 0,
        "walks": walks_views(result, shots),
    }


def card(result: SuiteResult, method: Method, shots: int) -> View:
    """A method's average in large type."""
    digits, summary = result.digits(shots), averages(result, shots)[method.name]
    paper = paper_average(result.suite.name, method, shots)
    error = f"± {summary.standard_error:.{digits}f} standard error"
    return {
        "title": method.title,
        "colour": colour_index(method),
        "number": f"{summary.mean:.{digits}f}",
        "error": error if summary.num_seeds > 1 else "one seed",
        "paper": f"paper’s {paper:g}" if paper else "",
    }


def selection_view(result: SuiteResult, method: Method, shots: int, charts: Charts) -> View:
    """Return against z, and which z was chosen."""
    drawn = selection_charts(result, method, shots)
    found = result.selection(method.name, result.variations(shots)[0], shots)
    what = "values of z" if found.on_a_line else "candidates"
    return {
        "tab": method.title,
        "explanation": f"{method.title}: each of the {len(found.zs)} {what} is one policy, tried "
        "on each changed environment. Returns are those of the selection episodes, so a peak may "
        "be partly luck; the table’s scores come from fresh ones. Each seed is a training run of "
        "its own, and its z need not mean what another seed’s z means.",
        "legend": plotly_charts.legend(drawn[0]),
        "charts": [charts.add(chart) for chart in drawn],
        "chosen": charts.add(chosen_chart(result, method, shots)),
    }


def walks_views(result: SuiteResult, shots: int) -> list[View]:
    """Where the policies of one seed walk, by method; only mazes have such pictures."""
    if tiles_of(result.suite) is None or shots > MAX_COLUMNS:
        return []
    return [
        {
            "tab": run.method.title,
            "drawn": trajectories_html(run.subspace(), shots, result.suite)
            if run.has_weights
            else None,
        }
        for run in result.runs_at(shots)
    ]
