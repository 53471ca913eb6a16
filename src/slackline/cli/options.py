"""What the verbs share: option types, parsing, and setting JAX up for the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from slackline.errors import SlacklineError, require_count

T = TypeVar("T")


def _count(words: list[str]) -> int:
    """Whole numbers as people write them: 8000000, 8_000_000, 8e6, 8M, 500k."""
    text = words[0].replace("_", "").replace(",", "")
    scale = {"k": 1e3, "m": 1e6, "g": 1e9}.get(text[-1:].lower(), 1.0)
    value = float(text[:-1] if scale > 1 else text) * scale
    if value != int(value):
        raise ValueError(f"{words[0]} is not a whole number")
    return int(value)


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=_count,
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [f"{value:_}"],
    ),
]
"""A whole number; 8e6, 8M and 8_000_000 are the same."""


def parse_as(verb: str, kind: type[T], argv: list[str], default: Any = None) -> T:
    """Parse a verb's options into its dataclass."""
    return tyro.cli(
        kind,
        prog=f"slackline {verb}",
        args=argv,
        default=default,
        config=(tyro.conf.HelptextFromCommentsOff, tyro.conf.FlagConversionOff)
        if False
        else (tyro.conf.HelptextFromCommentsOff,),
    )


def default_devices() -> int:
    """As many CPU devices as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_up_jax(devices: int | None) -> None:
    """One CPU device a core, and a compilation cache that outlives the process."""
    import jax

    available = default_devices()
    if devices is not None:
        require_count("devices", devices, high=available)
    jax.config.update("jax_num_cpu_devices", devices or available)
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def cache_folder() -> Path:
    """Where compiled programs are kept; SLACKLINE_CACHE moves it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SLACKLINE_CACHE") or Path(base) / "slackline" / "xla")


def first_word(argv: list[str]) -> str | None:
    """The first argument if it is not an option."""
    return argv[0] if argv and not argv[0].startswith("-") else None


def unusable(path: Path, why: str) -> SlacklineError:
    return SlacklineError(f"{path}: {why}")
