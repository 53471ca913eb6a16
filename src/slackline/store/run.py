"""A run is a folder.

run.json                what was asked for and what made it
progress.jsonl          one line a stride
checkpoint.safetensors  the whole train state
previous.safetensors    the same one checkpoint earlier, until the training is complete
kept.safetensors        the same earlier in the training, where that was asked for
subspace.safetensors    the trained artefact
snapshots/              the same at moments of the training, where that was asked for
scores.parquet          every episode of every adaptation
.slackline-lock         who writes there, while somebody does

Each file carries a checksum (progress.jsonl one a line) and is checked when it is read; those of
earlier versions have none.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import platform
import re
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from slackline.envs.api import Discrete, Spaces
from slackline.envs.host import RecordedEnv
from slackline.errors import Damaged, SlacklineError, require_count
from slackline.io.decode import check, count, decode, part, several, table, text
from slackline.io.files import (
    TEMPORARY,
    append,
    as_path,
    check_format,
    has_checksum,
    insist_on_own_folder,
    insist_on_whole,
    read_regular,
    remove,
    remove_leftovers,
    write_atomic,
    write_json,
)
from slackline.io.lock import LOCK, locked
from slackline.io.tensors import from_tensors, read_tensors, to_tensors, write_tensors
from slackline.learn.hyper import Hyper, hyper_from_json
from slackline.methods.catalogue import SENSES, method
from slackline.methods.method import Method
from slackline.methods.movement import Together
from slackline.shown import counted
from slackline.store.checkpoint_names import FIELD_NAMES
from slackline.store.record import (
    FORMAT,
    RECORD,
    SCHEMA,
    SUBSPACE,
    insist_on_own,
    insist_on_seeds,
    read_record,
)
from slackline.subspace import Subspace, load_subspaces
from slackline.suites import is_own
from slackline.suites.recorded import difference, home_of, known_suite, recorded, spec_of
from slackline.suites.suite import Suite

CHECKPOINT_SCHEMA = 2
"""1: without environments."""
ENVIRONMENTS = "environments."
"""What the names of their tensors begin with."""
NO_ENVIRONMENTS: Mapping[str, np.ndarray] = {}
MAX_PROGRESS = 2**30
"""Bytes of a log."""
LINE_CHECKSUM = "check"
SNAPSHOTS = "snapshots"
MAX_STEPS = 10**12
PACKAGES = (
    "slackline-rl",
    "jax",
    "jaxlib",
    "optax",
    "numpy",
    "brax",
    "mujoco",
    "envpool",
    "gymnasium",
)
"""Those whose versions a run's numbers may depend on."""

LOG = logging.getLogger("slackline")


