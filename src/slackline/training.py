"""Training a run: stride by stride, with checkpoints, progress and a clean way to stop."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from slackline.adapt.trained import with_training_returns
from slackline.envs.host import EnvironmentFailed
from slackline.errors import Interrupted, SlacklineError, require_count, require_number
from slackline.io.signals import stop_signals
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.learn.normalise import Moments
from slackline.learn.opening import opened
from slackline.learn.program import Progress
from slackline.learn.programs import STRIDES, Trainer, strides, trainer_of
from slackline.methods.catalogue import BASELINE
from slackline.methods.catalogue import method as find_method
from slackline.networks.geometry import geometry
from slackline.progress import OnTick, Tick
from slackline.runtime import set_up_jax
from slackline.store.run import RunConfig, RunFolder
from slackline.subspace import Subspace, save_subspaces
from slackline.suites.recorded import spec_of
from slackline.suites.suite import Suite


def configure(
    suite: Suite,
    method: str | None = None,
    *,
    seeds: tuple[int, ...] = (0,),
    steps: int | None = None,
    hyper: Hyper | None = None,
    preset: str | None = None,
    **options: Any,
) -> RunConfig:
    """A checked run configuration; what is left out comes from the suite and the catalogue."""
    if hyper is not None and preset is not None:
        raise SlacklineError("hyper and preset exclude each other; give one of them")
    if not isinstance(hyper, Hyper | None):
        raise SlacklineError(f"hyper is a {type(hyper).__name__}; it must be a slackline.Hyper")
    method = suite.recommended if method is None else method
    find_method(method)  # or it could not be looked up below
    preset = "paper" if preset is None else preset
    config = RunConfig(
        suite=suite.name,
        method=method,
        options=find_method(method, **(suite.options.get(method, {}) | options)).options,
        hyper=suite.preset(preset, method) if hyper is None else hyper,
        seeds=seeds,
        steps=usual_steps(suite) if steps is None else steps,
        spec=spec_of(suite),
    )
    config.check(suite)
    return config


def usual_steps(suite: Suite) -> int:
    """The suite's budget, unless SLACKLINE_STEPS says otherwise: for trying out, and for tests."""
    asked = os.environ.get("SLACKLINE_STEPS")
    if asked is None:
        return suite.protocol.steps
    if not asked.isdecimal():
        raise SlacklineError(f"SLACKLINE_STEPS is {asked!r}; it must be a whole number")
    return int(asked)


def run_training(
    config: RunConfig,
    out: str | Path | None,
    *,
    suite: Suite,
    resume: bool = False,
    on_tick: OnTick | None = None,
    checkpoint_seconds: float = 30.0,
    keep_at: float | None = None,
    snapshots: int = 0,
    single: TrainState | None = None,
    wait: float = 0.0,
) -> list[Subspace]:
    """Train what `config` says, in a folder if one is given, and return one subspace per seed.

    `suite` is what `config` was made of.
    `keep_at` also keeps the state after that share of the training, for a fan to begin from, and
    `snapshots` the policies at so many moments, evenly (where the nearest report is);
    `single` is a single policy's state to begin from, if `config` says so (see `beginning_from`).
    Where another process writes in the folder, it may take `wait` seconds to end.
    """
    set_up_jax()
    if keep_at is not None:
        require_number("keep_at", keep_at, low=0.0, high=1.0)
    require_count("snapshots", snapshots, low=0, high=STRIDES)
    if out is None:
        training = _Training(config, suite, None, on_tick, checkpoint_seconds, None, 0, single)
        return knowing_their_returns(subspaces_of(config, suite, training.run()), suite)
    folder = RunFolder(out)
    if may_begin(folder, config, resume=resume) or not folder.finished():
        with folder.writing(wait=wait):
            prepare(folder, config, resume=resume)
            if not folder.finished():
                training = _Training(
                    config, suite, folder, on_tick, checkpoint_seconds, keep_at, snapshots, single
                )
                return _trained(training, folder)
    folder.tidy()
    return [replace(subspace, home=suite) for subspace in folder.subspaces()]


