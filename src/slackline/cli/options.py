"""What the verbs share: types of options, and options that are read before the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any

import tyro

from slackline.errors import SlacklineError
from slackline.methods.latent import SPREADS
from slackline.settings import assignment


def count(words: list[str]) -> int:
    """Whole numbers as people write them: 8000000, 8_000_000, 8e6, 8M, 500k."""
    text = words[0].replace("_", "").replace(",", "")
    scale = {"k": 1e3, "m": 1e6, "g": 1e9}.get(text[-1:].lower(), 1.0)
    try:
        value = float(text[:-1] if scale > 1.0 else text) * scale
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError("not a whole number (5000000, 5e6, 5M and 5_000_000 are the same)")


def one_of(*choices: str) -> Callable[[list[str]], str]:
    def parse(words: list[str]) -> str:
        if words[0] not in choices:
            raise ValueError(f"{words[0]!r} is not one of {', '.join(choices)}")
        return words[0]

    return parse


def number(words: list[str]) -> float:
    try:
        return float(words[0])
    except ValueError:
        raise ValueError(f"{words[0]!r} is not a number") from None


def optional(parse: Callable[[list[str]], Any], metavar: str, missing: str) -> Any:
    """An option that may be left out; `missing` says in the help what happens then."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=parse,
        is_instance=lambda _: True,
        str_from_instance=lambda value: [missing if value is None else str(value)],
    )


def several(parse: Callable[[list[str]], Any], metavar: str) -> Any:
    """An option with any number of values."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar=metavar,
        instance_from_str=lambda words: tuple(parse([word]) for word in words),
        is_instance=lambda _: True,
        str_from_instance=lambda values: list(map(str, values)),
    )


Count = Annotated[int | None, optional(count, "INT", "protocol")]
"""A whole number; 8e6, 8M and 8_000_000 are the same. None stands for the suite's protocol."""
Counts = Annotated[tuple[int, ...], several(count, "INT...")]
Numbers = Annotated[tuple[float, ...], several(number, "FLOAT...")]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""Off unless it is given, without a --no- of its own. Hyper-parameters have one: a preset may have
switched them on."""
Devices = Annotated[int | None, optional(count, "INT", "cores")]
Integer = Annotated[int | None, optional(count, "INT", "method")]
Number = Annotated[float | None, optional(number, "FLOAT", "method")]
Spread = Annotated[str | None, optional(one_of(*SPREADS), "KIND", "method")]
Penalty = Annotated[str | None, optional(one_of("tensor", "vector"), "KIND", "method")]


@dataclass
class MethodOptions:
    """The settings of the methods; each applies to the methods that have it."""

    beta: Number = None
    """Weight of the method's auxiliary term."""
    penalty: Penalty = None
    """lop, cop, bop: anchors compared tensor by tensor (tensor) or as whole vectors (vector)."""
    anchors: Integer = None
    """senses, fan, cop, bop: how many anchors span the subspace."""
    spread: Spread = None
    """senses, cop, and fan with more anchors: candidates drawn from the flat Dirichlet law
    (dirichlet), spread evenly (even), or the centre, anchors and midpoints first (corners)."""
    skills: Integer = None
    """diayn_r: how many skills are learned, and so how many adaptation can try."""
    members: Integer = None
    """ensemble: how many independent policies are trained."""
    option: tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]] = ()
    """Any other options of a method, NAME=VALUE."""

    def given(self) -> dict[str, Any]:
        """The options that were given."""
        named = {f.name: getattr(self, f.name) for f in fields(MethodOptions) if f.name != "option"}
        named |= dict(assignment(word) for words in self.option for word in words)
        return {name: value for name, value in named.items() if value is not None}


def take(option: str, argv: list[str]) -> tuple[str | None, list[str]]:
    """(the value of `option`, the arguments without it); `--option=X` is understood too."""
    words = [part for word in argv for part in _split(option, word)]
    if option not in words:
        return None, argv
    at = words.index(option)
    if at + 1 == len(words) or words[at + 1].startswith("--"):
        raise SlacklineError(f"{option} needs a value after it")
    return words[at + 1], words[:at] + words[at + 2 :]


def _split(option: str, word: str) -> list[str]:
    return word.split("=", 1) if word.startswith(f"{option}=") else [word]


def first_word(argv: list[str]) -> str | None:
    """The first argument if it is not an option."""
    return argv[0] if argv and not argv[0].startswith("-") else None
