"""How XLA is told to compile for CPUs."""

from __future__ import annotations

import os

OPTION = "xla_cpu_small_while_loop_byte_threshold"
"""XLA compiles a loop without matrix products into one kernel if an iteration touches fewer bytes
than this, a thousand by default, and otherwise calls a kernel for every few operations: a robot's
physics, thousands of small ones a step, then spends half its time on calls. See
benchmarks/loops.py."""


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
