"""One self-contained HTML page: opens offline, needs nothing beside it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from slackline.io.files import write_output
from slackline.paper import CITATION, paper_average
from slackline.report import plotly_charts
from slackline.report.chart import Chart, Plate
from slackline.report.charts import (
    chosen_chart,
    colour_index,
    ratio_chart,
    scores_chart,
    selection_charts,
    training_chart,
)
from slackline.report.findings import Found
from slackline.report.markup import asset, environment, fill
from slackline.report.paper_tables import PaperTable, summary
from slackline.report.provenance import commands_of, hyper_table, run_table
from slackline.report.results import Entry, Results, SuiteResult
from slackline.report.table import Table
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


def write_page(
    results: Results,
    out: Path,
    *,
    paper_scoring: bool = False,
    findings: Sequence[Found] = (),
) -> Path:
    """Write the page of some results; `out` is replaced whole or not at all."""
    return write_output(out, render(results, paper_scoring=paper_scoring, findings=findings))


def render(results: Results, *, paper_scoring: bool = False, findings: Sequence[Found] = ()) -> str:
    """The page as text: the overview, a section a suite, the analyses."""
    charts, anchors = Charts(), anchors_of(results)
    overview = overview_view(results, anchors, charts) if len(results.suites) > 1 else None
    suites = [suite_view(r, anchors, charts, paper_scoring) for r in results.suites]
    further = finding_views(findings, charts)
    titles = [result.suite.title for result in results.suites]
    written = json.dumps(charts.figures, **environment().policies["json.dumps_kwargs"])
    return fill(
        "page.html",
        heading=", ".join(titles) if len(titles) <= 4 else f"{len(titles)} suites",
        filters=filters_of(results),
        overview=overview,
        suites=suites,
        findings=further,
        charts=charts.figures,
        packed=packed(written) if len(written) > MAX_PLAIN else None,
        citation=CITATION,
        style=asset("page.css"),
        script=asset("page.js"),
        plotly=packed_plotly(),
    )


MAX_PLAIN = 500_000
"""Characters of charts that are written as they are; more are compressed."""


def packed(text: str) -> str:
    """Compressed, in letters that HTML leaves alone; page.js unpacks it."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def packed_plotly() -> str:
    from plotly.offline import get_plotlyjs

    return packed(get_plotlyjs())


Anchors = dict[tuple[str, str], str]
"""The element that says how an entry was made, by suite and entry."""


def anchors_of(results: Results) -> Anchors:
    """Of the first run of each entry."""
    return {
        (result.suite.name, entry.name): f"made-{i}-{result.runs.index(entry.runs[0])}"
        for i, result in enumerate(results.suites)
        for entry in result.all_entries()
    }


def filters_of(results: Results) -> list[View]:
    """What can be shown alone, where there is a choice."""
    entries = [entry for result in results.suites for entry in result.all_entries()]
    methods = {e.method.name: e.method.title for e in entries if not e.is_baseline}
    betas = sorted({e.method.options["beta"] for e in entries if "beta" in e.method.options})
    shots = sorted({k for result in results.suites for k in result.shots})
    every = [
        ("suite", "Suite", [(r.suite.name, r.suite.title) for r in results.suites]),
        ("method", "Method", list(methods.items())),
        ("k", "K", [(str(k), str(k)) for k in shots]),
        ("beta", "β", [(f"{beta:g}", f"{beta:g}") for beta in betas]),
    ]
    return [
        {"name": name, "title": title, "choices": choices}
        for name, title, choices in every
        if len(choices) > 1
    ]


def overview_view(results: Results, anchors: Anchors, charts: Charts) -> View:
    """Table 1 and the ratios to Single, of what is stored."""
    made = summary(results, stored_only=True)
    tables = [linked_rows(table, made, anchors) for table in made.tables[:3]]
    missing = summary(results).tables[3:]
    ratios = ratio_chart(made.records)
    return {
        "ratios": ratios and charts.add(ratios),
        "note": tables[1].caption,
        "tables": tables,
        "missing": missing[0] if missing else None,
    }


def linked_rows(table: Table, made: PaperTable, anchors: Anchors) -> Table:
    """Each number linked to how its run was made."""
    entry_of = {(r["suite"], r["method"]): r["entry"] for r in made.records}

    def link(suite: str, method: str) -> str:
        return anchors.get((suite, entry_of.get((suite, method), "")), "")

    sections = tuple(
        tuple(
            replace(row, links=tuple(link(row.cells[0], c.name) for c in table.columns))
            for row in section
        )
        for section in table.sections
    )
    return replace(table, sections=sections)


