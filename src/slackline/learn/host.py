"""Training on environments outside JAX: steps are collected in another way than in `program.py`;
the updates are the same.

All copies (seeds × members of an ensemble) step their environments in one pool. Small policies act
in NumPy, with random numbers that one compiled call draws for all steps of a window; others in a
compiled call a step.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Discrete
from slackline.errors import SlacklineError
from slackline.learn.acting import NumpyActor, acts_in_numpy, drawn, step_keys
from slackline.learn.hyper import Hyper
from slackline.learn.learner import Learner, TrainState
from slackline.learn.program import STATE, Program, Progress
from slackline.parallel.mesh import SEED, WHOLE, Layout, compiled, layout_of
from slackline.rollout import HostRunner, HostRunning, Totals
from slackline.rollout.host import Tensors
from slackline.types import Array, Transition

LOG = logging.getLogger("slackline")


class HostProgram:
    """As `Program`, but the environments are not part of the state: `keep` is what they can be
    rebuilt from. Those that cannot start anew when a run is resumed, with seeds that come from the
    state's keys."""

    def __init__(
        self,
        learner: Learner,
        hyper: Hyper,
        seeds: Sequence[int],
        members: int = 1,
        budget: float = math.inf,
        hyper_axis: int | None = None,
    ):
        """As for `Program`."""
        runner = learner.runner
        assert isinstance(runner, HostRunner)
        self._runner, self._learner, self._hyper = runner, learner, hyper
        self._networks = Program(learner, hyper, seeds, members, budget, hyper_axis)
        self._budget = jnp.float32(budget)
        self._shape = (len(seeds) * members, hyper.num_envs)
        layout = layout_of(self._shape[0], side_by_side=not learner.sees_pictures)
        self._forgiving = hyper_axis is not None
        self._in_numpy = acts_in_numpy(learner, hyper, self._shape[0])
        self._draw, self._act, self._learn = _compiled(learner, layout, hyper_axis)
        self._running: HostRunning | None = None
        self._ahead: tuple[Transition, Totals] | None = None
        self._kept: Tensors = {}

    def init(self) -> TrainState:
        return self._networks.init()

    def shapes(self) -> TrainState:
        """The train state's shapes and types, without computing it."""
        return self._networks.shapes()

    def place(self, state: TrainState) -> TrainState:
        """A state from elsewhere, laid out on the mesh."""
        return self._networks.place(state)

    def advance(self, state: TrainState, iterations: int) -> tuple[TrainState, Progress]:
        """Train on: iteration by iteration, in Python."""
        total: Progress | None = None
        if self._running is None:
            self._running = self._open(state)
        for _ in range(iterations):
            steps, episodes = self._ahead or self._collect(state)
            # JAX answers at once and computes in the background until somebody looks.
            learnt, losses = self._learn(state, self._hyper, steps, self._budget)
            self._ahead = self._collect(state, ahead=True) if self._hyper.overlap else None
            state = learnt
            now = Progress(episodes, jax.tree.map(np.asarray, losses))
            total = now if total is None else jax.tree.map(np.add, total, now)
        assert total is not None
        return state, total._replace(losses=jax.tree.map(lambda x: x / iterations, total.losses))

    def keep(self) -> Tensors:
        """What the environments can be rebuilt from, and what was collected ahead."""
        if self._running is None:
            return {}
        found = dict(self._running.keep())
        if found and self._ahead is not None:
            found |= ahead_to_tensors(*self._ahead)
        return found

    def recall(self, kept: Tensors, path: Path) -> None:
        """Begin with what `keep` said, read from a file, instead of new episodes."""
        if not kept:
            LOG.warning("%s: its episodes cannot be rebuilt; new ones begin", self._runner.env.name)
            return
        insist_on_fit(kept, self._expected(), path)
        self._kept = kept

    def _expected(self) -> dict[str, Expected]:
        """The kinds and shapes of what `keep` says, by name."""
        env, num = self._runner.env, math.prod(self._shape)
        latent = (self._learner.method.latent.size,)
        action = () if isinstance(env.action, Discrete) else (env.action.size,)
        seen: Expected = ("f" if env.picture is None else "u", env.observation_shape)
        rows = {"observation": seen, "z": ("f", latent), "fresh": ("b", ())}
        rows |= {"episode_return": ("f", ()), "elapsed": ("i", ())}
        each = {"seeds": ("i", ()), "later": ("b", ()), "before": ("u", (6,)), "now": ("u", (6,))}
        each["state_sizes"] = ("i", ())
        whole = {"states": ("u", (None,)), "steps": ("i", (1,))}
        whole["actions"] = ("ui" if action == () else "f", (None, num, *action))
        return (
            {name: (kind, (*self._shape, *rest)) for name, (kind, rest) in rows.items()}
            | {name: (kind, (num, *rest)) for name, (kind, rest) in each.items()}
            | whole
            | ahead_expected(self._shape, self._hyper.num_steps, seen, latent)
        )

    def close(self) -> None:
        """Give back the environments."""
        if self._running is not None:
            self._running.close()
            self._running, self._ahead = None, None

    def _open(self, state: TrainState) -> HostRunning:
        """Environments in their first step, each copy's from its own key, or as they were kept."""
        draw = jax.vmap(lambda key: jax.random.randint(key, self._shape[1:], 0, 2**31 - 1))
        seeds, z_size = np.asarray(draw(state.key)), self._learner.method.latent.size
        if not self._kept:
            return self._runner.open(seeds, z_size)
        kept, self._kept = self._kept, {}

        def begin(running: HostRunning) -> None:
            self._say_what_is_new(running.recall(kept, seeds))

        running = self._runner.open(seeds, z_size, begin=begin)
        self._ahead = ahead_from_tensors(kept)
        return running

    def _say_what_is_new(self, same: np.ndarray) -> None:
        if not same.all():
            LOG.warning(
                "%s: %d of %d episodes could not be rebuilt; new ones begin there",
                self._runner.env.name,
                np.sum(~same),
                same.size,
            )

    def _collect(self, state: TrainState, ahead: bool = False) -> tuple[Transition, Totals]:
        """Step every environment `num_steps` times; (copies, T, N, ...). A state that collects
        once more, `ahead` of what it learns, draws from other keys."""
        if self._running is None:
            self._running = self._open(state)
        num = self._hyper.num_steps
        if self._in_numpy:
            window = self._draw(state, self._hyper, np.int32(num * ahead))
            actor = NumpyActor(self._learner, window, forgiving=self._forgiving)
            steps, episodes = self._runner.steps(self._running, actor, num, together=True)
            return steps._replace(log_prob=actor.log_prob(steps.action)), episodes  # type: ignore[arg-type]

        def act(t: int, *seen: np.ndarray) -> tuple[Any, ...]:
            return self._act(state, self._hyper, np.int32(t + num * ahead), *seen)

        return self._runner.steps(self._running, act, num)