def _trained(training: _Training, folder: RunFolder) -> list[Subspace]:
    """Train to the end and keep the outcome."""
    suite = training.suite
    subspaces = subspaces_of(training.config, suite, training.run())
    subspaces = knowing_their_returns(subspaces, suite)
    save_subspaces(folder.subspace_file, subspaces)
    folder.finish(training.seconds)
    if training.stopped:
        farewell = f"stopped; the training in {folder.path} was just complete"
        raise Interrupted(farewell, training.stopped)
    return subspaces


def knowing_their_returns(subspaces: list[Subspace], suite: Suite) -> list[Subspace]:
    """With the training return along z, which adapters begin from. Not on environments outside JAX,
    which may be slow, or robots: they take the steps that were asked for and no more."""
    return with_training_returns(subspaces, suite) if suite.env.in_jax else subspaces


def beginning_from(config: RunConfig, suite: Suite, run: RunFolder) -> tuple[RunConfig, TrainState]:
    """`config` as one that goes on from a single policy's run, and the state it goes on from: what
    that run kept, or its last checkpoint.

    Suite, seeds and hyper-parameters have to be the same; the budget may be larger.
    """
    saved = run.config()
    if saved.method != BASELINE:
        raise SlacklineError(
            f"{run.path}: holds a {saved.method}; a fan can only begin from a single policy"
        )
    wanted = replace(config, method=saved.method, options=saved.options, steps=saved.steps)
    if saved != wanted:
        raise SlacklineError(
            f"{run.path}: is of another training ({saved.first_difference(wanted)}); a fan can "
            "only begin from a single policy with the same suite, seeds and hyper-parameters"
        )
    shapes = program_of(saved, suite).shapes()
    found = run.load_checkpoint(shapes, kept=True) or run.load_checkpoint(shapes)
    if found is None:
        raise SlacklineError(f"{run.path}: has no checkpoint to begin from")
    config = replace(config, from_single=found.iteration)
    config.check(suite)
    return config, found.state


def prepare(folder: RunFolder, config: RunConfig, *, resume: bool) -> None:
    """Begin a run in `folder` if it is new; else (resuming) it must hold this very one."""
    if may_begin(folder, config, resume=resume):
        folder.create(config)


def may_begin(folder: RunFolder, config: RunConfig, *, resume: bool) -> bool:
    """Whether a run of `config` would begin in `folder`; False if it would be resumed there.

    Anything else is refused. Writes nothing.
    """
    if folder.is_empty() or folder.is_untrained():
        return True
    if not folder.run_file.exists():
        raise SlacklineError(
            f"{folder.path}: holds something that is not a run; choose another folder"
        )
    saved, config = folder.config().spelt_out, config.spelt_out
    if saved.kept_by_name:
        config = replace(config, spec=None)
    if not resume:
        raise SlacklineError(
            f"{folder.path}: already holds a run; pass --resume to continue it, "
            "or choose another folder"
        )
    if saved != config:
        raise SlacklineError(
            f"{folder.path}: holds another run ({saved.first_difference(config)}); "
            "resume it with its own settings, or choose another folder"
        )
    return False


def program_of(config: RunConfig, suite: Suite) -> Trainer:
    """The compiled program that trains what `config` says."""
    method = config.resolved_method
    learner = Learner(suite.env, suite.horizon, method.member)
    return trainer_of(learner, config.hyper, config.seeds, method.num_members, config.iterations)


