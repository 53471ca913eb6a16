"""Suites that were read from a file, with the environments that the user names now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slackline.envs.gymnasium import gymnasium
from slackline.envs.host import HostEnv, RecordedEnv
from slackline.errors import SlacklineError
from slackline.suites.own import another
from slackline.suites.recorded import difference, refusal, spec_of, words_of
from slackline.suites.resolve.words import environment, parsed
from slackline.suites.suite import Suite, insist_on_spaces


def named_again(suite: Suite, given: Sequence[Any], where: str | Path) -> Suite:
    """A suite that was read from a file, with the environments that the user names now.

    `given` holds words, environments, functions that make one, or the whole suite as an object.
    Every environment that the file speaks of must be among them, and nothing else.
    """
    if not isinstance(suite.env, RecordedEnv):
        if given:
            raise SlacklineError(
                f"{where}: was trained on {suite.name}, a suite of slackline's own, and needs no "
                "environment named; another one to adapt to is given with --to"
            )
        return suite
    for each in given:
        if isinstance(each, Suite):
            return _same_suite(suite, each, where)
    words = words_of(suite)
    if not words or not given:
        raise suite.env.refusal
    by_word = _matched(words, given, where)
    missing = [word for word in words if word not in by_word]
    if missing:
        raise refusal(where, words, [*by_word])
    made = {word: _made(word, each) for word, each in by_word.items()}
    for word, env in made.items():
        insist_on_spaces(word, env.spaces, suite.name, suite.env.spaces)
    variations = [
        replace(another(made[v.env.word], v.name), description=v.description)
        if isinstance(v.env, RecordedEnv) and v.env.word
        else v
        for v in suite.variations
    ]
    home = made[suite.env.word] if suite.env.word else suite.env
    return replace(suite, env=home, variations=tuple(variations))


def _matched(words: Sequence[str], given: Sequence[Any], where: str | Path) -> dict[str, Any]:
    """By the file's words, what was given for each; one that is not in the file is an error."""
    found = {}
    for each in given:
        each = each if isinstance(each, str | HostEnv) else gymnasium(each)
        name = each if isinstance(each, str) else each.name
        match = next((word for word in words if _same_word(word, name)), None)
        if match is None:
            raise SlacklineError(
                f"{where}: was trained on {' and '.join(words)}, not on {name}; another one to "
                "adapt to is given with --to, or in Python to line.adapt"
            )
        found[match] = each
    return found


def _same_word(one: str, other: str) -> bool:
    """Options may be written in another order or way: `gravity=-5` is `gravity=-5.0`."""
    try:
        return one == other or parsed(one) == parsed(other)
    except SlacklineError:
        return False


def _made(word: str, given: str | HostEnv) -> HostEnv:
    """The environment that the user named, under the name it has in the file."""
    if isinstance(given, HostEnv):
        return given
    made: Any = environment(given)
    return made if made.name == word else replace(made, name=word)


def _same_suite(suite: Suite, given: Suite, where: str | Path) -> Suite:
    kept, now = spec_of(suite), spec_of(given)
    if suite.name == given.name and kept is not None and now is not None:
        different = difference(kept, now)
        if not different:
            return given
        raise SlacklineError(f"{where}: was trained on another {given.name} ({different})")
    raise SlacklineError(f"{where}: was trained on {suite.name}, not on {given.name}")