class Checkpoint(NamedTuple):
    """What a checkpoint holds."""

    state: Any
    """A `TrainState`."""
    iteration: int
    seconds: float
    """Spent so far."""
    environments: Mapping[str, np.ndarray]
    """What those outside JAX are rebuilt from, by name; empty if they cannot be."""
    path: Path


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides what a run computes."""

    suite: str = text()
    method: str = text()
    options: dict[str, Any] = table()
    """The method's options, all of them."""
    hyper: Hyper = part(hyper_from_json)
    seeds: tuple[int, ...] = several(one="seed", low=0, high=2**32 - 1, longest=10_000)
    steps: int = count(high=MAX_STEPS)
    """Environment steps per seed; at least those of one iteration."""
    spec: dict[str, Any] | None = table(None)
    """What is kept of a suite of the user's own, as plain data; see `suites/recorded.py`."""
    from_single: int = count(0, low=0, high=MAX_STEPS)
    """How many iterations of a single policy's training it began after; see `learn/opening.py`."""

    def check(self, suite: Suite, *, to_train: bool = True) -> None:
        """Refuse a configuration that cannot run; `to_train` also one that is never trained."""
        method = self.resolved_method
        self.check_settings()
        if to_train and not method.is_trained:
            raise SlacklineError(
                f"method {method.name!r} is not trained but made of a single policy: "
                "slackline adapt RUN --perturb 0.1 --out FOLDER"
            )
        if method.continuous_only and isinstance(suite.env.action, Discrete):
            raise SlacklineError(
                f"method {method.name!r} needs continuous actions; {suite.name}'s are discrete"
            )
        if isinstance(method.movement, Together) and self.hyper.apart != 1.0:
            raise SlacklineError(
                f"apart is {self.hyper.apart:g}; {method.name} starts its anchors by its option "
                "start_apart, so it must be 1"
            )
        if isinstance(suite.env, RecordedEnv) and suite.env.may_run_in_jax:
            return
        if not suite.env.in_jax and self.hyper.block:
            raise SlacklineError(
                f"block is {self.hyper.block}; {suite.name} does not run in JAX, so it must be 0"
            )
        if suite.env.in_jax and self.hyper.overlap:
            raise SlacklineError(
                f"overlap is true; {suite.name} runs in JAX, where everything is one program, so "
                "it must be false"
            )
        if suite.env.spaces.picture is not None:
            self._check_pictures(suite.name, *suite.env.spaces.picture[:2])

    def check_settings(self) -> None:
        """Refuse what is wrong on any suite."""
        check(self)
        method(self.method, **self.options)
        self.hyper.check()
        require_count("steps", self.steps, low=self.hyper.steps_per_iteration, high=MAX_STEPS)
        self._check_beginning()

    def _check_beginning(self) -> None:
        """What only runs that began from a single policy have to hold."""
        movement = self.resolved_method.movement
        if not self.from_single:
            return
        if not isinstance(movement, Together):
            raise SlacklineError(
                f"method is {self.method!r}; only a fan can begin from a single policy"
            )
        if movement.opens == 0.0:
            raise SlacklineError(
                "opens is 0; a fan that begins from a single policy opens after it, so it must be "
                "more than 0"
            )
        if self.from_single > movement.opens * self.iterations:
            least = math.ceil(self.from_single / movement.opens * self.hyper.steps_per_iteration)
            raise SlacklineError(
                f"steps is {self.steps:,}; the single policy has been trained for "
                f"{self.from_single * self.hyper.steps_per_iteration:,} and the fan opens after "
                f"{movement.opens:g} of the whole, so it must be at least {least:,}"
            )

    def _check_pictures(self, suite: str, height: int, width: int) -> None:
        """Refuse what only pictures forbid."""
        if self.resolved_method.conditioning.vectors_only:
            raise SlacklineError(
                f"method {self.method!r} needs vectors; {suite} shows pictures: "
                f"try --method {SENSES}"
            )
        if self.hyper.normalise_observation:
            raise SlacklineError(
                f"normalise_observation is true; {suite} shows pictures, whose bytes are only "
                "divided by 255, so it must be false"
            )
        if self.hyper.layer_norm:
            raise SlacklineError(
                f"layer_norm is true; {suite} shows pictures, whose network has none, so it "
                "must be false"
            )
        if height % self.hyper.patch or width % self.hyper.patch:
            raise SlacklineError(
                f"patch is {self.hyper.patch}; it must divide the {height} × {width} pixels of "
                f"{suite}"
            )

    @property
    def resolved_method(self) -> Method:
        """The method that its name and options stand for."""
        return method(self.method, **self.options)

    @property
    def kept_by_name(self) -> bool:
        """Whether an earlier version kept no more of the user's own suite than its name."""
        return self.spec is None and is_own(self.suite)

    @property
    def spelt_out(self) -> RunConfig:
        """With all options of the method: files of earlier versions lack those that came later."""
        return replace(self, options=self.resolved_method.options)

    @property
    def iterations(self) -> int:
        """Training iterations; a budget that is not a multiple of one is rounded up."""
        return -(-self.steps // self.hyper.steps_per_iteration)

    @property
    def total_steps(self) -> int:
        """Environment steps of all seeds, and of an ensemble's members, together."""
        copies = len(self.seeds) * self.resolved_method.num_members
        return self.iterations * self.hyper.steps_per_iteration * copies

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @staticmethod
    def from_json(values: dict[str, Any], path: Path) -> RunConfig:
        with _naming(path):
            config = decode(RunConfig, values)
        kept = None if config.spec is None else recorded(config.suite, config.spec, path)
        with _naming(path):
            suite = known_suite(config.suite, None, path) if kept is None else kept
            if config.kept_by_name:
                config.check_settings()
                return config
            config.check(suite, to_train=False)
            return replace(config, spec=spec_of(suite))

    def first_difference(self, other: RunConfig) -> str:
        """The name of a field in which two configurations differ."""
        mine, theirs = self.to_json(), other.to_json()
        for name in (f.name for f in fields(self)):
            if mine[name] == theirs[name]:
                continue
            if name == "spec":
                different = difference(mine[name] or {}, theirs[name] or {})
                return f"{self.suite} is not what it was: {different}"
            return f"{name} is {_brief(mine[name], theirs[name])}"
        raise ValueError("the configurations are equal")


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except (SlacklineError, TypeError) as error:
        raise SlacklineError(f"{path}: {error}") from None


def _brief(mine: Any, theirs: Any) -> str:
    if isinstance(mine, dict):
        key = next(k for k in {**mine, **theirs} if mine.get(k) != theirs.get(k))
        return f"{key} = {mine.get(key)} there, {theirs.get(key)} here"
    return f"{mine} there, {theirs} here"


def folder_name(suite: str, method: str) -> str:
    """cartpole-lop; a suite that is a file or an environment of the user's gets a tame name."""
    tame = re.sub(r"[^A-Za-z0-9._-]+", "-", suite.removesuffix(".toml")).strip("-.")
    return f"{tame}-{method}"


class RunFolder:
    """Reads and writes one run."""

    def __init__(self, path: str | Path):
        self.path = as_path(path)
        self._decoded: tuple[dict[str, Any], RunConfig] | None = None
        """The last config of run.json and what it says."""

    @property
    def run_file(self) -> Path:
        return self.path / RECORD

    @property
    def checkpoint_file(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def previous_file(self) -> Path:
        return self.path / "previous.safetensors"

    @property
    def kept_file(self) -> Path:
        return self.path / "kept.safetensors"

    @property
    def subspace_file(self) -> Path:
        return self.path / SUBSPACE

    @property
    def progress_file(self) -> Path:
        return self.path / "progress.jsonl"

    @property
    def scores_file(self) -> Path:
        return self.path / "scores.parquet"

    def is_empty(self) -> bool:
        """Whether nothing (or only what a killed process left half-written) is there."""
        if not self.path.exists():
            return True
        if not self.path.is_dir():
            raise SlacklineError(f"{self.path}: is a file; the output must be a folder")
        names = [entry.name for entry in self.path.iterdir()]
        return all(map(_is_leftover, names))

    @contextlib.contextmanager
    def writing(self, *, wait: float = 0.0) -> Iterator[None]:
        """Be the only one who writes here; `wait` so many seconds for another to end."""
        with locked(self.path, wait=wait):
            for folder in (self.path, self.path / SNAPSHOTS):
                if folder.is_dir() and not folder.is_symlink():
                    remove_leftovers(folder)
            yield

    def tidy(self) -> None:
        """Remove what a killed writer left in a run where nothing is to be done any more. Silent
        where that is not possible: another process may be writing, or the folder be read-only."""
        names = [entry.name for entry in self.path.iterdir()]
        if any(map(_is_leftover, names)):
            with contextlib.suppress(SlacklineError, OSError), self.writing():
                pass

    def without_checksum(self) -> list[str]:
        """Those of its files in which damage would go unnoticed: of an earlier version."""
        files = (self.run_file, self.subspace_file, self.scores_file)
        return [file.name for file in files if file.exists() and not has_checksum(file)]

    def damage(self) -> list[str]:
        """What is wrong with its policies or scores, each in a line."""
        found = []
        for file in (self.subspace_file, self.scores_file):
            if file.exists():
                try:
                    insist_on_whole(file, read_regular(file, 2**32))
                except Damaged as error:
                    found.append(str(error))
        return found

    def create(self, config: RunConfig) -> None:
        """Begin a run in an empty folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        schema = 1 if config.spec is None else SCHEMA
        header = {"format": FORMAT, "schema": schema, "finished": False}
        self._write(header | {"config": config.to_json()} | {"provenance": provenance()})

    def _write(self, values: dict[str, Any]) -> None:
        write_json(self.run_file, values, checksum=True)

    def is_untrained(self) -> bool:
        """Whether it holds a run that ended before anything was trained, as when its environment
        fails at once: there is nothing to go on from, and the next command may have the folder."""
        if not self.run_file.exists() or self.finished() or self.has_checkpoint():
            return False
        return not self.subspace_file.exists() and not self.read_progress()

    def read(self) -> dict[str, Any]:
        """The whole run.json, checked."""
        return read_record(self.path)

    def config(self) -> RunConfig:
        """What was asked for. The file is read every time, and decoded where it has changed."""
        values = self.read()["config"]
        if self._decoded is None or self._decoded[0] != values:
            self._decoded = values, RunConfig.from_json(values, self.run_file)
        return self._decoded[1]

    def suite(self, name: str | None = None) -> Suite:
        """The suite it was trained on, or the one called `name` that it was adapted to, as far as
        the run itself tells: nothing that a file names is imported or made."""
        name = self.config().suite if name is None else name
        spec = self.spec(name)
        spaces = self._spaces() if spec is None and is_own(name) else None
        return known_suite(name, spec, self.path, spaces)

    def spec(self, name: str) -> dict[str, Any] | None:
        """What the run keeps of the user's suite called `name`; None if nothing."""
        config, others = self.config(), self.read().get("suites", {})
        if not isinstance(others, dict) or not all(isinstance(s, dict) for s in others.values()):
            raise SlacklineError(f"{self.run_file}: field 'suites' is not an object of objects")
        if name == config.suite and config.spec:
            return config.spec
        # With the fields that later versions added, so that equal suites compare equal.
        return spec_of(recorded(name, others[name], self.run_file)) if name in others else None

    def _spaces(self) -> Spaces | None:
        """What the trained policies see and do, if they are there."""
        if not self.subspace_file.exists():
            return None
        return load_subspaces(self.subspace_file)[0].spaces

    def insist_on_same(self, suite: Suite) -> None:
        """Refuse to adapt to a suite that has the name of another one here: their scores would be
        mixed up."""
        config, known, spec = self.config(), self.spec(suite.name), spec_of(suite)
        unknown_so_far = suite.name != config.suite or config.kept_by_name
        if known == spec or (known is None and unknown_so_far):
            return
        raise SlacklineError(
            f"{self.path}: keeps another {suite.name} ({difference(known or {}, spec or {})}); "
            "give the changed suite another name to adapt to it"
        )

    def finished(self) -> bool:
        return self.read().get("finished") is True

    def insist_on_finished(self) -> None:
        if not self.finished():
            raise SlacklineError(f"{self.path}: is not trained to the end yet; resume it first")

    def finish(self, seconds: float) -> None:
        """Mark the training as complete; then nothing goes back to the checkpoint before last."""
        remove(self.previous_file)
        values = self.read()
        values["finished"] = True
        values["provenance"] |= {"finished": _now(), "training_seconds": round(seconds, 2)}
        self._write(values)

    def note_adaptation(self, shots: int, suite: Suite, adapter: str = "grid") -> None:
        """Remember the command that last adapted to a suite with K shots (or by another adapter
        with that many episodes), and a user's suite."""
        values, config, spec = self.read(), self.config(), spec_of(suite)
        commands = values["provenance"].setdefault("adaptations", {})
        elsewhere = "" if suite.name == config.suite else f" on {suite.name}"
        how = f"K = {shots}" if adapter == "grid" else f"{adapter}, {counted(shots, 'episode')}"
        commands[how + elsewhere] = provenance()["command"]
        if spec is not None and self.spec(suite.name) is None:
            values["schema"] = SCHEMA
            values["suites"] = values.get("suites", {}) | {suite.name: spec}
        self._write(values)

    def note_adapting_speed(self, steps: int, seconds: float) -> None:
        """Remember how long adapting took, to reckon with; `steps` if no episode ended early."""
        values = self.read()
        spent = {"adapting_steps": steps, "adapting_seconds": round(seconds, 3)}
        values["provenance"] |= spent
        self._write(values)

    def save_checkpoint(
        self,
        state: Any,
        iteration: int,
        seconds: float,
        *,
        keep: bool = False,
        environments: Mapping[str, np.ndarray] = NO_ENVIRONMENTS,
    ) -> None:
        """Save the train state for a resume, with what environments outside JAX are rebuilt from,
        or (`keep`) for a fan to begin from."""
        config = self.config()
        header = {
            "format": "slackline-checkpoint",
            "schema": CHECKPOINT_SCHEMA if environments else 1,
            "suite": config.suite,
            "seeds": list(config.seeds),
            "iteration": iteration,
            "seconds": seconds,
        }
        path = self.kept_file if keep else self.checkpoint_file
        previous = None if keep else self.previous_file
        others = {ENVIRONMENTS + name: array for name, array in environments.items()}
        write_tensors(path, to_tensors(state, FIELD_NAMES) | others, header, previous=previous)

    def has_checkpoint(self) -> bool:
        return self.checkpoint_file.exists() or self.previous_file.exists()

    def load_checkpoint(self, like: Any, *, kept: bool = False) -> Checkpoint | None:
        """The last one, or None where none was saved yet.

        Where the last checkpoint is damaged, the one before it, and a word about it.
        """
        if kept:
            return self._load(self.kept_file, like)
        try:
            return self._load(self.checkpoint_file, like) or self._load(self.previous_file, like)
        except Damaged as error:
            with contextlib.suppress(SlacklineError):
                if found := self._load(self.previous_file, like):
                    LOG.warning("%s; going on from the checkpoint before it", error)
                    return found
            raise Damaged(
                f"{error}; there is no good checkpoint before it: to begin again, choose another "
                "folder"
            ) from None

    def _load(self, path: Path, like: Any) -> Checkpoint | None:
        """What one file holds, if it is there."""
        if not path.exists() and not path.is_symlink():
            return None
        tensors, header = read_tensors(path)
        check_format(
            path,
            header.get("format"),
            header.get("schema"),
            expected="slackline-checkpoint",
            newest=CHECKPOINT_SCHEMA,
        )
        config = self.config()
        insist_on_own(path, header.get("suite"), config.suite)
        insist_on_seeds(path, header.get("seeds"), config.seeds)
        iteration, seconds = header.get("iteration"), header.get("seconds")
        if not isinstance(iteration, int) or not isinstance(seconds, int | float):
            raise SlacklineError(f"{path}: has no iteration number")
        if not 0 <= iteration <= config.iterations:
            raise SlacklineError(
                f"{path}: is of iteration {iteration}; the run has {config.iterations}"
            )
        others = {
            name: tensors.pop(name) for name in list(tensors) if name.startswith(ENVIRONMENTS)
        }
        state = from_tensors(like, tensors, path, FIELD_NAMES)
        environments = {name.removeprefix(ENVIRONMENTS): array for name, array in others.items()}
        return Checkpoint(state, iteration, float(seconds), environments, path)

    def snapshot_file(self, iteration: int) -> Path:
        """Where the policies after so many iterations are kept."""
        folder = self.path / SNAPSHOTS
        insist_on_own_folder(folder)
        folder.mkdir(exist_ok=True)
        return folder / f"{iteration:012d}.safetensors"

    def snapshots(self) -> dict[int, list[Subspace]]:
        """The policies at moments of the training, by how many iterations were done."""
        insist_on_own_folder(self.path / SNAPSHOTS)
        files = sorted((self.path / SNAPSHOTS).glob("*.safetensors"))
        return {int(file.stem): self.subspaces(file) for file in files if file.stem.isdecimal()}

    def subspaces(self, file: Path | None = None) -> list[Subspace]:
        """The trained artefact, or a snapshot of it, one subspace a seed."""
        file = self.subspace_file if file is None else file
        found, config = load_subspaces(file), self.config()
        insist_on_own(file, found[0].suite, config.suite)
        insist_on_seeds(file, [subspace.seed for subspace in found], config.seeds)
        spec = self.spec(config.suite)
        home = home_of(replace(found[0], suite=config.suite, spec=spec, where=self.path), file)
        return [replace(subspace, home=home) for subspace in found]

    def append_progress(self, line: dict[str, Any]) -> None:
        append(self.progress_file, _checked_line(line))

    def read_progress(self) -> list[dict[str, Any]]:
        """Every complete line; a last line cut short by a kill is dropped."""
        found, problem = self._progress()
        if problem:
            raise Damaged(problem)
        return found

    def _progress(self) -> tuple[list[dict[str, Any]], str]:
        """(the lines up to the first that is damaged, what is wrong with that one)"""
        if not self.progress_file.exists() and not self.progress_file.is_symlink():
            return [], ""
        content = read_regular(self.progress_file, MAX_PROGRESS)
        lines, checked = content.split(b"\n"), f'"{LINE_CHECKSUM}": '.encode() in content
        found: list[dict[str, Any]] = []
        for number, line in enumerate(lines[:-1], 1):
            try:
                found.append(_parsed_line(line, checked=checked))
            except (ValueError, RecursionError):
                return found, (
                    f"{self.progress_file}: is corrupt (line {number} is not a progress line); the "
                    "policies and their scores are not touched by that, and without this line "
                    "the rest can be read"
                )
        return found, ""

    def rewind_progress(self, iteration: int) -> None:
        """Drop what was logged after `iteration`, so that a resumed run logs each point once."""
        lines, problem = self._progress()
        kept = [line for line in lines if line["iteration"] <= iteration]
        # A machine that lost its power may leave anything behind the last checkpoint.
        if problem and (kept[-1]["iteration"] if kept else 0) < iteration:
            raise Damaged(problem)
        write_atomic(self.progress_file, b"".join(map(_checked_line, kept)))


def _is_leftover(name: str) -> bool:
    """Whether a file of that name is what a killed writer leaves, and nobody reads."""
    return name.endswith(TEMPORARY) or name == LOCK


def _checked_line(values: dict[str, Any]) -> bytes:
    """A line of the log, with a checksum of the rest of it."""
    check = f"{zlib.crc32(json.dumps(values).encode()):08x}"
    return (json.dumps({**values, LINE_CHECKSUM: check}) + "\n").encode()


def _parsed_line(line: bytes, *, checked: bool) -> dict[str, Any]:
    """What a line says, without its checksum; ValueError if that is not what was written, or
    should be `checked` as other lines are and cannot."""
    values = json.loads(line)
    types = {"iteration": int, "steps": int, "return": list}
    if not isinstance(values, dict) or any(
        not isinstance(values.get(name), kind) for name, kind in types.items()
    ):
        raise ValueError("not a progress line")
    check = values.pop(LINE_CHECKSUM, None)
    if checked and json.loads(_checked_line(values))[LINE_CHECKSUM] != check:
        raise ValueError("not what was written")
    return values


def provenance() -> dict[str, Any]:
    """What made a run: the command, the versions, the machine's kind, the time."""
    devices = f"{jax.local_device_count()} × {jax.default_backend()}"
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv[0] else "python",
        "versions": {**installed(PACKAGES), "python": platform.python_version()},
        "machine": f"{platform.system()} {platform.machine()}, {devices}",
        "created": _now(),
    }


def installed(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those that there are."""
    found = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
