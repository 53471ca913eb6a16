"""Suites of the user's own: any environment by a word, or a file that names its variations.

gym:LunarLander-v3?gravity=-5.0    a Gymnasium id, with options for its maker
envpool:HalfCheetah-v5             an EnvPool id
my_robot.sim:make                  a function of yours that makes a Gymnasium environment
robot.toml                         a suite: the training environment and its variations
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from slackline.envs.advice import advice
from slackline.envs.api import Continuous
from slackline.envs.envpool import envpool, envpool_ids
from slackline.envs.gymnasium import describe, gymnasium, gymnasium_ids
from slackline.envs.host import HostEnv, HostParams
from slackline.errors import SlacklineError, in_one_line, require_count, unknown
from slackline.io.decode import decode
from slackline.learn.hyper import Hyper
from slackline.settings import assignment, query
from slackline.suites.suite import Protocol, Suite, Variation

T = TypeVar("T")

DISCRETE = Hyper(
    algorithm="ppo",
    policy_lr=3e-4,
    critic_lr=1e-3,
    discount=0.99,
    gae_lambda=0.95,
    entropy=0.01,
    max_grad_norm=0.5,
    num_envs=16,
    num_steps=128,
    epochs=4,
    minibatches=8,
    normalise_advantage=True,
    normalise_observation=True,
    hidden=(64, 64),
    critic_hidden=(64, 64),
    discriminator_hidden=(64, 64),
)
"""What PPO is usually given for a vector of observations and a few actions."""

CONTINUOUS = replace(DISCRETE, entropy=0.0, action_std=0.5, epochs=8)

PIXELS = replace(
    DISCRETE,
    policy_lr=5e-4,
    epochs=2,
    normalise_observation=False,
    hidden=(256,),
    critic_coefficient=0.1,
    discriminator_hidden=(256,),
)
"""What IMPALA's network is usually trained with, but for the passes over what was collected."""

PROTOCOL = Protocol(steps=1_000_000, shots=10, episodes=2, score_episodes=20)
HORIZON = 1000
"""Time limit of an environment that has none of its own."""


def own_suite(name: str) -> Suite:
    return suite_file(Path(name)) if name.endswith(".toml") else suite_of(environment(name))


def word_for_id(name: str) -> str | None:
    """The word for an environment that is named by its id alone: Pendulum-v1 -> gym:Pendulum-v1.
    None if the name does not look like an id, or Gymnasium is there and nobody has it."""
    if not re.search(r"-v\d+(\?|$)", name):
        return None
    source, mark, options = name.partition("?")
    for scheme, ids in (("gym", gymnasium_ids), ("envpool", envpool_ids)):
        with suppress(SlacklineError):
            found = {each.casefold(): each for each in ids()}.get(source.casefold())
            if found is not None:
                return f"{scheme}:{found}{mark}{options}"
    # Without Gymnasium that word is answered by how to install it.
    return None if find_spec("gymnasium") else f"gym:{name}"


def suite_of(env: HostEnv) -> Suite:
    """A suite without variations: train on it, adapt to whatever is given later."""
    return Suite(
        name=env.name,
        title=env.name,
        env=env,
        horizon=HORIZON,
        variations=(),
        hyper=hyper_for(env),
        protocol=PROTOCOL,
    )


def hyper_for(env: HostEnv) -> Hyper:
    """By the kind of observation and of action."""
    continuous = isinstance(env.action, Continuous)
    if env.picture is None:
        return CONTINUOUS if continuous else DISCRETE
    height, width, _ = env.picture
    even = height % 2 == width % 2 == 0
    return replace(PIXELS, entropy=0.0 if continuous else PIXELS.entropy, patch=2 if even else 1)


def environment(spec: str, options: Mapping[str, Any] | None = None) -> HostEnv:
    """The environment that a word stands for; `options` are added to those in it."""
    source, given = parsed(spec)
    merged = given | dict(options or {})
    return _environment(source, written(source, merged))


def parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """ "gym:Pendulum-v1?g=5.0" -> ("gym:Pendulum-v1", {"g": 5.0})"""
    source, _, words = spec.partition("?")
    return source, dict(map(assignment, filter(None, words.split("&"))))


def written(whose: str, options: Mapping[str, Any]) -> str:
    """Options as JSON, which is how they are kept."""
    try:
        return json.dumps(options, allow_nan=False)
    except (TypeError, ValueError):
        raise SlacklineError(
            f"{whose}: options are {options!r}; they must be finite numbers, words, true, false, "
            "or lists and tables of them"
        ) from None


@lru_cache(maxsize=64)
def _environment(source: str, options: str) -> HostEnv:
    """To know an environment's spaces one has to be made: once a process is enough."""
    scheme, _, rest = source.partition(":")
    merged = json.loads(options)
    if not rest:
        raise SlacklineError(
            f"environment is {source!r}; it must look like gym:ID, envpool:ID or module:function"
        )
    if scheme == "gym":
        return gymnasium(rest, **merged)
    if scheme == "envpool":
        return envpool(rest, **merged)
    return describe(source + query(merged), imported(scheme, rest), merged)