class _Training:
    """The loop around the compiled program."""

    def __init__(
        self,
        config: RunConfig,
        suite: Suite,
        folder: RunFolder | None,
        on_tick: OnTick | None,
        checkpoint_seconds: float,
        keep_at: float | None,
        snapshots: int,
        single: TrainState | None,
    ):
        self.config, self.folder, self.on_tick = config, folder, on_tick
        self.checkpoint_seconds = checkpoint_seconds
        self.program = program_of(config, suite)
        self.suite, self.single = suite, single
        self.per_seed = (len(config.seeds), config.resolved_method.num_members)
        self.keep_at = 0 if keep_at is None else int(keep_at * config.iterations)
        """The iteration after which the state is kept; 0 for none."""
        self.snapshots = snapshots
        """At how many moments the policies are kept."""
        self.seconds = 0.0
        self.iteration = 0
        """Where the last stride that was reported ended."""
        self.stopped = 0
        """The signal that asked to stop, or 0."""

    def run(self) -> TrainState:
        """Train, and say what is kept if an environment fails on the way."""
        try:
            return self._run()
        except EnvironmentFailed as error:
            raise SlacklineError(f"{error}{self._kept()}") from error
        finally:
            self.program.close()

    def _run(self) -> TrainState:
        """Advance stride by stride to the end of the budget."""
        state, iteration = self._begin()
        self.iteration = iteration
        started, saved_at = time.monotonic() - self.seconds, time.monotonic()
        with _stop_requests() as stopping:
            todo = strides(self.program, state, iteration, self.config.iterations, self.keep_at)
            for state, iteration, progress in todo:
                self.seconds = time.monotonic() - started
                self._report(iteration, state, progress)
                self._keep_snapshot(iteration, state)
                self.iteration = iteration
                self.stopped = stopping()
                due = time.monotonic() - saved_at >= self.checkpoint_seconds
                if due or self.stopped or iteration == self.config.iterations:
                    self._checkpoint(state, iteration)
                    saved_at = time.monotonic()
                if iteration == self.keep_at:
                    self._checkpoint(state, iteration, keep=True)
                if self.stopped and iteration < self.config.iterations:
                    raise Interrupted(self._farewell(iteration), self.stopped)
        return state

    def _begin(self) -> tuple[TrainState, int]:
        """The last checkpoint if there is one, else a fresh start."""
        if self.folder is not None:
            found = self.folder.load_checkpoint(self.program.shapes())
            self.folder.rewind_progress(found.iteration if found else 0)
            if found:
                self.seconds = found.seconds
                self.program.recall(found.environments, found.path)
                return self.program.place(found.state), found.iteration
        if not self.config.from_single:
            return self.program.init(), 0
        if self.single is None:
            raise SlacklineError(
                "this run began from a single policy's and has no checkpoint yet; pass --from RUN"
            )
        state = opened(self.program.init(), self.single)
        return self.program.place(state), self.config.from_single

    def _report(self, iteration: int, state: TrainState, progress: Progress) -> None:
        """Log a stride; refuse to go on with numbers that are no longer numbers."""
        steps = iteration * self.config.hyper.steps_per_iteration
        losses = {
            name: np.asarray(x).reshape(self.per_seed).mean(axis=1)
            for name, x in progress.losses._asdict().items()
        }
        self._insist_on_a_sound_simulation(iteration, progress)
        weights = {"a weight": self._all_finite(state.networks)}
        moments = {"the observations' mean or deviation": self._all_finite(state.moments)}
        for name, values in {**losses, **weights, **moments}.items():
            if not np.isfinite(values).all():
                seed = self.config.seeds[int(np.argmin(np.isfinite(values)))]
                advice = (
                    "scale the observations" if name in moments else "try a smaller learning rate"
                )
                raise SlacklineError(
                    f"training diverged at step {steps:,}: {name} of seed {seed} "
                    f"is not finite{self._kept()}; {advice}"
                )
        counts = np.asarray(progress.episodes.count).reshape(self.per_seed).sum(axis=1)
        totals = np.asarray(progress.episodes.return_sum).reshape(self.per_seed).sum(axis=1)
        returns = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        if self.folder is not None:
            shown = losses | self._anchors(state)
            self.folder.append_progress(
                {
                    "iteration": iteration,
                    "steps": steps,
                    "seconds": round(self.seconds, 3),
                    "return": [None if math.isnan(r) else round(float(r), 4) for r in returns],
                    "episodes": counts.tolist(),
                    **{name: [float(f"{v:.5g}") for v in x] for name, x in shown.items()},
                }
            )
        if self.on_tick is not None:
            total = self.config.iterations * self.config.hyper.steps_per_iteration
            mean = float(np.nanmean(returns)) if np.isfinite(returns).any() else math.nan
            self.on_tick(Tick(steps, total, math.prod(self.per_seed), mean, self.seconds))

    def _insist_on_a_sound_simulation(self, iteration: int, progress: Progress) -> None:
        """Name the step at which an environment broke down; nothing of it was saved."""
        num_steps = self.config.hyper.num_steps
        taken = num_steps * (iteration - self.iteration)
        sound = np.asarray(progress.episodes.sound).reshape(self.per_seed).min(axis=1)
        if (sound < taken).any():
            seed = self.config.seeds[int(np.argmin(sound))]
            step = (self.iteration * num_steps + int(sound.min())) * self.config.hyper.num_envs
            raise SlacklineError(
                f"the simulation broke down at step {step:,}: an observation or reward of seed "
                f"{seed} is not finite{self._kept()}"
            )

    def _kept(self) -> str:
        if self.folder is None or not self.folder.has_checkpoint():
            return ""
        return f"; the last good checkpoint is kept in {self.folder.path}"

    def _all_finite(self, tree: Any) -> np.ndarray:
        """By seed (S,), 0 where every number in the tree is finite and NaN elsewhere."""
        floats = [x for x in map(np.asarray, jax.tree.leaves(tree)) if x.dtype.kind == "f"]
        rows = [np.isfinite(x).reshape(self.per_seed[0], -1).all(axis=1) for x in floats]
        return np.where(np.all(rows, axis=0), 0.0, np.nan)

    def _anchors(self, state: TrainState) -> dict[str, np.ndarray]:
        """Cosine (tensor by tensor) and distance between anchors, the mean over pairs by seed (S,);
        nothing where there is one."""
        member = self.config.resolved_method.member
        if member.conditioning.num_anchors(member.latent) < 2:
            return {}
        policies = jax.tree.map(np.asarray, state.networks.policy)
        each = [
            geometry(jax.tree.map(lambda x, i=i: x[i], policies)).pairs
            for i in range(math.prod(self.per_seed))
        ]
        found = {"cosine": [g.by_tensor for g in each], "distance": [g.distance for g in each]}
        return {
            name: np.mean(values, axis=-1).reshape(self.per_seed).mean(axis=1)
            for name, values in found.items()
        }

    def _keep_snapshot(self, iteration: int, state: TrainState) -> None:
        """Keep the policies, if one of the moments lies in the stride that has just ended."""
        if self.folder is None or iteration == self.config.iterations:
            return  # the end is kept anyway
        before, now = (
            i * self.snapshots // self.config.iterations for i in (self.iteration, iteration)
        )
        if now > before:
            subspaces = subspaces_of(self.config, self.suite, state)
            save_subspaces(self.folder.snapshot_file(iteration), subspaces)

    def _checkpoint(self, state: TrainState, iteration: int, *, keep: bool = False) -> None:
        if self.folder is not None:
            last = iteration == self.config.iterations
            environments = {} if keep or last else self.program.keep()
            self.folder.save_checkpoint(
                state, iteration, self.seconds, keep=keep, environments=environments
            )

    def _farewell(self, iteration: int) -> str:
        done = iteration / self.config.iterations
        if self.folder is None:
            return f"stopped at {done:.0%}; nothing was kept because no output folder was given"
        return f"stopped at {done:.0%}; the checkpoint in {self.folder.path} is complete"


