"""What JAX is told before it computes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slackline.runtime import OPTION, compile_loops_whole, default_devices


@pytest.mark.parametrize("before", ["", "--xla_cpu_max_isa=AVX2"])
def test_the_flag_is_added_once_to_what_is_there(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    compile_loops_whole()
    once = os.environ["XLA_FLAGS"]
    assert once.startswith(before or "--")
    assert once.count(OPTION) == 1
    compile_loops_whole()
    assert os.environ["XLA_FLAGS"] == once


@pytest.mark.parametrize("own", [f"--xla_backend_extra_options={OPTION}=5", "/etc/xla-flags"])
def test_what_the_user_says_stays(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the variable, or in a file that it names."""
    monkeypatch.setenv("XLA_FLAGS", own)
    compile_loops_whole()
    assert os.environ["XLA_FLAGS"] == own


KERNELS = """
import slackline, jax
def chain(x):
    return jax.lax.fori_loop(0, 9, lambda i, x: jax.numpy.sin(x) * x[::-1], x)
print(jax.jit(chain).lower(jax.numpy.ones(4096)).compile().as_text())
"""


@pytest.mark.parametrize("flags", ["", f"--xla_backend_extra_options={OPTION}=0"])
def test_xla_understands_it(flags: str) -> None:
    """A loop over more than the usual thousand bytes is one call, and is not when told so."""
    done = subprocess.run(
        [sys.executable, "-c", KERNELS],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("xla_cpu_small_call" in done.stdout) == (not flags)


def told(script: str, **environment: str) -> list[str]:
    """What a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


TRAINING = """
import slackline as sl
sl.train("cartpole", "single", steps=2048)
import jax
print(jax.local_device_count(), jax.config.jax_compilation_cache_dir)
"""


def test_python_is_set_up_as_the_command_line_is(tmp_path: Path) -> None:
    """A device a core, and a cache that outlives the process."""
    devices, cache = told(TRAINING, SLACKLINE_CACHE=str(tmp_path))
    assert int(devices) == default_devices()
    assert Path(cache) == tmp_path / "xla"
    assert any(Path(cache).iterdir())


OWN = """
import jax
jax.config.update("jax_num_cpu_devices", 3)
jax.config.update("jax_compilation_cache_dir", "mine")
from slackline.runtime import set_up_jax
set_up_jax()
print(jax.local_device_count(), jax.config.jax_compilation_cache_dir)
"""


def test_what_the_user_told_jax_stays() -> None:
    assert told(OWN) == ["3", "mine"]


def test_devices_and_thresholds_of_the_environment_stay() -> None:
    script = OWN.replace('jax.config.update("jax_num_cpu_devices", 3)\n', "").replace(
        "jax.local_device_count()", "jax.config.jax_persistent_cache_min_compile_time_secs"
    )
    assert told(
        script.replace('jax.config.update("jax_compilation_cache_dir", "mine")\n', ""),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="5",
        SLACKLINE_CACHE="mine",
    ) == ["5.0", str(Path("mine", "xla"))]
    flags = "--xla_force_host_platform_device_count=3"
    lines = OWN.replace('jax.config.update("jax_num_cpu_devices", 3)\n', "")
    assert told(lines, XLA_FLAGS=flags) == ["3", "mine"]


HOMELESS = """
import pathlib
def home():
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = home
import jax
from slackline.errors import SlacklineError
from slackline.io.cache import cache_folder
from slackline.runtime import set_up_jax
set_up_jax()
print(jax.config.jax_compilation_cache_dir)
try:
    cache_folder("models")
except SlacklineError as error:
    print(error)
"""


def test_without_a_home_nothing_outlives_the_process() -> None:
    """As in a container that is run by a number that is nobody's."""
    none, *words = told(HOMELESS, SLACKLINE_CACHE="", XDG_CACHE_HOME="")
    assert none == "None"
    assert " ".join(words).startswith("there is no home folder; SLACKLINE_CACHE names one")
