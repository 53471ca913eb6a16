"""Fixtures of the report's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty one."""
    return Store(tmp_path / "runs")


@pytest.fixture
def pair(store: Store) -> Store:
    """The single policy and the line, three seeds, K = 10."""
    store.add("single", level=90.0)
    store.add("lop", level=110.0)
    return store