def imported(module: str, function: str) -> Callable[..., Any]:
    """A function of the user's own, from the folder the command was given in or from anywhere."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        home = import_module(module)
    except Exception as error:  # it is the user's code, and may do anything
        told = f"cannot import {module} ({type(error).__name__}: {in_one_line(error)})"
        known = "" if _is_of(error, module) else advice(error)
        raise SlacklineError(f"{module}:{function}: {known or told}") from error
    make = getattr(home, function, None)
    if make is None:
        raise SlacklineError(f"{module}:{function}: {module} has no {function}")
    if not callable(make):
        raise SlacklineError(f"{module}:{function}: is not a function that makes an environment")
    return make


def _is_of(error: Exception, module: str) -> bool:
    """Whether it is the named module itself that was not found, not one that it needs."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def changed_options(name: str, options: Mapping[str, Any]) -> Variation:
    """The same environment, made with other options."""
    words = ", ".join(f"{key} = {value}" for key, value in options.items())

    def apply(params: HostParams) -> HostParams:
        return params._replace(options={**params.options, **options})

    return Variation(name, words, apply, options=options)


def another(env: HostEnv, name: str | None = None) -> Variation:
    """Another environment altogether, of the same spaces."""
    return Variation(name or env.name, env.name, lambda _: env, env=env)


@dataclass(frozen=True)
class _File:
    """What a suite file says, each value checked."""

    path: Path
    values: dict[str, Any]

    def take(self, table: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
        value = table.get(key, default)
        if value is None:
            raise SlacklineError(f"{self.path}: {key} is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SlacklineError(f"{self.path}: {key} is {value!r}; it must be a {kind.__name__}")
        return value

    def environment(self, table: Mapping[str, Any], options: Mapping[str, Any]) -> HostEnv:
        spec = self.take(table, "env", str)
        try:
            return environment(spec, options)
        except SlacklineError as error:
            raise SlacklineError(f"{self.path}: {error}") from error

    def decoded(self, kind: type[T], table: Mapping[str, Any], base: T) -> T:
        """`base` with the values of a table."""
        try:
            return decode(kind, table, base=base)
        except SlacklineError as error:
            raise SlacklineError(f"{self.path}: {error}") from None

    def only(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                raise unknown(f"field of {where} in {self.path}", key, sorted(known))


def suite_file(path: Path) -> Suite:
    """A suite written by hand; see docs/your-environment.md."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SlacklineError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SlacklineError(f"{path}: is not a TOML file ({error})") from None
    file = _File(path, values)
    counts = {f.name for f in fields(Protocol)}
    file.only(
        values, {"env", "options", "title", "horizon", "variation", "hyper"} | counts, "suite"
    )
    env = file.environment(values, file.take(values, "options", dict, default={}))
    suite = suite_of(env)
    given = {name: values[name] for name in counts & set(values)}
    horizon = values.get("horizon", HORIZON)
    require_count(f"horizon in {path}", horizon)
    tables = file.take(values, "variation", list, default=[])
    variations = tuple(_variation(file, table) for table in tables)
    try:
        insist_on_names([v.name for v in variations])
    except SlacklineError as error:
        raise SlacklineError(f"{path}: {error}") from None
    return replace(
        suite,
        name=str(path),
        title=file.take(values, "title", str, default=path.stem),
        horizon=horizon,
        variations=variations,
        hyper=_hyper(file, suite.hyper),
        protocol=file.decoded(Protocol, given, PROTOCOL),
    )


def insist_on_names(variations: list[str]) -> None:
    """Refuse variations that scores could not tell apart."""
    for name in variations:
        if variations.count(name) > 1 or name == "Train":
            raise SlacklineError(f"the name {name!r} is taken by another variation")


def _variation(file: _File, table: Any) -> Variation:
    if not isinstance(table, dict):
        raise SlacklineError(f"{file.path}: a variation is written [[variation]]")
    file.only(table, {"name", "env", "options"}, "a variation")
    name, options = file.take(table, "name", str), file.take(table, "options", dict, default={})
    if "env" in table:
        return another(file.environment(table, options), name)
    if not options:
        raise SlacklineError(f"{file.path}: variation {name!r} has neither options nor an env")
    written(f"{file.path}: variation {name!r}", options)
    return changed_options(name, options)


def _hyper(file: _File, default: Hyper) -> Hyper:
    given = file.take(file.values, "hyper", dict, default={})
    file.only(given, {f.name for f in fields(Hyper)}, "hyper")
    hyper = file.decoded(Hyper, given, default)
    try:
        hyper.check()
    except SlacklineError as error:
        raise SlacklineError(f"{file.path}: {error}") from None
    return hyper
