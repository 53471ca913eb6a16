"""A suite: the environment to train on, the variations to adapt to, and the paper's protocol."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from slackline.envs.api import Env, Params, Spaces
from slackline.envs.host import HostEnv
from slackline.errors import SlacklineError, require_name
from slackline.io.decode import count
from slackline.learn.hyper import Hyper
from slackline.methods.catalogue import recommended


@dataclass(frozen=True)
class Variation:
    """A changed environment: a name, what changed in words, and how the parameters change."""

    name: str
    description: str
    apply: Callable[[Params], Params]
    options: Mapping[str, Any] | None = None
    """The options that it makes an environment outside JAX with, where that is all it does."""
    env: HostEnv | None = None
    """The environment that it is, where that is another one altogether."""

    @property
    def label(self) -> int:
        """A number for its episodes' keys, which depends on the name alone: not on what else is
        evaluated in the same call."""
        return zlib.crc32(self.name.encode())


TRAIN = Variation("Train", "the training environment itself", lambda params: params)


def setting(name: str, **changes: float) -> Variation:
    """A variation that sets fields of a NamedTuple of parameters."""
    words = ", ".join(f"{field.replace('_', ' ')} = {value:g}" for field, value in changes.items())
    return Variation(name, words, lambda params: params._replace(**changes))


MOST = 10**12


@dataclass(frozen=True)
class Protocol:
    """How much to train and how to adapt."""

    steps: int = count(high=MOST)
    """Environment steps per seed."""
    shots: int = count(10, high=MOST)
    """K: how many values of z are tried."""
    episodes: int = count(10, high=MOST)
    """Selection episodes for each of them."""
    score_episodes: int = count(100, high=MOST)
    """Fresh episodes for the final score of the chosen one."""


@dataclass(frozen=True, eq=False)
class TrainTask:
    """What tuning may use: the training environment without the variations."""

    name: str
    env: Env | HostEnv
    horizon: int
    hyper: Hyper
    steps: int


@dataclass(frozen=True, eq=False)
class Suite:
    """One family of the paper."""

    name: str
    title: str
    env: Env | HostEnv
    horizon: int
    """Episodes are cut (truncated, not terminated) after this many steps."""
    variations: tuple[Variation, ...]
    hyper: Hyper
    """The paper's hyper-parameters, where it has them."""
    protocol: Protocol
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The paper's options of methods, by name, where they are not the catalogue's defaults."""
    exceptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Where the paper's hyper-parameters of a method, by name, are not `hyper`."""
    presets: dict[str, Hyper] = field(default_factory=dict)
    """Other hyper-parameters worth trying, by name; for all methods."""
    display_scale: float = 1.0
    """Returns are multiplied by this where they are shown; never in training or in the store."""
    digits: int | None = None
    """Decimals of returns where they are shown. None: by their size, see `stats.decimals`."""
    note: str = ""
    """A remark that is printed below the suite's tables."""
    block: int = 4096
    """Episodes stepped together when policies are evaluated: enough for the vector units, few
    enough for the cache."""
    extras: tuple[Variation, ...] = ()
    """Further variations, found by name but not part of tables and averages."""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    """The least and the greatest return that an episode can have, as far as they are known."""

    @property
    def jax_env(self) -> Env:
        """The environment, if it can be traced; an error otherwise."""
        return self.env.for_jax(self.name)

    @property
    def recommended(self) -> str:
        """The method to train where none is named."""
        return recommended(self.env.spaces.action, self.env.spaces.picture)

    @property
    def train_task(self) -> TrainTask:
        """The suite without its variations, for tuning."""
        return TrainTask(self.name, self.env, self.horizon, self.hyper, self.protocol.steps)

    def num_blocks(self, episodes: int) -> int:
        """In how many blocks to run that many episodes: one, or a number for every device."""
        blocks, devices = -(-episodes // self.block), jax.local_device_count()
        return blocks if blocks == 1 else -(-blocks // devices) * devices

    def params_of(self, variations: Sequence[Variation]) -> Params:
        """The parameters of several variations as one pytree, stacked along a leading axis V."""
        own = self._by_name()

        def changed(variation: Variation) -> Params:
            if own.get(variation.name) is variation:
                return _params_of_own(self, variation.name)
            return _params_of(self, variation)  # a user's object may change: never cached

        return jax.tree.map(lambda *leaves: np.stack(leaves), *map(changed, variations))

    def preset(self, name: str, method: str) -> Hyper:
        """A method's hyper-parameters by name; "paper" are the suite's own."""
        paper = replace(self.hyper, **self.exceptions.get(method, {}))
        presets = {"paper": paper, **self.presets}
        require_name(f"preset of {self.name}", name, presets)
        return presets[name]

    def variation(self, name: str) -> Variation:
        """Look a variation up by name; "Train" is the training environment."""
        by_name = self._by_name()
        require_name(f"variation of {self.name}", name, by_name)
        return by_name[name]

    def _by_name(self) -> dict[str, Variation]:
        return {v.name: v for v in (*self.variations, *self.extras, TRAIN)}


def insist_on_spaces(name: str, spaces: Spaces, trained_on: str, home: Spaces) -> None:
    """Refuse an environment that the policies trained on another one cannot act in."""
    for what, has, needs in zip(("observation shape", "action"), spaces, home, strict=True):
        if has != needs:
            raise SlacklineError(
                f"{name}: its {what} is {has}, and the policies were trained on "
                f"{trained_on} with {needs}"
            )


@lru_cache(maxsize=256)
def _params_of_own(suite: Suite, name: str) -> Params:
    """Parameters of the suite's own variations, cached: a robot's take a while to make."""
    return _params_of(suite, suite.variation(name))


def _params_of(suite: Suite, variation: Variation) -> Params:
    """As NumPy arrays, of the types that JAX would give them."""
    params = variation.apply(suite.env.default_params())
    return jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), params)
