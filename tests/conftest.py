"""Tests run with strict rank promotion: an accidental broadcast is an error.

Strict dtype promotion is a fixture, not a setting, because Optax's Adam mixes ints and floats.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The tests compile far more than they run. (The newer emitters compile half as fast.)
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def strict_dtypes() -> Iterator[None]:
    """Mixing dtypes is an error while this fixture is in use."""
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def procgen_games() -> None:
    """Skips where the machine cannot draw Procgen's games: Qt wants OpenGL, which pip has not."""
    pytest.importorskip("envpool", reason="EnvPool is not installed")
    from slackline.envs.procgen import load_procgen
    from slackline.errors import SlacklineError

    try:
        load_procgen()
    except SlacklineError as error:
        if "cannot be loaded" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def _forget_written_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Modules that a test wrote and imported are no other test's of the same name."""
    path, before = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    folder = tmp_path_factory.getbasetemp()
    for name in set(sys.modules) - before:
        if _is_in(folder, sys.modules[name]):
            del sys.modules[name]
    if (words := sys.modules.get("slackline.suites.resolve.words")) is not None:
        words._environment.cache_clear()  # by name, and a name is another file's now


def _is_in(folder: Path, module: Any) -> bool:
    """Whether a module, or a package without a file of its own, is from a folder."""
    homes = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(home and Path(home).is_relative_to(folder) for home in homes)


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs() -> Iterator[None]:
    """Hundreds of them would fill the memory of a small machine; files share hardly any."""
    yield
    jax.clear_caches()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all"):
        return
    skip = pytest.mark.skip(reason="slow; run with --all")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
