"""A trained line on a robot: NumPy and safetensors are all there is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

EARLIER = Path(__file__).parent / "earlier"
RUN = Path(__file__).parents[1] / "store" / "earlier" / "word"
SOURCE = Path(__file__).parents[2] / "src"

BLOCK = """
import sys

BLOCKED = {
    "jax", "jaxlib", "optax", "brax", "polars", "plotly", "scipy", "matplotlib", "rich", "tyro",
    "jinja2", "gymnasium", "envpool", "minigrid", "mujoco", "onnx", "ml_dtypes",
}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Blocker())
"""

ACT_AND_ADAPT = """
import json, sys
import numpy as np
import slackline as sl

folder, out, run = sys.argv[1:]
expected = json.load(open(f"{folder}/expected.json"))
for name, rows in expected.items():
    file = f"{folder}/{name}.safetensors"
    seed = 3 if name == "lop-two-seeds" else None
    line = sl.load(file, seed=seed)
    draws = np.random.default_rng(0)
    if line.picture:
        batch = draws.integers(0, 256, (2, *line.picture), np.uint8)
    else:
        batch = draws.normal(size=(2, 4)).astype(np.float32)
    adapter = line.adapter(shots=len(rows))
    for row in rows:
        z = adapter.ask()
        if name != "cop-normalised":  # whose candidates are drawn by the seed since
            np.testing.assert_allclose(z, row["z"], atol=1e-7)
        policy = line.at(row["z"] if z.size else None)
        np.testing.assert_allclose(policy.outputs(batch), row["outputs"], rtol=1e-5, atol=2e-6)
        np.testing.assert_allclose(policy(batch), row["action"], rtol=1e-5, atol=2e-6)
        adapter.tell(z, float(row is rows[-1]))
    np.testing.assert_array_equal(adapter.best(), z)
    line.save(f"{out}/{name}")
    assert sl.load(f"{out}/{name}").method == line.method
    assert repr(line).count("\\n") == 2

line = sl.load(run)
assert line.at(0.5)(np.zeros(3)).shape == (1,)
"""

REFUSED = """
import slackline as sl
line = sl.load(sys.argv[1])
for attempt in (lambda: line.adapt("Train"), lambda: sl.train("cartpole"), lambda: line.acting):
    try:
        attempt()
    except sl.SlacklineError as error:
        assert "is not installed: pip install slackline-rl" in str(error), error
    else:
        raise AssertionError("it worked")
"""


def run(python: str | Path, code: str, *words: object) -> None:
    """In a process of its own that knows nothing of this one's path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(python), "-c", code, *map(str, words)], capture_output=True, text=True, env=kept
    )
    assert done.returncode == 0, done.stderr


def test_it_loads_acts_and_adapts_where_nothing_else_can_be_imported(tmp_path: Path) -> None:
    path = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
    run(sys.executable, path + BLOCK + ACT_AND_ADAPT, EARLIER, tmp_path, RUN)


def test_what_needs_jax_says_so() -> None:
    path = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
    run(sys.executable, path + BLOCK + REFUSED, EARLIER / "fan-layer-norm.safetensors")


def test_a_robots_environment_has_three_packages(tmp_path: Path) -> None:
    """As `pip install --no-deps slackline-rl` and `pip install numpy safetensors` leave it, but
    linked instead of downloaded."""
    home = tmp_path / "robot"
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for name in ("numpy", "safetensors"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).parent
        (packages / name).symlink_to(source)
        if (libraries := source.with_name(f"{name}.libs")).exists():
            (packages / libraries.name).symlink_to(libraries)
    (packages / "slackline").symlink_to(SOURCE / "slackline")
    run(home / "bin" / "python", ACT_AND_ADAPT, EARLIER, tmp_path, RUN)
    with pytest.raises(AssertionError, match="error: this needs tyro, which is not installed"):
        run(home / "bin" / "python", "from slackline.cli import main; main(['list'])")
    with pytest.raises(AssertionError, match="No module named 'jax'"):
        run(home / "bin" / "python", "import jax")


def test_fixtures_are_of_every_kind() -> None:
    names = {path.stem for path in EARLIER.glob("*.safetensors")}
    assert names == set(json.loads((EARLIER / "expected.json").read_text()))
