"""What importing slackline costs."""

from __future__ import annotations

import subprocess
import sys

CHECK = """
import sys
import slackline as sl

def heavy(*names):
    return set(names) & set(sys.modules)

everything = ("jax", "numpy", "scipy", "optax", "polars", "plotly", "matplotlib", "rich", "tyro")
assert not heavy(*everything), heavy(*everything)
for name in sl.__all__:
    getattr(sl, name)
assert heavy("jax")
unused = ("polars", "plotly", "matplotlib", "gymnasium", "envpool", "brax", "tyro")
assert not heavy(*unused), heavy(*unused)
"""


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
