"""A grid: suites × methods × options × blocks of seeds, each of which is a cell with a stable name.

A cell's name says its suite, its method and its place on the axes that were asked for, and nothing
about the rest of the grid: `ant-lop-beta0.1-seeds0-4`. What all cells share (steps, preset) is not
in the name but in the cell's run.json, and a cell that would be another run is refused.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from slackline.adapt.kshot import Adapting
from slackline.bench.cells import Cell
from slackline.errors import SlacklineError, require_count, require_number, unknown
from slackline.io.decode import count, decode, number
from slackline.io.files import read_regular
from slackline.methods.catalogue import SENSES, VIGOUR
from slackline.methods.catalogue import method as find_method
from slackline.store.run import RunConfig, folder_name
from slackline.suites.suite import Suite
from slackline.training import configure

MOST_SEEDS = 10_000
SHIPPED = "paper.toml"
"""The paper's grid, which comes with the package."""
RECOMMENDED = "recommended"
"""Stands for the method that a suite recommends."""


@dataclass(frozen=True)
class Product:
    """Suites × methods × options × blocks of seeds, all trained and adapted alike."""

    suites: tuple[str, ...]
    methods: tuple[str, ...] = ("single", RECOMMENDED)
    seeds: int = count(10, high=MOST_SEEDS)
    first_seed: int = count(0, low=0, high=2**32 - 1)
    seeds_per_cell: int | None = None
    """None: all in one cell, which is one compiled program."""
    steps: int | None = None
    preset: str = "paper"
    betas: tuple[float, ...] = ()
    """An axis, for the methods that have a β; the others are trained once."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the methods that have them. A list of values is an axis."""
    shots: tuple[int, ...] = ()
    """Every K to adapt with; none: the suite's."""
    episodes: int | None = None
    score_episodes: int | None = None
    scale: float = number(1.0, above=0.0, high=1.0)
    """Of the budget: steps and episodes are multiplied by it."""

    def cells(self, resolve: Callable[[str], Suite], out: Path) -> Iterator[Cell]:
        """The cells below `out`; `resolve` finds a suite by the name it has here."""
        self._insist_on_axes()
        for word in dict.fromkeys(self.suites):
            suite = resolve(word)
            adaptings = self._adaptings(suite)
            for method in dict.fromkeys(meant(name, suite) for name in self.methods):
                for place in self._places(method):
                    for seeds in self._blocks():
                        config = self._config(suite, method, place, seeds)
                        name = self._name(config, place)
                        yield Cell(suite, config, adaptings, out / name, word)

    def _insist_on_axes(self) -> None:
        if not self.suites or not self.methods:
            raise SlacklineError("name at least one suite and one method")
        if self.seeds_per_cell is not None:
            require_count("seeds_per_cell", self.seeds_per_cell, high=MOST_SEEDS)
        for beta in self.betas:
            require_number("betas", beta, low=0.0)
        either = (SENSES, VIGOUR) if RECOMMENDED in self.methods else ()
        named = [*(name for name in self.methods if name != RECOMMENDED), *either]
        known = {option for method in named for option in find_method(method).options}
        given = self.options if not self.betas else {**self.options, "beta": self.betas}
        for option in given:
            if option not in known:
                raise unknown("option of these methods", option, sorted(known))

    def _adaptings(self, suite: Suite) -> tuple[Adapting, ...]:
        usual = Adapting.of(suite.protocol, None, self.episodes, self.score_episodes)
        less = replace(
            usual,
            episodes=self._scaled(usual.episodes),
            score_episodes=self._scaled(usual.score_episodes),
        )
        return tuple(replace(less, shots=k) for k in dict.fromkeys(self.shots or (usual.shots,)))

    def _places(self, method: str) -> Iterator[dict[str, Any]]:
        """Every combination of the options that are axes, {option: value}."""
        has = find_method(method).options
        axes = {k: v for k, v in self.options.items() if isinstance(v, list | tuple) and k in has}
        if self.betas and "beta" in has:
            axes["beta"] = self.betas
        for values in itertools.product(*(dict.fromkeys(axis) for axis in axes.values())):
            yield dict(zip(axes, values, strict=True))

    def _blocks(self) -> Iterator[tuple[int, ...]]:
        """The seeds of every cell."""
        every = range(self.first_seed, self.first_seed + self.seeds)
        each = self.seeds_per_cell or self.seeds
        return (tuple(every[i : i + each]) for i in range(0, self.seeds, each))

    def _config(
        self, suite: Suite, method: str, place: dict[str, Any], seeds: tuple[int, ...]
    ) -> RunConfig:
        has = find_method(method).options
        fixed = {k: v for k, v in self.options.items() if k in has and k not in place}
        options = fixed | place
        config = configure(
            suite, method, seeds=seeds, steps=self.steps, preset=self.preset, **options
        )
        least = config.hyper.steps_per_iteration
        return replace(config, steps=max(self._scaled(config.steps), least))

    def _scaled(self, budget: int) -> int:
        return max(1, math.ceil(round(budget * self.scale, 6)))

    def _name(self, config: RunConfig, place: dict[str, Any]) -> str:
        words = [folder_name(config.suite, config.method)]
        words += [f"{option}{shown(value)}" for option, value in place.items()]
        if self.seeds_per_cell is not None:
            words.append(f"seeds{config.seeds[0]}-{config.seeds[-1]}")
        return "-".join(words)


