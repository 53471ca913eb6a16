"""What a file keeps of a user's suite, and how to get a suite back from it.

A suite of slackline's own is kept by its name. A suite of the user's is kept as plain data, its
`spec`: the words that name its environments, their spaces, the variations, the protocol. Reading
one imports nothing and makes nothing, so its environments cannot be played until the user names
them again (resolve/again.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from slackline.envs.api import Continuous, Discrete, Spaces, action_from_json, action_to_json
from slackline.envs.host import HostEnv, RecordedEnv
from slackline.errors import NotNamed, SlacklineError, require_count
from slackline.io.decode import decode
from slackline.learn.hyper import hyper_from_json
from slackline.subspace import Subspace
from slackline.suites import builtin, is_own
from slackline.suites.own import (
    HORIZON,
    PROTOCOL,
    another,
    changed_options,
    hyper_for,
    insist_on_names,
)
from slackline.suites.suite import MOST, Protocol, Suite, Variation

Spec = dict[str, Any]


def spec_of(suite: Suite) -> Spec | None:
    """A user's suite as plain data; None for slackline's own, whose name says everything."""
    if _is_builtin(suite):
        return None
    spec = {
        "title": suite.title,
        "env": _word(suite.env),
        "spaces": {
            "observation": suite.env.observation_shape,
            "action": action_to_json(suite.env.action),
        },
        "horizon": suite.horizon,
        "protocol": asdict(suite.protocol),
        "variations": [_variation_spec(variation) for variation in suite.variations],
        "hyper": asdict(suite.hyper),
        "digits": suite.digits,
        "display_scale": suite.display_scale,
        "note": suite.note,
    }
    try:
        return json.loads(json.dumps(spec, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SlacklineError(f"{suite.name}: cannot be kept as plain data ({error})") from None


def _is_builtin(suite: Suite) -> bool:
    try:
        return builtin(suite.name) is suite
    except SlacklineError:
        return False


def _word(env: Any) -> str | None:
    """The word that names an environment; None for an object that a user wrote in JAX."""
    if isinstance(env, RecordedEnv):
        return env.word
    return env.name if isinstance(env, HostEnv) else None


def _variation_spec(variation: Variation) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": variation.name, "description": variation.description}
    if variation.env is not None:
        return spec | {"env": _word(variation.env)}
    return spec if variation.options is None else spec | {"options": dict(variation.options)}


def recorded(name: str, spec: Mapping[str, Any], where: str | Path) -> Suite:
    """The suite that `spec` describes. Its environments know their spaces and cannot be played."""
    try:
        return _recorded(name, spec, where)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        told = f"{type(error).__name__}: {error}"
        raise SlacklineError(f"{where}: its suite's spec is unusable ({told})") from None
    except SlacklineError as error:
        raise SlacklineError(f"{where}: its suite's spec is unusable ({error})") from None


def _recorded(name: str, spec: Mapping[str, Any], where: str | Path) -> Suite:
    tables = spec["variations"]
    words = [spec["env"], *(table["env"] for table in tables if "env" in table)]
    refused = refusal(where, words)
    shape = tuple(map(int, spec["spaces"]["observation"]))
    action = action_from_json(spec["spaces"]["action"])
    for count in (*shape, action.num_actions if isinstance(action, Discrete) else action.size):
        require_count("size of a space", count)

    def env(word: str | None) -> RecordedEnv:
        return _env(word or name, word, shape, action, refused)

    def variation(table: Mapping[str, Any]) -> Variation:
        called = _text(table["name"])
        if "env" in table:
            found = another(env(_text(table["env"])), called)
        elif "options" in table:
            found = changed_options(called, dict(table["options"]))
        else:
            found = Variation(called, "", _refuses(refused))
        return replace(found, description=_text(table["description"]))

    variations = tuple(map(variation, tables))
    insist_on_names([v.name for v in variations])
    protocol, hyper = decode(Protocol, spec["protocol"]), hyper_from_json(spec["hyper"])
    require_count("horizon", spec["horizon"], high=MOST)
    hyper.check()
    if spec["digits"] is not None:
        require_count("digits", spec["digits"], low=0, high=12)
    return Suite(
        name=_text(name),
        title=_text(spec["title"]),
        env=env(None if spec["env"] is None else _text(spec["env"])),
        horizon=spec["horizon"],
        variations=variations,
        hyper=hyper,
        protocol=protocol,
        digits=spec["digits"],
        display_scale=float(spec["display_scale"]),
        note=_text(spec["note"]),
    )


def recorded_by_name(
    name: str,
    where: str | Path,
    spaces: Spaces | None = None,
) -> Suite:
    """What is known of a user's suite where an earlier version kept no more than its name. The
    spaces are those of the trained policies, if these are there."""
    shape, action = spaces or Spaces((0,), Discrete(0))
    is_file = name.endswith(".toml")
    refused = _file_refusal(where, name) if is_file else refusal(where, [name])
    env = _env(_text(name), None if is_file else name, shape, action, refused)
    return Suite(
        name=name,
        title=Path(name).stem if is_file else name,
        env=env,
        horizon=HORIZON,
        variations=(),
        hyper=hyper_for(env),
        protocol=PROTOCOL,
    )


def _env(
    name: str,
    word: str | None,
    shape: tuple[int, ...],
    action: Discrete | Continuous,
    refused: NotNamed,
) -> RecordedEnv:
    if len(shape) not in (1, 3):
        raise SlacklineError(f"observations have the shape {shape}")
    height, width, colours = shape if len(shape) == 3 else (1, 1, shape[0])
    picture = (height, width, colours) if len(shape) == 3 else None
    size = height * width * colours
    return RecordedEnv(name, size, action, picture=picture, word=word, refusal=refused)


def _refuses(refused: NotNamed) -> Callable[[Any], Any]:
    def apply(_: Any) -> Any:
        raise refused

    return apply


def _text(value: Any) -> str:
    """A line of text; what a file says is printed, so it must hold no control characters."""
    if not isinstance(value, str) or not value.isprintable():
        raise SlacklineError(f"{value!r} is not a line of text")
    return value


def known_suite(
    name: str,
    spec: Mapping[str, Any] | None,
    where: str | Path,
    spaces: Spaces | None = None,
) -> Suite:
    """The suite that a file speaks of: one of slackline's own, or what the file says of it."""
    if spec is not None:
        return recorded(name, spec, where)
    return recorded_by_name(name, where, spaces) if is_own(name) else builtin(name)


