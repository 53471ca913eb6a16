"""Ask/tell by hand: ask for a z, run an episode anywhere, tell the return; stop whenever you like.

A wrapper around an adapter that checks what it is told and saves its state to a JSON file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slackline.adapt.adapter import LARGEST, MAX_CANDIDATES, Adapter, Choice, State
from slackline.adapt.catalogue import adapter_named
from slackline.adapt.episode import MARGIN, Course, Episode
from slackline.adapt.model import believe
from slackline.errors import SlacklineError, require_count, require_number
from slackline.io.files import as_path, check_format, read_json, write_output
from slackline.methods.latent import as_floats

if TYPE_CHECKING:
    from slackline.subspace import Subspace

FORMAT = "slackline-adapter"
SCHEMA = 1


class AskTell:
    """An adapter for one line. Several episodes may be asked for before one is told (ask, ask,
    tell, tell). The budget is never exceeded.
    """

    def __init__(self, adapter: Adapter, line: Subspace, budget: int):
        require_count("budget", budget, high=MAX_CANDIDATES)
        self.adapter, self.line = adapter, line
        self.state: State = adapter.init(
            line.method.latent.drawn_by(line.seed), budget, line.training
        )
        self.course = Course()
        """How the best whole episode went, of those that were told step by step."""

    def __repr__(self) -> str:
        done = int(self.state.told.sum())
        return f"AskTell({self.adapter!r}: {done} of {self.state.budget} episodes told)"

    @property
    def remaining(self) -> int:
        """How many more episodes may be asked for."""
        return self.state.remaining

    @property
    def out(self) -> np.ndarray:
        """The z's (n, size) of episodes that were asked for and not told yet."""
        return self.state.asked[~self.state.told]

    @property
    def worst(self) -> float | None:
        """The lowest return that was told; None before the first."""
        told = self.state.returns[self.state.told]
        return float(told.min()) if len(told) else None

    @property
    def noise(self) -> float:
        """The estimated standard deviation of one episode's return."""
        return believe(self.state).noise

    @property
    def saved_steps(self) -> int:
        """Steps that were not played, because hopeless episodes were stopped (`episode()`)."""
        return self.course.saved_steps

    def episode(self, margin: float = MARGIN) -> Episode:
        """Ask for the next episode, to be told step by step: `on_step(reward)` says when it has
        become hopeless, `margin` standard deviations of a return behind the best; then `end()`."""
        require_number("margin", margin, above=0.0, high=1e6)
        return Episode(self, self.ask(), margin)

    def ask(self) -> np.ndarray:
        """The z to run the next episode with."""
        return self.ask_many(1)[0]

    def ask_many(self, num: int) -> np.ndarray:
        """The z's (num, size) of the next episodes, to be run at once."""
        require_count("num", num, high=MAX_CANDIDATES)
        if num > self.remaining:
            left = f"{self.remaining} of " if self.remaining else ""
            state = "are left" if self.remaining else "is spent"
            raise SlacklineError(
                f"the budget of {left}{self.state.budget} episodes {state}; call best(), "
                "or make an adapter with a larger budget"
            )
        self.state, z = self.adapter.ask(self.state, num)
        return z.copy()

    def tell(self, z: Any, episode_return: float) -> None:
        """Record the return of an episode that was run with an asked z."""
        require_number("episode_return", episode_return, low=-LARGEST, high=LARGEST)
        asked = self._asked(z)
        if not (~self.state.told & (self.state.asked == asked).all(axis=-1)).any():
            raise SlacklineError(
                f"z = {_show(z)} has no episode to tell: all asked for there have been told"
            )
        self.state = self.adapter.tell(self.state, asked[None], np.array([float(episode_return)]))

    def best(self) -> Choice:
        """The best z so far and how sure that is; the default z while nothing was told."""
        return self.adapter.best(self.state)

    def _asked(self, z: Any) -> np.ndarray:
        """The asked z that equals `z` up to rounding, as after being written as text; one with an
        episode to tell goes first."""
        try:
            given = self.state.latent.parse(z)
        except SlacklineError:
            given = None
        if given is not None and len(self.state.asked):
            far = np.abs(self.state.asked - given).max(axis=-1, initial=0.0)
            nearest = self.state.asked[np.argmin(far + 1e-12 * self.state.told)]
            if np.allclose(nearest, given, atol=1e-6):
                return nearest
        raise SlacklineError(f"z = {_show(z)} was never asked; tell() takes a z that ask() gave")

    def save(self, path: str | Path) -> Path:
        """Write all that was asked and told, for `slackline.load_adapter`."""
        import json

        state = self.state
        values = {
            "format": FORMAT,
            "schema": SCHEMA,
            "line": identity(self.line),
            "adapter": self.adapter.name,
            "options": options_of(self.adapter),
            "budget": state.budget,
            "asked": [[float(x) for x in z] for z in state.asked],
            "returns": [None if np.isnan(x) else float(x) for x in state.returns],
            "course": self.course.to_json(),
        }
        return write_output(as_path(path), json.dumps(values, indent=1, allow_nan=False) + "\n")


