"""What it brings that loops are compiled into one kernel (see slackline/runtime.py). Prints JSON.

    python benchmarks/loops.py [--suite halfcheetah] [--quick] [--out FILE]

XLA's flags belong to a process, so two of them take turns, with the flag as we set it and as XLA
has it. Each steps robots with random actions, and trains with the `fast` preset, one seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from timing import keep, take_turns

from slackline.runtime import OPTION

AS_XLA_HAS_IT = f"--xla_backend_extra_options={OPTION}=1024"
WORKER = "SLACKLINE_BENCHMARK_WORKER"


def work(name: str, budget: float) -> dict[str, float]:
    """Steps per second in this process."""
    import jax
    import robots

    import slackline as sl
    from slackline.runtime import default_devices

    jax.config.update("jax_num_cpu_devices", default_devices())
    suite = sl.suite(name)
    fast = suite.preset("fast", "single")
    contenders = {
        "stepping": robots.env_only(suite, fast, budget),
        "single": robots.training(suite, "single", fast, 1, budget),
        "lop": robots.training(suite, "lop", fast, 1, budget),
    }
    take_turns(list(contenders.values()), 3)
    return {what: contender.speed for what, contender in contenders.items()}


def in_a_process(flags: str) -> dict[str, float]:
    env = {**os.environ, "XLA_FLAGS": flags, WORKER: "1"}
    done = subprocess.run([sys.executable, *sys.argv], env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {what: max(speeds[what] for speeds in rounds) for what in rounds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--suite", choices=["halfcheetah", "ant"], default="halfcheetah")
    parser.add_argument("--quick", action="store_true", help="short strides, each process once")
    parser.add_argument("--out", type=Path, help="also write the JSON here")
    arguments = parser.parse_args()
    if os.environ.get(WORKER):
        print(json.dumps(work(arguments.suite, 0.3 if arguments.quick else 2.0)))
        return
    found: dict[str, list[Any]] = {"one_kernel": [], "as_xla_has_it": []}
    for _ in range(1 if arguments.quick else 3):
        found["one_kernel"].append(in_a_process(""))
        found["as_xla_has_it"].append(in_a_process(AS_XLA_HAS_IT))
    ours, usual = (best(rounds) for rounds in found.values())
    result = {
        "suite": arguments.suite,
        "steps_per_second": {"one_kernel": ours, "as_xla_has_it": usual},
        "ratios": {what: ours[what] / usual[what] for what in ours},
    }
    print(json.dumps(result, indent=2))
    keep(result, arguments.out)


if __name__ == "__main__":
    main()