Expected = tuple[str, tuple[int | None, ...]]
"""The kinds that an array may have, and its shape, None for any length."""
AHEAD = "ahead."


def ahead_to_tensors(steps: Transition, episodes: Totals) -> Tensors:
    """What was collected ahead as arrays by name."""
    fields = {**steps._asdict(), **episodes._asdict()}
    return {AHEAD + name: np.asarray(x) for name, x in fields.items() if x is not None}


def ahead_from_tensors(kept: Tensors) -> tuple[Transition, Totals] | None:
    """The inverse; None if nothing was."""
    if AHEAD + "reward" not in kept:
        return None
    steps: Any = {name: kept.get(AHEAD + name) for name in Transition._fields}
    episodes: Any = {name: kept[AHEAD + name] for name in Totals._fields}
    return Transition(**steps), Totals(**episodes)


def ahead_expected(
    shape: tuple[int, int], num_steps: int, seen: Expected, latent: tuple[int, ...]
) -> dict[str, Expected]:
    """Kinds and shapes, by name; all that may be there, though nothing has to be."""
    copies, num_envs = shape
    window = (copies, num_steps, num_envs)
    ends: dict[str, Expected] = dict.fromkeys(("terminated", "truncated", "real"), ("b", window))
    numbers: dict[str, Expected] = dict.fromkeys(("log_prob", "reward", "value"), ("f", window))
    views = dict.fromkeys(("observation", "next_observation"), (seen[0], (*window, *seen[1])))
    sums: dict[str, Expected] = dict.fromkeys(Totals._fields, ("if", (copies,)))
    whole = {**ends, **numbers, **views, **sums, "z": ("f", (*window, *latent))}
    return {AHEAD + name: expected for name, expected in whole.items()}


