"""Tests run with strict promotion: an accidental broadcast or a mixed dtype is an error."""

from __future__ import annotations

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all"):
        return
    skip = pytest.mark.skip(reason="slow; run with --all")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
