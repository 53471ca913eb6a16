"""Does a refactoring change a number? Hashes of what the command line computes, before and after.

    python benchmarks/goldens.py record before.json     # at the commit before
    python benchmarks/goldens.py compare before.json    # at the commit after

Every entry runs the real command in a temporary folder and hashes what it made: the tensors of the
trained subspace, the rows of the score table, a text. It imports nothing of slackline, so that it
survives what it is for.

For refactoring, not for CI: the last bits of a float depend on the processor, on its number of
cores and on the versions of JAX and XLA, so both sides have to run on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
GYM = "gym:CartPole-v1"
VERBS = ("list", "train", "adapt", "bench", "watch", "tune", "export", "report")
DISCRETE = ("single", "ensemble", "lop", "cop", "bop", "diayn_r", "diayn_r_l2", "fan", "senses")
CONTINUOUS = ("lop", "fan", "lc", "vigour")
"""Methods to train on CartPole and on Pendulum; the last two need continuous actions."""
SCORES = ("suite", "method", "seed", "variation", "shots", "phase", "candidate", "episode")
"""What identifies a row of the score table. Columns added later do not count."""

Entry = Callable[[Path], str]
"""Computes a hash in an empty folder."""


class FailedError(Exception):
    """A command failed, or something that must hold did not."""


class SkippedError(Exception):
    """This machine cannot compute the entry."""


def tensors_hash(tensors: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over name, dtype, shape and bytes of every tensor, sorted by name."""
    total = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name}\0{tensor.dtype.str}\0{tensor.shape}\0".encode())
        total.update(np.ascontiguousarray(tensor).tobytes())
    return total.hexdigest()


def scores_hash(table: pl.DataFrame) -> str:
    """Of the rows in an order of their own; floats are written so that no bit is lost."""
    rows = table.select(*SCORES, "z", "return").sort(SCORES).rows()
    return text_hash("\n".join(map(repr, rows)))


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def started(folder: Path, *words: object) -> subprocess.Popen[str]:
    """The command line of this checkout; its output does not depend on the terminal."""
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    ours = {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "slackline.cli", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=kept | ours, stdout=pipe, stderr=pipe, text=True
    )


def slackline(folder: Path, *words: object) -> str:
    """Run a command in a folder; what it printed."""
    with started(folder, *words) as process:
        said, complaint = process.communicate()
    if process.returncode:
        raise FailedError(f"slackline {' '.join(map(str, words))}: {complaint.strip()[-500:]}")
    return said


def interrupted(folder: Path, *words: object) -> None:
    """Run `train ... --out run` until it has reported progress, then press Ctrl-C."""
    log = folder / "run" / "progress.jsonl"
    with started(folder, *words) as process:
        while process.poll() is None and not (log.exists() and log.stat().st_size):
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        process.communicate()
    if process.returncode != 130:
        raise FailedError(f"an interrupted training left with {process.returncode} instead of 130")


def train(folder: Path, suite: str, method: str, *options: object, devices: int = 1) -> str:
    if suite == "fruitbot" and not find_spec("envpool"):
        raise SkippedError("EnvPool is not installed")
    chosen = ("--method", method, "--devices", devices, "--out", "run", *options)
    slackline(folder, "train", suite, *chosen)
    return tensors_hash(load_file(folder / "run" / "subspace.safetensors"))


def resume(folder: Path) -> str:
    """A training that is interrupted and goes on ends where one that never stopped does."""
    options = ("--steps", "1M", "--seeds", 2)
    words = ("train", "cartpole", "--method", "lop", *options, "--devices", 1, "--out", "run")
    (folder / "whole").mkdir()
    expected = train(folder / "whole", "cartpole", "lop", *options)
    interrupted(folder, *words)
    if (found := train(folder, "cartpole", "lop", *options, "--resume")) != expected:
        raise FailedError("a resumed training differs from one that was not interrupted")
    return found


def adapt(folder: Path, suite: str, method: str, *options: object, kept: str = "run") -> str:
    train(folder, suite, method, "--seeds", 2, "--steps", "20k")
    counts = ("--shots", 5, "--episodes", 3, "--score-episodes", 4, "--devices", 1)
    slackline(folder, "adapt", "run", *counts, *options)
    return scores_hash(pl.read_parquet(folder / kept / "scores.parquet"))


def tune(folder: Path) -> str:
    grid = ("--grid", "lr=1e-3,3e-3", "entropy=1e-3,1e-2")
    few = ("--seeds", 2, "--steps", "20k", "--devices", 1, "--out", "choice.json")
    slackline(folder, "tune", "cartpole", *grid, *few)
    choice = json.loads((folder / "choice.json").read_text())
    chosen = {name: choice[name] for name in ("hyper", "ranking")}
    return text_hash(json.dumps(chosen, sort_keys=True))


