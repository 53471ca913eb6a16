"""Functions stay short: what is long does several things and wants several names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 60
USUAL = 25


def lengths(folder: Path) -> dict[str, int]:
    """Lines of every function and method, nested ones and docstrings included, by its place."""
    return {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    }


@pytest.mark.parametrize("folder", ["src", "benchmarks", "tools"])
def test_functions_are_short(folder: str) -> None:
    found = lengths(ROOT / folder)
    assert not {place: n for place, n in found.items() if n > LONGEST}
    short = sum(n < USUAL for n in found.values())
    assert short >= 0.9 * len(found), f"{short} of {len(found)} have fewer than {USUAL} lines"
