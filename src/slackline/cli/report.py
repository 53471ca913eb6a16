"""slackline report"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from slackline.cli.options import parse_as


@dataclass
class Report:
    """Print the table and write the page of the finished runs in a folder."""

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """A run folder, or a folder of runs as `slackline bench` makes it."""
    out: Path | None = None
    """The page to write. Default: report.html in the folder."""
    figures: Path | None = None
    """Also draw the figures as PNG files into this folder (needs matplotlib)."""

    markdown: Path | None = None
    """Also write the tables as Markdown into this file."""

    def run(self) -> None:
        out = self.out or self.path / "report.html"
        page = publish(self.path, out, figures=self.figures, markdown=self.markdown)
        print(f"page: {page}")


def publish(
    path: Path, out: Path, *, figures: Path | None = None, markdown: Path | None = None
) -> Path:
    """Print every suite's table and write the page."""
    from slackline.report.page import write_page
    from slackline.report.results import load_results
    from slackline.report.tables import benchmark_markdown, benchmark_table, show
    from slackline.store.files import write_atomic

    results = load_results(path)
    measured = [(s, shots) for s in results.suites for shots in s.shots if s.variations(shots)]
    for suite, shots in measured:
        show(benchmark_table(suite, shots))
    if markdown is not None:
        tables = [benchmark_markdown(suite, shots) for suite, shots in measured]
        write_atomic(markdown, ("\n\n".join(tables) + "\n").encode())
        print(f"tables: {markdown}")
    if figures is not None:
        from slackline.report.figures import draw_figures

        for file in draw_figures(results, figures):
            print(f"figure: {file}")
    return write_page(results, out)


def parse(argv: list[str]) -> Report:
    return parse_as("report", Report, argv)