def meant(method: str, suite: Suite) -> str:
    """The method that a word stands for on this suite."""
    return suite.recommended if method == RECOMMENDED else method


def shown(value: Any) -> str:
    """A value as part of a folder's name."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def merged(cells: Iterator[Cell]) -> list[Cell]:
    """The cells, each once: one that two products have is adapted as both of them ask."""
    found: dict[str, Cell] = {}
    for cell in cells:
        other = found.setdefault(cell.name, cell)
        if other.config != cell.config:
            raise SlacklineError(
                f"the grid has two cells called {cell.name} "
                f"({other.config.first_difference(cell.config)}); make what differs an axis"
            )
        adaptings = tuple(dict.fromkeys(other.adaptings + cell.adaptings))
        for shots in {how.shots for how in adaptings}:
            if sum(how.shots == shots for how in adaptings) > 1:
                raise SlacklineError(
                    f"the grid adapts {cell.name} twice with K = {shots} and different episodes"
                )
        found[cell.name] = replace(other, adaptings=adaptings)
    return list(found.values())


def is_grid_file(word: str) -> bool:
    """Whether a word names a file with a grid; a suite of the user's may be a .toml file, too."""
    if not word.endswith(".toml"):
        return False
    return _is_shipped(word) or (Path(word).is_file() and "grid" in _parsed(word))


def read_grid(word: str) -> list[Product]:
    """The products of a grid file. It can name slackline's own suites only: nothing that a file
    names is imported."""
    values = _parsed(word)
    odd = set(values) - {"grid", "title"}
    tables = values.get("grid")
    if odd or not isinstance(tables, list) or not tables:
        what = f"unknown field {min(odd)!r}" if odd else "there is no [[grid]] in it"
        raise SlacklineError(f"{word}: is not a grid ({what}; it has title and [[grid]] tables)")
    return [_product(word, number, table) for number, table in enumerate(tables, 1)]


KINDS = {
    "suites": list,
    "methods": list,
    "betas": list,
    "shots": list,
    "options": dict,
    "preset": str,
}
"""Of the fields of a product in a file that do not check themselves."""


def _product(word: str, number: int, table: Any) -> Product:
    if not isinstance(table, dict):
        raise SlacklineError(f"{word}: a product is written [[grid]]")
    try:
        for name, kind in KINDS.items():
            if not isinstance(table.get(name, kind()), kind):
                raise SlacklineError(f"{name} is {table[name]!r}; it must be a {kind.__name__}")
        for name in (*table.get("suites", []), *table.get("methods", [])):
            if not isinstance(name, str):
                raise SlacklineError(f"{name!r} is no name of a suite or method")
        return decode(Product, table, required=("suites",), what="its fields")
    except SlacklineError as error:
        raise SlacklineError(f"{word}: [[grid]] number {number}: {error}") from None


def _is_shipped(word: str) -> bool:
    return word == SHIPPED and not Path(word).exists()


def _parsed(word: str) -> dict[str, Any]:
    try:
        if _is_shipped(word):
            text = files("slackline").joinpath("data", SHIPPED).read_text(encoding="utf-8")
        else:
            text = read_regular(Path(word)).decode()
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SlacklineError(f"{word}: is not a TOML file ({error})") from None
