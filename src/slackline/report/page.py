"""One self-contained HTML page: opens offline, needs nothing beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slackline.bench.stats import summarise
from slackline.io.files import write_output
from slackline.methods.method import Method
from slackline.paper import CITATION, paper_average, paper_ratio, paper_score
from slackline.report import plotly_charts
from slackline.report.chart import Chart
from slackline.report.charts import (
    chosen_chart,
    colour_index,
    scores_chart,
    selection_charts,
    training_chart,
)
from slackline.report.markup import Html, asset, element, fill, join, script_json, scroll_box
from slackline.report.provenance import provenance_section
from slackline.report.results import Results, RunResult, SuiteResult
from slackline.report.tables import shown_average
from slackline.report.trajectories import MAX_COLUMNS, tiles_of, trajectories_html
from slackline.report.words import averages, conditions, headline, verdict


class Charts:
    """The figures of a page, each with the element it is drawn into."""

    def __init__(self) -> None:
        self.figures: dict[str, plotly_charts.Figure] = {}

    def add(self, chart: Chart) -> Html:
        """Keep a chart; its label is what a screen reader says."""
        name = f"chart-{len(self.figures)}"
        self.figures[name] = plotly_charts.figure(chart)
        height = f"height:{chart.height}px"
        return element(
            "div", id=name, class_="chart", role="img", aria_label=chart.label, style=height
        )


def legend(chart: Chart) -> Html:
    """A chart's legend as the page's own text."""
    items = [
        element("li", element("span", class_=f"swatch {kind}", aria_hidden="true"), label)
        for kind, label in plotly_charts.legend(chart)
    ]
    return element("ul", *items, class_="legend")


def write_page(results: Results, out: Path) -> Path:
    """Write the page of some results; `out` is replaced whole or not at all."""
    return write_output(out, render(results))


def render(results: Results) -> str:
    """The page as text."""
    from plotly.offline import get_plotlyjs

    charts = Charts()
    suites = [suite_section(result, charts) for result in results.suites]
    titles = ", ".join(result.suite.title for result in results.suites)
    return fill(
        "page.html",
        title=f"Slackline report: {titles}",
        heading=f"{titles}: adapting without retraining",
        navigation=navigation(results),
        suites=join(*suites),
        citation=CITATION,
        style=asset("page.css"),
        script=asset("page.js"),
        charts=script_json(charts.figures),
        plotly=Html(get_plotlyjs()),
    )


def navigation(results: Results) -> Html:
    """Links to the suites, where there are several."""
    if len(results.suites) < 2:
        return Html()
    links = [
        element("a", result.suite.title, href=f"#{result.suite.name}") for result in results.suites
    ]
    return element("nav", *links, aria_label="Suites")


def suite_section(result: SuiteResult, charts: Charts) -> Html:
    name = result.suite.name
    panels = {f"K = {shots}": shots_panel(result, shots, charts) for shots in result.shots}
    tabs, body = tabbed(
        f"{name}-shots", "Number of z tried", panels, start=result.shots.index(result.main_shots)
    )
    return fill(
        "suite.html",
        anchor=name,
        title=result.suite.title,
        tabs=tabs,
        panels=body,
        training=training_section(result, charts),
        provenance=provenance_section(result),
    )


def tabbed(name: str, label: str, panels: dict[str, Html], *, start: int = 0) -> tuple[Html, Html]:
    """(the row of tabs, the panels); one panel alone needs no tabs."""
    if len(panels) == 1:
        return Html(), next(iter(panels.values()))
    buttons, bodies = [], []
    for i, (title, body) in enumerate(panels.items()):
        tab, panel = f"{name}-tab-{i}", f"{name}-panel-{i}"
        chosen = i == start
        buttons.append(
            element(
                "button",
                title,
                type="button",
                role="tab",
                id=tab,
                aria_controls=panel,
                aria_selected="true" if chosen else "false",
                tabindex=None if chosen else "-1",
            )
        )
        hidden = None if chosen else ""
        bodies.append(
            element("div", body, role="tabpanel", id=panel, aria_labelledby=tab, hidden=hidden)
        )
    caption = element("span", label, class_="tabs-label", id=f"{name}-label")
    row = element("div", *buttons, role="tablist", class_="tabs", aria_labelledby=f"{name}-label")
    return element("div", caption, row, class_="tab-row"), join(*bodies)


def shots_panel(result: SuiteResult, shots: int, charts: Charts) -> Html:
    """Everything measured at one K."""
    if not result.variations(shots):
        return element(
            "p", f"No variation was measured for every method at K = {shots}.", class_="headline"
        )
    scores = scores_chart(result, shots)
    return fill(
        "shots.html",
        shots=shots,
        headline=headline(result, shots),
        verdict=verdict(result, shots),
        cards=average_cards(result, shots),
        legend=legend(scores),
        scores=charts.add(scores),
        table=score_table(result, shots),
        conditions=conditions(result, shots),
        selection=selection_sections(result, shots, charts),
        walks=walks_section(result, shots),
    )


# The score table


def average_cards(result: SuiteResult, shots: int) -> Html:
    """The averages in large type, one card a method."""
    digits, found = result.digits(shots), averages(result, shots)
    cards = []
    for method in result.methods(shots):
        summary = found[method.name]
        paper = paper_average(result.suite.name, method, shots)
        several = summary.num_seeds > 1
        error = f"± {summary.standard_error:.{digits}f} standard error" if several else "one seed"
        cards.append(
            element(
                "div",
                element("span", method.title, class_="card-title"),
                element("span", f"{summary.mean:.{digits}f}", class_="card-number"),
                element("span", error, class_="card-small"),
                element("span", f"paper’s {paper:g}" if paper else "", class_="card-small"),
                class_=f"card c{colour_index(method)}",
            )
        )
    return element("div", *cards, class_="cards")


def has_paper(result: SuiteResult, shots: int) -> bool:
    """Whether the paper reports anything at this K for these methods."""
    return any(
        paper_score(result.suite.name, method, name, shots)
        for method in result.methods(shots)
        for name in result.variations(shots)
    )


def score_table(result: SuiteResult, shots: int) -> Html:
    """Variations × methods, measured beside the paper's."""
    methods, paper = result.methods(shots), has_paper(result, shots)
    body = [variation_row(result, name, shots, paper) for name in result.variations(shots)]
    foot = [average_row(result, shots, paper), iqm_row(result, shots, paper)]
    foot += ratio_row(result, shots, paper) + adaptation_rows(result, shots, paper)
    foot += train_row(result, shots, paper)
    caption = f"{result.suite.title}: return on fresh episodes after adapting with K = {shots}"
    table = element(
        "table",
        element("caption", caption),
        table_head(methods, paper),
        element("tbody", *body),
        element("tbody", *foot, class_="foot"),
    )
    return scroll_box(table, caption)


