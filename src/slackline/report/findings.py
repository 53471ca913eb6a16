"""What analyses found, kept as plain data: `slackline analyse` writes it beside its figures, and
the page of any folder above shows it.

A file names nothing that is imported: its parts are the dataclasses of `chart` and `table`, checked
field by field.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from slackline.drawing.sheet import NUM_COLOURS
from slackline.errors import SlacklineError, in_one_line
from slackline.io.files import read_regular, write_output
from slackline.report.chart import Band, Bars, Cells, Chart, Diamonds, Line, Plate
from slackline.report.charts import NUM_PATTERNS
from slackline.report.table import Table

SUFFIX = ".finding.json"
FORMAT = "slackline-finding"
KIND = "is"
"""Where a mark says which one it is."""
MARKS: dict[str, type] = {
    kind.__name__.lower(): kind for kind in (Line, Diamonds, Bars, Band, Cells)
}
LARGEST = 2**25
"""Bytes of a file."""


@dataclass(frozen=True)
class Kept:
    """What one analysis found."""

    title: str
    suite: str
    """On whose variations."""
    command: str
    """That made it."""
    tables: tuple[Table, ...] = ()
    plates: tuple[Plate, ...] = ()
    pictures: tuple[str, ...] = ()
    """Names of PNG files beside it."""


class Found:
    """A finding in a folder."""

    def __init__(self, path: Path, kept: Kept):
        self.path, self.kept = path, kept

    def picture(self, name: str) -> bytes | None:
        """One of its pictures; None if it is not there any more."""
        path = self.path.parent / name
        return read_regular(path, LARGEST) if path.is_file() else None


def write_finding(path: Path, kept: Kept) -> Path:
    text = json.dumps({"format": FORMAT, "version": 1, **plain(kept)}, allow_nan=False)
    return write_output(path, text + "\n")


def findings_below(paths: Sequence[Path]) -> list[Found]:
    """Those at any depth below some folders, each once."""
    files = {file.resolve(): file for path in paths for file in sorted(path.rglob(f"*{SUFFIX}"))}
    return [Found(file, read_finding(file)) for file in files.values()]


def read_finding(path: Path) -> Kept:
    content = read_regular(path, LARGEST)
    try:
        values = json.loads(content)
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise ValueError("it does not say that it is one")
        values.pop("version", None)
        kept = read(Kept, values)
        insist_on_sense(kept)
    except (ValueError, RecursionError) as error:
        raise SlacklineError(
            f"{path}: is not what an analysis kept ({in_one_line(error)}); delete it, or analyse "
            "again"
        ) from None
    return kept


# To plain data


def plain(value: Any) -> Any:
    """Dataclasses as dictionaries without what is as usual; numbers of five digits, NaN as null."""
    if is_dataclass(value):
        given = {
            each.name: plain(getattr(value, each.name))
            for each in fields(value)
            if not is_usual(getattr(value, each.name), each.default)
        }
        name = type(value).__name__.lower()
        return {KIND: name, **given} if name in MARKS else given
    if isinstance(value, np.ndarray | list | tuple | range | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def is_usual(value: Any, default: Any) -> bool:
    return default is not MISSING and type(value) is type(default) and value == default


# From plain data


def read(hint: Any, value: Any) -> Any:
    """A value of the declared type, or a ValueError."""
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return read_dataclass(hint, value)
    if origin in (Union, types.UnionType):
        return read_union(parts, value)
    if origin is tuple:
        return read_tuple(parts, value)
    if origin is frozenset:
        return frozenset(read(parts[0], each) for each in listed(value))
    if origin is Literal:
        return value if value in parts else refuse(hint, value)
    if hint is np.ndarray:
        return read_numbers(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if type(value) is hint else refuse(hint, value)


def read_dataclass(kind: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return refuse(kind, value)
    known = hints(kind)
    given = {name: each for name, each in value.items() if name != KIND}
    odd = [name for name in given if name not in known]
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in given]
    if odd or missing:
        raise ValueError(f"{kind.__name__} with field {(odd + missing)[0]!r}")
    return kind(**{name: read(known[name], each) for name, each in given.items()})


@cache
def hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def read_union(parts: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in parts:
        return None
    if np.ndarray in parts:
        return read_numbers(value)
    if set(MARKS.values()) <= set(parts):
        name = value.get(KIND) if isinstance(value, Mapping) else None
        return read(MARKS[name], value) if name in MARKS else refuse("a mark", value)
    (kind,) = [part for part in parts if part is not type(None)]
    return read(kind, value)


def read_tuple(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    values = listed(value)
    if parts[-1] is Ellipsis:
        return tuple(read(parts[0], each) for each in values)
    if len(values) != len(parts):
        refuse(f"{len(parts)} values", value)
    return tuple(read(part, each) for part, each in zip(parts, values, strict=True))


def read_numbers(value: Any) -> np.ndarray:
    """Numbers or rows of numbers; null is NaN."""
    rows = listed(value)
    if rows and all(isinstance(row, list) for row in rows):
        found = [read_numbers(row) for row in rows]
        if len({row.shape for row in found}) > 1:
            refuse("rows of one length", value)
        return np.stack(found)
    return np.array([math.nan if x is None else read(float, x) for x in rows], float)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else refuse("a list", value)


def refuse(what: Any, value: Any) -> Any:
    name = getattr(what, "__name__", str(what))
    raise ValueError(f"{name} expected, not {str(value)[:40]!r}")


# What a page can draw


def insist_on_sense(kept: Kept) -> None:
    """Refuse what fits the types and cannot be drawn."""
    for table in kept.tables:
        if any(len(row.cells) != len(table.columns) for row in table.rows):
            raise ValueError("a row with more or fewer cells than there are columns")
        if any(row.links or not row.cells for row in table.rows):
            raise ValueError("a row that is empty, or links to elsewhere")
    for plate in kept.plates:
        for chart in plate.charts:
            insist_on_chart(chart)
    for name in kept.pictures:
        if Path(name).name != name or not name.endswith(".png"):
            raise ValueError(f"picture {name!r}")


def insist_on_chart(chart: Chart) -> None:
    if not 0 < chart.height < 10_000:
        raise ValueError(f"height {chart.height}")
    for mark in chart.marks:
        colour = mark.colour
        if colour is not None and not 0 <= colour < NUM_COLOURS:
            raise ValueError(f"colour {colour}")
        if isinstance(mark, Bars) and not 0 <= mark.pattern < NUM_PATTERNS:
            raise ValueError(f"pattern {mark.pattern}")
        insist_on_lengths(mark, chart.x.names)


def insist_on_lengths(mark: Any, names: tuple[str, ...]) -> None:
    """As many values in one direction as in the other, and a name for each if there are names."""
    if isinstance(mark, Cells):
        whole = mark.values.ndim == 2 and len(mark.hover) in (0, mark.values.size) and not names
    elif isinstance(mark, Band):
        whole = len({np.shape(values) for values in (mark.x, mark.low, mark.high)}) == 1
    else:
        errors = getattr(mark, "errors", None)
        shapes = {np.shape(v) for v in (mark.x, mark.y, *([] if errors is None else [errors]))}
        whole = len(shapes) == 1 and len(mark.hover) in (0, 1, len(mark.x))
    if not whole:
        raise ValueError(f"a {type(mark).__name__.lower()} whose parts do not fit together")
    if names and not all(-1.0 < x < len(names) for x in getattr(mark, "x", ())):
        raise ValueError("a value without a name on its axis")
