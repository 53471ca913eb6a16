"""Tables as data, and as text: for a terminal and for a document. The page has a template."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich import table as rich_table
from rich.console import Console
from rich.text import Text


@dataclass(frozen=True)
class Column:
    name: str
    title: str = ""
    """Its name where there is room for a longer one."""
    words: bool = False
    """Whether it holds words and stands to the left; numbers stand to the right."""
    quoted: bool = False
    """Whether its numbers are the paper's, of the column before."""
    link: str = ""
    """Where its numbers come from: an element of the page."""
    anchor: str = ""
    """The element that its head is, to be linked to."""
    tags: tuple[tuple[str, str], ...] = ()
    """What the page's filters go by."""


@dataclass(frozen=True)
class Row:
    cells: tuple[str, ...]
    """One for every column; the first is the row's name."""
    title: str = ""
    """Its name where there is room for a longer one."""
    note: str = ""
    """What stands below its name on the page."""
    best: frozenset[int] = frozenset()
    """The columns to be emphasised on the page."""
    kind: Literal["", "strong", "quiet"] = ""
    on_page: bool = True
    tags: tuple[tuple[str, str], ...] = ()
    """What the page's filters go by: ("suite", "ant"), ("method", "lop"), …"""
    links: tuple[str, ...] = ()
    """Where each cell's number comes from: an element of the page, "" for none."""


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    sections: tuple[tuple[Row, ...], ...]
    """Rows, with a rule between sections."""
    caption: str = ""

    @property
    def rows(self) -> list[Row]:
        return [row for section in self.sections for row in section]


def show(table: Table) -> None:
    """Print to standard output, never cut to a narrow pipe's width."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, 220))
    # Not the table's own title: rich would fold it to the width of a narrow table.
    console.print(Text(table.title, "bold"))
    console.print(_rich(table))
    console.print(Text(table.caption, "dim"))


def _rich(table: Table) -> rich_table.Table:
    found = rich_table.Table()
    for column in table.columns:
        style = "dim" if column.quoted else None
        found.add_column(
            Text(column.name), justify="left" if column.words else "right", style=style
        )
    for section in table.sections:
        for row in section:
            # As text: names are users', and brackets in them are no markup.
            found.add_row(
                *map(Text, row.cells), style={"strong": "bold", "quiet": "dim"}.get(row.kind)
            )
        found.add_section()
    return found


def markdown(table: Table) -> str:
    """For a document."""
    rule = ["---" if column.words else "---:" for column in table.columns]
    rows = [[column.name for column in table.columns], rule, *(row.cells for row in table.rows)]
    lines = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows]
    return "\n".join([f"**{table.title}**", "", *lines, "", table.caption, ""])


LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": r"$-$",
    "β": r"$\beta$",
    "÷": r"$\div$",
}
"""What LaTeX wants otherwise."""


def latex(table: Table) -> str:
    """For a paper: booktabs, with the caption in words."""
    kinds = "".join("l" if column.words else "r" for column in table.columns)
    sections = [
        "\n".join(_latex_row(row.cells) for row in section) for section in table.sections if section
    ]
    head = _latex_row([column.name for column in table.columns])
    body = "\n\\midrule\n".join([head, *sections])
    caption = _in_latex(f"{table.title}. {table.caption}".strip())
    lines = (
        *(r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"),
        *(rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", body, r"\bottomrule"),
        *(r"\end{tabular}", r"\end{table}", ""),
    )
    return "\n".join(lines)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_in_latex, cells)) + r" \\"


def _in_latex(words: str) -> str:
    return "".join(LATEX.get(character, character) for character in words)


def as_csv(records: Sequence[dict[str, Any]]) -> str:
    """Plain numbers, a line a record; what a record lacks is empty."""
    names = list(dict.fromkeys(name for record in records for name in record))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: "" if value is None else value for name, value in record.items()}
        for record in records
    )
    return out.getvalue()
