"""What suites of the user's own are made of: hyper-parameters by the kind of spaces, variations by
other options or another environment. Their names are resolved in resolve/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from slackline.envs.api import Continuous
from slackline.envs.host import HostEnv, HostParams
from slackline.errors import SlacklineError
from slackline.learn.hyper import Hyper
from slackline.suites.suite import Protocol, Suite, Variation

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
"""PPO's usual settings for vectors of observations and discrete actions."""

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
"""Procgen's usual settings for IMPALA's network, with fewer epochs."""

PROTOCOL = Protocol(steps=1_000_000, shots=10, episodes=2, score_episodes=20)
HORIZON = 1000
"""Time limit of an environment that has none of its own."""


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
    """Default hyper-parameters by the kind of observation and of action."""
    continuous = isinstance(env.action, Continuous)
    if env.picture is None:
        return CONTINUOUS if continuous else DISCRETE
    height, width, _ = env.picture
    even = height % 2 == width % 2 == 0
    return replace(PIXELS, entropy=0.0 if continuous else PIXELS.entropy, patch=2 if even else 1)


def changed_options(name: str, options: Mapping[str, Any]) -> Variation:
    """The same environment, made with other options."""
    words = ", ".join(f"{key} = {value}" for key, value in options.items())

    def apply(params: HostParams) -> HostParams:
        return params._replace(options={**params.options, **options})

    return Variation(name, words, apply, options=options)


def another(env: HostEnv, name: str | None = None) -> Variation:
    """Another environment with the same spaces."""
    return Variation(name or env.name, env.name, lambda _: env, env=env)


def insist_on_names(variations: list[str]) -> None:
    """Refuse variations that scores could not tell apart."""
    for name in variations:
        if not name.strip():
            raise SlacklineError(f"a variation is called {name!r}; it needs a name")
        if variations.count(name) > 1 or name == "Train":
            raise SlacklineError(f"the name {name!r} is taken by another variation")
