"""How JAX is set up, from Python as from the command line: XLA's flag, CPU devices, the cache."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from slackline.errors import require_count
from slackline.io.cache import cache_folder

OPTION = "xla_cpu_small_while_loop_byte_threshold"
"""XLA compiles a loop without matrix products into one kernel if an iteration touches fewer bytes
than this, a thousand by default, and otherwise calls a kernel for every few operations: a robot's
physics, thousands of small ones a step, then spends half its time on calls. See
benchmarks/loops.py."""

DEVICES = "xla_force_host_platform_device_count"
"""The flag of XLA that also sets the number of CPU devices."""

SMALL_PROGRAMS = {
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
"""By default JAX keeps only programs that took a second to compile."""


def compile_loops_whole() -> None:
    """Have every such loop compiled into one kernel, unless XLA_FLAGS says otherwise already.

    XLA has no option of a single program for this, and reads its flags once, before the first
    program is compiled; after that this changes nothing. Flags in a file stay as they are.
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    in_a_file = bool(flags) and not flags.startswith("-")
    if OPTION not in flags and not in_a_file:
        ours = f"--xla_backend_extra_options={OPTION}={2**40}"
        os.environ["XLA_FLAGS"] = f"{flags} {ours}".strip()


def set_up_jax(devices: int | None = None) -> None:
    """One CPU device a core, or as many as are asked for, and a compilation cache that outlives
    the process. What the user has told JAX already stays; calling it again changes nothing.

    JAX fixes its devices at the first use, so this has to come before.
    """
    import jax

    config: Any = jax.config  # its settings are attributes that it does not declare
    available = default_devices()
    if devices is not None:
        require_count("devices", devices, high=available)
    chosen = config.jax_num_cpu_devices >= 0 or DEVICES in os.environ.get("XLA_FLAGS", "")
    if devices is not None or not chosen:
        # A process that has used JAX already keeps the devices it has.
        with contextlib.suppress(RuntimeError):
            config.update("jax_num_cpu_devices", devices or available)
    if config.jax_compilation_cache_dir is None:
        config.update("jax_compilation_cache_dir", str(cache_folder("xla")))
        for setting, ours in SMALL_PROGRAMS.items():
            if setting.upper() not in os.environ:
                config.update(setting, ours)


def default_devices() -> int:
    """As many CPU devices as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
