"""Shared by the verbs that play a trained run: how users name environments of their own."""

from __future__ import annotations

from collections.abc import Sequence

from slackline.errors import SlacklineError
from slackline.settings import assignment
from slackline.store.run import RunFolder
from slackline.suites.suite import Suite, Variation


def suite_to_play(
    run: RunFolder, suite: str | None, env: Sequence[Sequence[str]], to: str | None
) -> Suite:
    """The one that `--suite` names; else that which the run was trained on, with the environments
    that `--env` names."""
    from slackline.adapt.kshot import suite_for
    from slackline.suites.resolve import named_again
    from slackline.suites.resolve import suite as find_suite

    if suite is not None:
        if env:
            raise SlacklineError("--suite and --env exclude each other; a suite names its own")
        return suite_for(run.subspaces()[0], find_suite(suite))
    home, named = run.suite(), [word for words in env for word in words]
    # Another environment is all that will be played.
    return home if to is not None and not named else named_again(home, named, run.path)


def changed_by_hand(suite: Suite, to: str | None, kwargs: Sequence[str]) -> Variation:
    """The environment that `--to` names, or the suite's own, made with what `--kwargs` says."""
    if suite.env.in_jax:
        raise SlacklineError(
            f"{suite.name} runs in JAX and cannot be exchanged for another environment; "
            "--variation names its changes, and from Python line.adapt takes any"
        )
    from slackline.suites.own import another, changed_options
    from slackline.suites.resolve import environment

    options = dict(map(assignment, kwargs))
    if to is not None:
        return another(environment(to, options))
    return changed_options(" ".join(kwargs), options)
