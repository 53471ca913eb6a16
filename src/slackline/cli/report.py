"""slackline report"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from slackline.cli.options import Switch
from slackline.cli.parsing import parse_as
from slackline.errors import SlacklineError, unknown

if TYPE_CHECKING:
    from slackline.report.results import Results
    from slackline.store.run import RunFolder


TableName = Literal["summary", "shots", "beta", "variations"]
Format = Literal["text", "markdown", "csv", "latex"]


@dataclass
class Report:
    """Print the tables and write the page of the scored runs below one or several folders.

    With --table, print one of the paper's tables instead, measured beside published, and the
    commands for what has not been run. With --summary, write a JSON list with a row for each suite
    and method.
    """

    paths: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FOLDER...")]
    """Run folders, or folders that hold runs at any depth."""
    out: Path | None = None
    """The page to write, or with --table the file for the table. Default: report.html in the first
    folder; tables are printed."""
    figures: Path | None = None
    """Also draw the figures as PNG and SVG files into this folder (needs matplotlib)."""

    markdown: Path | None = None
    """Also write the tables as Markdown into this file."""
    table: TableName | None = None
    """summary: all suites and methods at K = 10, with ratios to Single. shots: by K. beta: by β.
    variations: every changed environment."""
    format: Format = "text"
    """How --table is written. csv has plain numbers, one record a line."""
    suites: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SUITE...")] = ()
    """Only these suites."""
    paper_scoring: Switch = False
    """Also show the number that the paper printed: the chosen policy's return on the episodes that
    chose it. It is biased upwards, and labelled so."""
    summary: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Write the summary into this file instead of the page: scores, ratios to the single policy,
    headroom, default z. Runs that differ in their seeds alone count as one."""

    def run(self) -> None:
        self.check()
        if self.summary is not None:
            self.summarise(self.summary)
        elif self.table is not None:
            self.tabulate(self.table)
        else:
            page = publish(
                self.folders(),
                self.out or self.paths[0] / "report.html",
                figures=self.figures,
                markdown=self.markdown,
                suites=self.suites,
                paper_scoring=self.paper_scoring,
            )
            print(f"page: {page}")

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.table is None and self.format != "text":
            raise SlacklineError(
                f"format is {self.format!r}; it is an option of --table, which is not given"
            )
        if self.table is not None:
            for name in ("summary", "figures", "markdown"):
                if getattr(self, name) is not None:
                    raise SlacklineError(f"--table writes one table; leave --{name} out")

    def folders(self) -> list[Path]:
        if not self.paths:
            raise SlacklineError("name at least one FOLDER (slackline report --help)")
        return list(self.paths)

    def tabulate(self, name: str) -> None:
        """Print one of the paper's tables, or write it into a file."""
        from slackline.io.files import write_output
        from slackline.report.paper_tables import paper_table
        from slackline.report.table import as_csv, latex, markdown, show

        made = paper_table(
            chosen_results(self.folders(), self.suites),
            name,
            paper_scoring=self.paper_scoring,
            stored_only=bool(self.suites),  # of the others it is not known what was run
        )
        if self.format == "text" and self.out is None:
            for table in made.tables:
                show(table)
            return
        if self.format == "csv":
            text = as_csv(made.records)
        else:
            text = "\n".join(map(latex if self.format == "latex" else markdown, made.tables))
        if self.out is None:
            print(text, end="")
        else:
            print(f"table: {write_output(self.out, text)}")

    def summarise(self, out: Path) -> None:
        """Print the summary and write it."""
        from slackline.bench.merged import load_merged
        from slackline.io.files import write_output
        from slackline.report import summary
        from slackline.report.table import markdown, show

        if self.out is not None or self.figures is not None:
            raise SlacklineError("--summary writes neither page nor figures; leave those out")
        merged, left_out = load_merged(self.folders())
        rows = summary.summary_rows(merged, out.parent)
        table = summary.summary_table(rows, {each.suite.name: each.suite.digits for each in merged})
        written = [f"summary: {summary.write_summary(rows, out)}"]
        if self.markdown is not None:
            written.insert(0, f"table: {write_output(self.markdown, markdown(table))}")
        show(table)
        print(*(f"left out: {sentence}" for sentence in left_out), *written, sep="\n")


def chosen_results(paths: Sequence[Path], suites: Sequence[str] = ()) -> Results:
    """The results below some folders, of some suites only where they are named."""
    from slackline.report.results import Results, load_results

    results = load_results(list(paths))
    names = [result.suite.name for result in results.suites]
    for name in suites:
        if name not in names:
            raise unknown("suite", name, names)
    kept = [result for result in results.suites if not suites or result.suite.name in suites]
    return Results(results.path, kept)


def publish(
    paths: Path | Sequence[Path],
    out: Path,
    *,
    figures: Path | None = None,
    markdown: Path | None = None,
    suites: Sequence[str] = (),
    paper_scoring: bool = False,
) -> Path:
    """Print every suite's table and write the page."""
    from slackline.bench.cells import runs_below
    from slackline.io.files import write_output
    from slackline.report.findings import findings_below
    from slackline.report.page import write_page
    from slackline.report.paper_tables import variations_table
    from slackline.report.table import markdown as as_markdown
    from slackline.report.table import show

    paths = [paths] if isinstance(paths, Path) else list(paths)
    results = chosen_results(paths, suites)
    known = {result.suite.name for result in results.suites}
    findings = [each for each in findings_below(paths) if each.kept.suite in known]
    tables = variations_table(results, paper_scoring=paper_scoring).tables
    for table in tables:
        show(table)
    if markdown is not None:
        write_output(markdown, "\n".join(map(as_markdown, tables)))
        print(f"tables: {markdown}")
    if figures is not None:
        from slackline.report.figures import draw_figures

        for file in draw_figures(results, figures, ("png", "svg")):
            print(f"figure: {file}")
    page = write_page(results, out, paper_scoring=paper_scoring, findings=findings)
    note_unchecked(runs_below(paths))
    return page


def note_unchecked(runs: Iterable[RunFolder]) -> None:
    """Say which runs are damaged, and of which an earlier version kept no checksums."""
    runs = list(runs)
    for problem in (problem for run in runs for problem in run.damage()):
        print(f"note: {problem}; the report does without it", file=sys.stderr)
    names = [str(run.path) for run in runs if run.without_checksum()]
    if names:
        few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(
            f"note: {few}: kept without checksums, by an earlier slackline; damage to them may go "
            "unnoticed",
            file=sys.stderr,
        )


def parse(argv: list[str]) -> Report:
    return parse_as("report", Report, argv)