def table_head(methods: list[Method], paper: bool) -> Html:
    span = "2" if paper else None
    corner = element("th", "Variation", scope="col", rowspan=span)
    scope = "colgroup" if paper else "col"
    names = [element("th", m.title, scope=scope, colspan=span) for m in methods]
    rows = [element("tr", corner, *names)]
    if paper:
        pair = element("th", "measured", scope="col") + element(
            "th", "paper’s", scope="col", class_="paper"
        )
        rows.append(element("tr", Html(pair * len(methods))))
    return element("thead", *rows)


def table_row(
    head: str,
    small: str,
    cells: list[str],
    quoted: list[str] | None,
    best: set[int],
    class_: str = "",
) -> Html:
    """A row: its name, then for each method what was measured and what the paper quotes."""
    label = element("small", small) if small else ""
    parts = [element("th", head, label, scope="row")]
    for i, cell in enumerate(cells):
        emphasised = element("strong", cell) if i in best else cell
        parts.append(element("td", emphasised, class_="best" if i in best else None))
        if quoted is not None:
            parts.append(element("td", quoted[i], class_="paper"))
    return element("tr", *parts, class_=class_ or None)


def best_of(values: list[float], digits: int) -> set[int]:
    """The largest values, ties at the shown precision included; nothing to win alone."""
    shown = [round(value, digits) for value in values]
    finite = [value for value in shown if np.isfinite(value)]
    if len(values) < 2 or not finite:
        return set()
    return {i for i, value in enumerate(shown) if value == max(finite)}


def variation_row(result: SuiteResult, name: str, shots: int, paper: bool) -> Html:
    column, digits = result.variations(shots).index(name), result.digits(shots)
    methods = result.methods(shots)
    found = [summarise(result.matrix(m.name, shots)[:, column]) for m in methods]
    theirs = [paper_score(result.suite.name, m, name, shots) for m in methods]
    quoted = [str(t or "–") for t in theirs]
    return table_row(
        name,
        result.suite.variation(name).description,
        [summary.shown(digits) for summary in found],
        quoted if paper else None,
        best_of([summary.mean for summary in found], digits),
    )


def average_row(result: SuiteResult, shots: int, paper: bool) -> Html:
    digits, found = result.digits(shots), averages(result, shots)
    theirs = [paper_average(result.suite.name, m, shots) for m in result.methods(shots)]
    return table_row(
        "Average",
        f"of {len(result.variations(shots))} variations",
        [summary.shown(digits) for summary in found.values()],
        [f"{t:g}" if t is not None else "–" for t in theirs] if paper else None,
        best_of([summary.mean for summary in found.values()], digits),
    )


def iqm_row(result: SuiteResult, shots: int, paper: bool) -> Html:
    digits = result.digits(shots)
    found = [result.iqm(method.name, shots) for method in result.methods(shots)]
    cells, best = [f.shown(digits) for f in found], best_of([f.value for f in found], digits)
    quoted = [""] * len(cells) if paper else None
    return table_row("IQM", "with 95 % interval", cells, quoted, best)


