"""slackline report"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from slackline.cli.options import parse_as
from slackline.errors import SlacklineError

if TYPE_CHECKING:
    from slackline.store.run import RunFolder


@dataclass
class Report:
    """Print the table and write the page of the finished runs in a folder.

    With --summary, print and write one row a suite and method instead, of all runs at any depth
    below one or several folders.
    """

    paths: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FOLDER...")]
    """A run folder, or a folder of runs as `slackline bench` makes it. Several with --summary."""
    out: Path | None = None
    """The page to write. Default: report.html in the folder."""
    figures: Path | None = None
    """Also draw the figures as PNG files into this folder (needs matplotlib)."""

    markdown: Path | None = None
    """Also write the tables as Markdown into this file."""
    summary: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Write the summary into this file instead of the page: scores, ratios to the single policy,
    headroom, default z. Runs that differ in their seeds alone count as one."""

    def run(self) -> None:
        if self.summary is not None:
            self.summarise(self.summary)
            return
        if len(self.paths) > 1:
            raise SlacklineError("a page is of one folder; several can be given with --summary")
        (path,) = self.folders()
        page = publish(
            path, self.out or path / "report.html", figures=self.figures, markdown=self.markdown
        )
        print(f"page: {page}")

    def folders(self) -> list[Path]:
        if not self.paths:
            raise SlacklineError("name at least one FOLDER (slackline report --help)")
        return list(self.paths)

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
        show(table)
        for sentence in left_out:
            print(f"left out: {sentence}")
        if self.markdown is not None:
            print(f"table: {write_output(self.markdown, markdown(table))}")
        print(f"summary: {summary.write_summary(rows, out)}")


def publish(
    path: Path, out: Path, *, figures: Path | None = None, markdown: Path | None = None
) -> Path:
    """Print every suite's table and write the page."""
    from slackline.bench.cells import finished_runs
    from slackline.io.files import write_output
    from slackline.report.page import write_page
    from slackline.report.results import load_results
    from slackline.report.table import markdown as as_markdown
    from slackline.report.table import show
    from slackline.report.tables import benchmark_table

    results = load_results(path)
    tables = [
        benchmark_table(suite, shots)
        for suite in results.suites
        for shots in suite.shots
        if suite.variations(shots)
    ]
    for table in tables:
        show(table)
    if markdown is not None:
        write_output(markdown, "\n".join(map(as_markdown, tables)))
        print(f"tables: {markdown}")
    if figures is not None:
        from slackline.report.figures import draw_figures

        for file in draw_figures(results, figures):
            print(f"figure: {file}")
    page = write_page(results, out)
    note_unchecked(finished_runs(path))
    return page


def note_unchecked(runs: Iterable[RunFolder]) -> None:
    """Say of which runs an earlier version kept no checksums."""
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
