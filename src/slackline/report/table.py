"""Tables as data, and as text: for a terminal and for a document. The page has a template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