def ratio_row(result: SuiteResult, shots: int, paper: bool) -> list[Html]:
    """How many times the single policy's average, where that means anything."""
    methods = result.methods(shots)
    found = [result.ratio_to_single(method.name, shots) for method in methods]
    if not any(found):
        return []
    theirs = [paper_ratio(result.suite.name, method, shots) for method in methods]
    quoted = ["–" if t is None else f"{t:.2f}" for t in theirs]
    small = "of the averages, with 95 % interval"
    if result.ratios_of_costs(shots):
        small = "of costs: Single’s ÷ the method’s, with 95 % interval"
    cells = [ratio.shown(2) if ratio else "–" for ratio in found]
    return [table_row("Ratio to Single", small, cells, quoted if paper else None, set())]


def adaptation_rows(result: SuiteResult, shots: int, paper: bool) -> list[Html]:
    """What adapting had to win and what it added, where that was measured."""
    digits, names = result.digits(shots), [m.name for m in result.methods(shots)]
    measured = [result.measured(name, shots) for name in names]
    rooms = [result.headroom(name, shots) for name in names]
    return [
        *measured_row(
            "Default z",
            "best on the unchanged environment, no episode spent",
            [shown_average(each.default, digits) for each in measured],
            paper,
        ),
        *measured_row(
            "Oracle (split halves)",
            "z chosen by half of the selection episodes, scored on the other half",
            [shown_average(each.oracle, digits) for each in measured],
            paper,
        ),
        *measured_row(
            "Headroom",
            "Single’s score on the unchanged environment ÷ on the changed ones (costs: reversed)",
            ["–" if room is None else f"{room:.2f}" for room in rooms],
            paper,
        ),
    ]


def measured_row(
    head: str, small: str, cells: list[str], paper: bool, class_: str = ""
) -> list[Html]:
    """A row of which the paper has nothing; no row where nothing was measured either."""
    if set(cells) <= {"–"}:
        return []
    quoted = [""] * len(cells) if paper else None
    return [table_row(head, small, cells, quoted, set(), class_=class_)]


def train_row(result: SuiteResult, shots: int, paper: bool) -> list[Html]:
    """The training environment, where any method was scored on it."""
    digits = result.digits(shots)
    scores = [result.train_scores(method.name, shots) for method in result.methods(shots)]
    cells = ["–" if values is None else summarise(values).shown(digits) for values in scores]
    small = "the unchanged environment, not averaged"
    return measured_row("Train", small, cells, paper, class_="train")


# Return against z


def selection_sections(result: SuiteResult, shots: int, charts: Charts) -> Html:
    """For every method that had a choice, behind tabs where there are several."""
    methods = result.adapting(shots)
    if not methods:
        return Html()
    panels = {method.title: selection_section(result, method, shots, charts) for method in methods}
    start = methods.index(result.main_method(shots))
    tabs, body = tabbed(f"{result.suite.name}-{shots}-method", "Method", panels, start=start)
    return join(tabs, body)


def selection_section(result: SuiteResult, method: Method, shots: int, charts: Charts) -> Html:
    panels, drawn = [], selection_charts(result, method, shots)
    for chart in drawn:
        caption = element("figcaption", element("b", chart.name), element("small", chart.note))
        panels.append(element("figure", caption, charts.add(chart)))
    return fill(
        "selection.html",
        explanation=selection_explanation(result, method, shots),
        legend=legend(drawn[0]),
        charts=join(*panels),
        chosen=charts.add(chosen_chart(result, method, shots)),
    )


def selection_explanation(result: SuiteResult, method: Method, shots: int) -> str:
    found = result.selection(method.name, result.variations(shots)[0], shots)
    what = "values of z" if found.axis_title == "z" else "candidates"
    return (
        f"{method.title}: each of the {len(found.zs)} {what} is one policy, tried on each changed "
        "environment. Returns are those of the selection episodes, so a peak may be partly luck; "
        "the table’s scores come from fresh ones. Each seed is a training run of its own, and its "
        "z need not mean what another seed’s z means."
    )


# Walks through mazes


def walks_section(result: SuiteResult, shots: int) -> Html:
    """Where the policies of one seed walk, a tab a method; only mazes have such pictures."""
    if tiles_of(result.suite) is None or shots > MAX_COLUMNS:
        return Html()
    measured = {method.name for method in result.methods(shots)}
    panels = {
        run.method.title: trajectories_html(run.subspace(), shots)
        if run.has_weights
        else no_walks(run)
        for run in result.runs
        if run.method.name in measured
    }
    tabs, body = tabbed(f"{result.suite.name}-{shots}-walks", "Method", panels)
    return element("section", element("h3", "Where the policies walk"), tabs, body, class_="block")


def no_walks(run: RunResult) -> Html:
    """A note in place of the walks."""
    reason = "the run has no subspace.safetensors, and walks are drawn from the weights."
    return element("p", f"{run.method.title} cannot be drawn: {reason}")


# Training


def training_section(result: SuiteResult, charts: Charts) -> Html:
    chart = training_chart(result)
    if chart is None:
        return element("p", "No episode ended during training, so there is no curve to draw.")
    return charts.add(chart)