def insist_on_fit(kept: Tensors, expected: Mapping[str, Expected], path: Path) -> None:
    """Refuse arrays that are not of this training."""
    missing = [n for n in expected if n not in kept and not n.startswith(AHEAD)]
    for name in missing:
        raise SlacklineError(f"{path}: has nothing about the environments' {name}")
    for name, array in kept.items():
        kinds, shape = expected.get(name, ("", None))
        if name == AHEAD + "action":  # as the algorithm stores it
            continue
        fits = shape is not None and len(shape) == array.ndim
        same = fits and all(n in (None, m) for n, m in zip(shape or (), array.shape, strict=True))
        empty = name == "actions" and array.shape[:1] == (0,)
        if not (same or empty) or array.dtype.kind not in kinds + "f" * empty:
            raise SlacklineError(
                f"{path}: the environments' {name} is {array.dtype}{list(array.shape)}, which does "
                "not fit this training"
            )
    if (kept["elapsed"] < 0).any() or (kept["state_sizes"] < 0).any():
        raise SlacklineError(f"{path}: the environments' sizes are negative")
    if kept["state_sizes"].sum() != kept["states"].size:
        raise SlacklineError(f"{path}: the environments' states have another size than they say")


def only_real(real: Array, rows: Any) -> Any:
    """The rows (T, N, ...), with real ones once more in place of those that a library spent on a
    reset: nothing can be learnt from these."""
    flat = real.reshape(-1)

    def replaced(rows: Any) -> Any:
        number = jnp.arange(len(flat))
        in_order = jnp.argsort(~flat, stable=True)
        chosen = jnp.where(flat, number, in_order[number % jnp.maximum(jnp.sum(flat), 1)])

        def pick(x: Array) -> Array:
            return x.reshape(len(flat), *x.shape[2:])[chosen].reshape(x.shape)

        return jax.tree.map(pick, rows)

    return jax.lax.cond(jnp.all(flat), lambda rows: rows, replaced, rows)


def unless(any_real: Array, learnt: TrainState, before: TrainState) -> TrainState:
    """The state after the update, or the one before where no step was real."""
    return jax.tree.map(lambda new, old: jnp.where(any_real, new, old), learnt, before)


@lru_cache(maxsize=16)
def _compiled(
    learner: Learner, layout: Layout, hyper_axis: int | None
) -> tuple[Callable[..., Any], ...]:
    """Compiled for all copies: (the random numbers and policies of a window, act, learn)."""
    hyper_spec = WHOLE if hyper_axis is None else SEED

    def act(
        state: TrainState, hyper: Hyper, t: Array, observation: Array, z: Array, fresh: Array
    ) -> tuple[Array, ...]:
        """Actions of N environments; those with a fresh episode get a new z first. Where one
        network is policy and critic, V(s, z) comes with them."""
        z_key, act_key = step_keys(state, t)
        z = jnp.where(fresh[:, None], learner.method.latent.sample(z_key, len(fresh)), z)
        noise = learner.distribution.noise(act_key, (len(fresh),))
        done = learner.act(state, hyper, noise, observation, z)
        if hyper_axis is not None:
            # Settings that are compared may diverge, and must not stop the others' environments.
            done = done[0], jnp.nan_to_num(done[1]), done[2]
        # With overlap a later critic judges, and it must judge all of the window.
        if learner.sees_pictures and not hyper.overlap:
            done = *done, learner.outputs_and_value(state.networks, observation, z)[1]
        return z, *done

    def learn(state: TrainState, hyper: Hyper, steps: Transition, budget: Array) -> Any:
        assert steps.real is not None
        samples = learner.judge(state, steps._replace(real=None), hyper)
        samples, seen = only_real(steps.real, (samples, steps.observation))
        one_block = jax.tree.map(lambda x: x[None], samples)
        learnt, losses = learner.learn(state, one_block, seen, hyper, budget)
        return unless(jnp.any(steps.real), learnt, state._replace(key=learnt.key)), losses

    return (
        compiled(
            layout.each(partial(drawn, learner), (0, hyper_axis, None)),
            layout,
            (STATE, hyper_spec, WHOLE),
            SEED,
        ),
        compiled(
            layout.each(act, (0, hyper_axis, None, 0, 0, 0)),
            layout,
            (STATE, hyper_spec, WHOLE, SEED, SEED, SEED),
            SEED,
            run_long=True,
        ),
        compiled(
            layout.each(learn, (0, hyper_axis, 0, None)),
            layout,
            (STATE, hyper_spec, SEED, WHOLE),
            (STATE, SEED),
            run_long=True,
        ),
    )