def home_of(subspace: Subspace, file: Path | None = None) -> Suite:
    """The suite a subspace was trained on, as its file says; policies that cannot have been trained
    on that are refused. `file` holds them, if that is another one than what names the suite."""
    if subspace.home is not None:
        return subspace.home
    where, spaces = subspace.where or "FILE", subspace.spaces
    home = known_suite(subspace.suite, subspace.spec, where, spaces)
    if (needs := home.env.spaces) != spaces:
        raise SlacklineError(
            f"{file or where}: its policies see {spaces.observation} and do {spaces.action}; on "
            f"{home.name} they would have to see {needs.observation} and do {needs.action}"
        )
    return home


# Naming again


def words_of(suite: Suite) -> list[str]:
    """The words that name a user's environments: that of the training one first."""
    envs = [suite.env, *(variation.env for variation in suite.variations)]
    return list(dict.fromkeys(word for word in map(_word, envs) if word is not None))


def refusal(where: str | Path, words: Sequence[str | None], given: Sequence[str] = ()) -> NotNamed:
    """The error that says which environments to name again, and how; `given` were named already."""
    names = [_text(word) for word in dict.fromkeys(words) if word is not None]
    why = f"{where}: needs its environment, and slackline never imports what a file names"
    if not names or not all(":" in name for name in names):
        which = f"the object called {', '.join(names)}" if names else "the suite"
        return NotNamed(why, f"sl.load({_quoted(where)}, env=...) with {which} in Python", ())
    quoted = ", ".join(map(_quoted, names))
    call = f"sl.load({_quoted(where)}, env={quoted if len(names) == 1 else f'[{quoted}]'})"
    missing = [name for name in names if name not in given]
    return NotNamed(why, call, [word for name in missing for word in ("--env", name)])


def _file_refusal(where: str | Path, name: str) -> NotNamed:
    why = f"{where}: was trained by an earlier version, which kept no copy of {_text(name)}"
    return NotNamed(why, f"line.adapt(..., suite={_quoted(name)})", ["--suite", name])


def _quoted(value: str | Path) -> str:
    return json.dumps(str(value), ensure_ascii=False)


def difference(kept: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """In words, the first field in which two specs differ; "" if none."""
    for key in {**kept, **now}:
        there, here = kept.get(key), now.get(key)
        if there == here:
            continue
        if isinstance(there, dict) and isinstance(here, dict):
            return difference(there, here) or f"its {key} have changed"
        if isinstance(there, list | dict) or isinstance(here, list | dict):
            return f"its {key} have changed"
        return f"{key} = {there} there, {here} here"
    return ""