def load_adapter(path: str | Path, line: Subspace) -> AskTell:
    """Go on where `adapter.save(path)` stopped, with the line that it was saved for."""
    path = as_path(path)
    values = read_json(path)
    check_format(path, values.get("format"), values.get("schema"), expected=FORMAT, newest=SCHEMA)
    mine, saved = identity(line), values.get("line")
    if saved != mine:
        differs = [k for k in mine if not isinstance(saved, dict) or saved.get(k) != mine[k]]
        raise SlacklineError(
            f"{path}: was saved for another line (its {differs[0]} differs); load the line that "
            "it was made with"
        )
    try:
        adapter = adapter_named(values["adapter"], **values["options"])
        found = AskTell(adapter, line, values["budget"])
        asked = np.array(values["asked"], np.float32).reshape(-1, line.method.latent.size)
        returns = [np.nan if r is None else _checked(r) for r in values["returns"]]
        if len(values["asked"]) != len(returns) or len(returns) > values["budget"]:
            raise ValueError("more returns than asks, or more asks than its budget")
        asked = np.array([line.method.latent.parse(z) for z in asked], np.float32)
        if "course" in values:  # earlier versions did not keep it
            found.course = Course.from_json(values["course"])
    except (KeyError, TypeError, ValueError, OverflowError, SlacklineError) as error:
        raise SlacklineError(f"{path}: has an unusable state ({error})") from None
    size = line.method.latent.size
    found.state = State(
        found.state.latent,
        found.state.budget,
        found.state.prior,
        asked.reshape(len(returns), size),
        np.array(returns, float),
    )
    return found


def _checked(value: Any) -> float:
    require_number("return", value, low=-LARGEST, high=LARGEST)
    return float(value)


def options_of(adapter: Adapter) -> dict[str, Any]:
    """The adapter's settings by name."""
    assert is_dataclass(adapter)
    return {field.name: getattr(adapter, field.name) for field in fields(adapter)}


def identity(line: Subspace) -> dict[str, Any]:
    """What identifies a line: where it was trained, and its weights."""
    digest = hashlib.sha256()
    for array in _arrays(line.policy):
        digest.update(np.ascontiguousarray(array, np.float32).tobytes())
    return {
        "suite": line.suite,
        "method": line.method.name,
        "seed": line.seed,
        "weights": digest.hexdigest()[:32],
    }


def _arrays(network: Any) -> Iterator[np.ndarray]:
    """The arrays of a network, which is tuples (or dataclasses) of them, in their order."""
    if isinstance(network, tuple):
        for part in network:
            yield from _arrays(part)
    elif is_dataclass(network):
        for field in fields(network):
            yield from _arrays(getattr(network, field.name))
    elif not isinstance(network, str | int | float | None):
        yield np.asarray(network)


def _show(z: Any) -> str:
    array = as_floats(z)
    if array is None:
        return repr(z)
    return np.array2string(array, precision=4, separator=", ", threshold=8)