def finding_views(findings: Sequence[Found], charts: Charts) -> list[View]:
    """What analyses found, in the order of their titles; of pictures as many as there is room
    for."""
    views, room = [], MAX_PICTURES
    for i, found in enumerate(sorted(findings, key=lambda each: each.kept.title)):
        pictures = []
        for name in found.kept.pictures:
            png = found.picture(name)
            shown = png is not None and png.startswith(PNG) and len(png) <= room
            room -= len(png) if png is not None and shown else 0
            data = base64.b64encode(png).decode() if png is not None and shown else None
            pictures.append({"name": name, "data": data})
        views.append(
            {
                "anchor": f"finding-{i}",
                "title": found.kept.title,
                "suite": found.kept.suite,
                "command": found.kept.command,
                "folder": found.path.parent,
                "tables": found.kept.tables,
                "plates": [plate_view(plate, charts) for plate in found.kept.plates],
                "pictures": pictures,
            }
        )
    return views


MAX_PICTURES = 1_000_000
"""Bytes of stills and other drawings on a page; the rest are named by their files."""
PNG = b"\x89PNG\r\n\x1a\n"


def plate_view(plate: Plate, charts: Charts) -> View:
    """Its charts under one legend."""
    own = any(chart.legend for chart in plate.charts)
    return {
        "title": plate.title,
        "note": plate.subtitle,
        "legend": [] if own else plotly_charts.legend(*plate.charts),
        "charts": [charts.add(chart) for chart in plate.charts],
    }


def suite_view(result: SuiteResult, anchors: Anchors, charts: Charts, paper_scoring: bool) -> View:
    commands = [command for run in result.runs for command in commands_of(run)]
    panels = [shots_view(result, shots, anchors, charts, paper_scoring) for shots in result.shots]
    training = training_chart(result)
    number = next((a.split("-")[1] for (s, _), a in anchors.items() if s == result.suite.name), "0")
    return {
        "name": result.suite.name,
        "title": result.suite.title,
        "panels": panels,
        "start": result.shots.index(result.main_shots),
        "training": training and charts.add(training),
        "commands": list(dict.fromkeys(commands)),
        "runs": run_table(result.runs, [f"made-{number}-{j}" for j in range(len(result.runs))]),
        "hyper": hyper_table(result.runs),
    }


def linked_columns(table: Table, result: SuiteResult, shots: int, anchors: Anchors) -> Table:
    """Each column linked to how its runs were made, and marked for the filters; the single policy
    is never filtered out, since the others are compared with it."""
    entries = {entry.name: entry for entry in result.methods(shots)}
    columns, current = [], None
    for column in table.columns:
        current = current if column.quoted else entries.get(column.name)
        if current is not None:
            link = "" if column.quoted else anchors.get((result.suite.name, current.name), "")
            column = replace(column, link=link, tags=entry_tags(current))
        columns.append(column)
    return replace(table, columns=tuple(columns))


def entry_tags(entry: Entry) -> tuple[tuple[str, str], ...]:
    if entry.is_baseline:
        return ()
    beta = entry.method.options.get("beta")
    return (("method", entry.method.name), *([("beta", f"{beta:g}")] if beta is not None else []))


def shots_view(
    result: SuiteResult, shots: int, anchors: Anchors, charts: Charts, paper_scoring: bool
) -> View:
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
        "table": linked_columns(
            benchmark_table(result, shots, paper_scoring=paper_scoring), result, shots, anchors
        ),
        "conditions": conditions(result, shots),
        "methods": [selection_view(result, method, shots, charts) for method in methods],
        "start": methods.index(result.main_method(shots)) if methods else 0,
        "walks": walks_views(result, shots),
    }


def card(result: SuiteResult, method: Entry, shots: int) -> View:
    """A method's average in large type."""
    digits, summary = result.digits(shots), averages(result, shots)[method.name]
    whole = result.whole(shots)
    paper = paper_average(result.suite.name, method.method, shots) if whole else None
    error = f"± {summary.standard_error:.{digits}f} standard error"
    return {
        "title": method.title,
        "tags": entry_tags(method),
        "colour": colour_index(method.method),
        "number": f"{summary.mean:.{digits}f}",
        "error": error if summary.num_seeds > 1 else "one seed",
        "paper": f"paper’s {paper:g}" if paper else "",
    }


def selection_view(result: SuiteResult, method: Entry, shots: int, charts: Charts) -> View:
    """Return against z, and which z was chosen."""
    drawn = selection_charts(result, method, shots)
    found = result.selection(method.name, result.variations(shots)[0], shots)
    what = "values of z" if found.on_a_line else "candidates"
    own = " Every seed drew candidates of its own." if found.regions is not None else ""
    return {
        "tab": method.title,
        "explanation": f"{method.title}: each of the {len(found.zs)} {what} is one policy, tried "
        "on each changed environment. Returns are those of the selection episodes, so a peak may "
        "be partly luck; the table’s scores come from fresh ones. Each seed is a training run of "
        f"its own, and its z need not mean what another seed’s z means.{own}",
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
            "tab": entry.title,
            "drawn": trajectories_html(entry.runs[0].subspace(), shots, result.suite)
            if entry.runs[0].has_weights
            else None,
        }
        for entry in result.methods(shots)
    ]