def subspaces_of(config: RunConfig, suite: Suite, state: TrainState) -> list[Subspace]:
    """Cut the trained state into one subspace per seed."""
    method = config.resolved_method
    num_seeds = len(config.seeds)

    def members_as_anchors(leaf: Any) -> np.ndarray:
        """(seeds × members, anchors, ...) -> (seeds, members × anchors, ...)"""
        return np.asarray(leaf).reshape(num_seeds, -1, *leaf.shape[2:])

    parts: Any = {"policy": state.networks.policy, "critic": state.networks.critic}
    if state.moments:
        parts["normaliser"] = jax.vmap(Moments.frozen)(state.moments)
    parts = jax.tree.map(members_as_anchors, parts)
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], parts) for i in range(num_seeds)]
    for own, seed in zip(each, config.seeds, strict=True):
        own["policy"] = method.conditioning.spelt_out(method.latent, own["policy"], seed)
    return [
        Subspace(
            config.suite,
            method,
            seed,
            suite.env.action,
            **own,
            picture=suite.env.spaces.picture,
            spec=config.spec,
            home=suite,
        )
        for own, seed in zip(each, config.seeds, strict=True)
    ]


@contextmanager
def _stop_requests() -> Iterator[Callable[[], int]]:
    """Turn the first signal to stop into a number to ask for (0 until then), so that the current
    stride can be saved.

    A second one stops at once. Outside the main thread signals cannot be caught and are left alone.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return

    def ask(signum: int, _: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(signum)

    previous = {number: signal.signal(number, ask) for number in stop_signals()}
    try:
        yield lambda: asked[0] if asked else 0
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