def report(folder: Path, runs: Path) -> str:
    slackline(folder, "report", runs, "--out", "page.html", "--markdown", "tables.md")
    return text_hash((folder / "tables.md").read_text())


def summary(folder: Path) -> str:
    files = ("--summary", "summary.json", "--markdown", "summary.md")
    slackline(folder, "report", RESULTS, *files)
    return text_hash((folder / "summary.md").read_text())


def printed(folder: Path, *words: str) -> str:
    return text_hash(slackline(folder, *words))


def entries() -> dict[str, Entry]:
    """Every entry by name; none needs another."""
    found: dict[str, Entry] = {}

    def add(name: str, entry: Callable[..., str], *words: object, **options: Any) -> None:
        found[name] = lambda folder: entry(folder, *words, **options)

    add("help", printed, "--help")
    for verb in VERBS:
        add(f"help/{verb}", printed, verb, "--help")
    add("list", printed, "list", "--json")

    small = ("--seeds", 2, "--steps", "20k")
    trained = [("cartpole", method) for method in DISCRETE]
    trained += [("pendulum-continuous", method) for method in CONTINUOUS]
    for suite, method in [*trained, ("minigrid", "lop"), ("maze2d", "lop")]:
        add(f"train/{suite}-{method}", train, suite, method, *small)
    fast = ("--preset", "fast", "--steps", 2 * 256 * 32)
    for devices in (1, 2):
        name = f"train/halfcheetah-devices-{devices}"
        add(name, train, "halfcheetah", "lop", *fast, devices=devices)
    add("train/gym", train, GYM, "lop", *small)
    add("train/gym-overlap", train, GYM, "lop", *small, "--hyper.overlap")
    pictures = ("--preset", "cpu", "--steps", 2 * 32 * 64)
    add("train/fruitbot", train, "fruitbot", "lop", *pictures)
    for entry in (resume, tune, summary):
        add(entry.__name__, entry)

    add("adapt/cartpole", adapt, "cartpole", "lop")
    copies = ("--perturb", 0.1, "--out", "copies")
    add("adapt/perturbed", adapt, "cartpole", "single", *copies, kept="copies")
    add("adapt/gym", adapt, GYM, "lop", "--to", f"{GYM}?sutton_barto_reward=true")

    for runs in sorted({file.parents[1] for file in RESULTS.rglob("run.json")}):
        add(f"report/{runs.relative_to(RESULTS)}", report, runs)
    return found


def computed(chosen: Mapping[str, Entry]) -> dict[str, str]:
    """Hashes by name, or why there is none ("skipped: ..."); says on the way what is done."""
    found = {}
    for number, (name, entry) in enumerate(chosen.items(), 1):
        print(f"[{number}/{len(chosen)}] {name} ", end="", flush=True)
        begun = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                found[name] = entry(Path(folder))
        except SkippedError as reason:
            found[name] = f"skipped: {reason}"
        except FailedError as reason:
            found[name] = f"failed: {reason}"
        shown = found[name] if ":" in found[name] else found[name][:12]
        print(f"{shown} ({time.monotonic() - begun:.0f} s)", flush=True)
    return found


def verdicts(recorded: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """equal, different, missing (on one side), skipped or failed, by name."""

    def verdict(name: str) -> str:
        kind, colon, _ = found.get(name, "").partition(":")
        if colon:
            return kind
        if name not in recorded or name not in found:
            return "missing"
        return "equal" if recorded[name] == found[name] else "different"

    return {name: verdict(name) for name in {**found, **recorded}}


def main() -> int:
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("file", type=Path, help="the hashes, as JSON")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[""], help="names begin so")
    options = parser.parse_args()
    new_file = options.verb == "record" and not options.file.exists()
    old = {} if new_file else json.loads(options.file.read_text())
    begin = tuple(options.only)
    found = computed({n: entry for n, entry in entries().items() if n.startswith(begin)})
    if options.verb == "record":
        new = {name: hashed for name, hashed in found.items() if ":" not in hashed}
        kept = {name: hashed for name, hashed in old.items() if not name.startswith(begin)}
        options.file.write_text(json.dumps(kept | new, indent=2) + "\n")
        return int(any(each.startswith("failed") for each in found.values()))
    table = verdicts({n: hashed for n, hashed in old.items() if n.startswith(begin)}, found)
    print("\n" + "\n".join(f"{verdict:10}{name}" for name, verdict in table.items()))
    return int(not set(table.values()) <= {"equal", "skipped"})


if __name__ == "__main__":
    sys.exit(main())
