"""What fuzzing has in common: how many examples, odd values, and when an answer is acceptable."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from slackline.errors import SlacklineError
from slackline.io.cache import cache_folder

EXAMPLES = int(os.environ.get("SLACKLINE_FUZZ", "0"))
"""Of each test; 0 for a short slice, always the same."""

fuzzed = settings(
    max_examples=EXAMPLES or 25,
    derandomize=not EXAMPLES,
    database=None,
    deadline=10_000,  # milliseconds: nothing hangs
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

NEVER_IMPORTED = "a_strangers_module"
"""What only files name: reading them must not try to import it."""
HOSTILE = (f"{NEVER_IMPORTED}:make", f"gym:{NEVER_IMPORTED}:X-v0", "os:system", "../..")
WORDS = (*HOSTILE, "", "cartpole", "lop", "a\nb", "\x1b[2J", "\ud800", "é" * 999)
HUGE = (10**400, -(10**18), 2**63, 2**31, 1e308, 1e-320)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(HUGE),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(WORDS),
)
JSON = st.recursive(
    ODD, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3)
)
ARRAYS = st.sampled_from(
    [
        np.zeros(0),
        np.zeros((1, 0)),
        np.full(4, np.nan),
        np.full(4, np.inf, np.float32),
        np.full(4, 1e300),
        np.zeros((2, 2, 2, 2)),
        np.zeros(4, np.complex64),
        np.array(["a", "b"]),
        np.array([None, object()], object),
        np.zeros(4, bool),
        np.zeros((3, 4), np.int8),
        np.zeros(4, "datetime64[s]"),
    ]
)


def nested(levels: int) -> list[Any]:
    """A list in a list in a list …"""
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


DEEP = nested(5000)
"""Deeper than Python calls functions."""
LONG = 10**5000
"""A number with more digits than Python writes."""


class Shy:
    """An object of the user's that cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


ANYTHING = st.one_of(
    JSON,
    ARRAYS,
    st.binary(max_size=5),
    st.tuples(ODD, ODD),
    st.sampled_from([object(), DEEP, LONG, Shy()]),
)
"""What somebody may hand to a function."""


def holds(attempt: Callable[[], Any]) -> bool:
    """Whether it succeeds; refusing is one line, and anything else fails the test."""
    try:
        attempt()
    except OSError as error:  # of writing: as Python's own functions say it
        if error.errno is None:
            raise
        return False
    except SlacklineError as error:
        if "\n" in str(error) or not str(error):
            raise AssertionError(f"not one line: {error!r}") from error
        return False
    return True


STARTED = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect"}
WRITTEN = {"os.remove": 0, "os.rename": 1, "os.mkdir": 0, "os.link": 1, "os.symlink": 1}
"""Events of files that are changed, and which of their arguments says where."""
_harm: list[str] | None = None
"""What was done that must not be, while somebody watches."""


@contextmanager
def harmless() -> Iterator[None]:
    """Insist that what is read starts no process, connects to nothing, imports nothing that a file
    names, and writes only in temporary folders and the cache."""
    global _harm
    _harm = []
    try:
        yield
        assert _harm == []
    finally:
        _harm = None


def _notice(event: str, arguments: tuple[Any, ...]) -> None:
    """Python calls this of everything that it does to the system."""
    if _harm is not None and (event in STARTED or _writes_elsewhere(event, arguments)):
        _harm.append(f"{event}: {arguments!r:.200}")


def _writes_elsewhere(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        return _is_written(arguments) and not _is_ours(arguments[0])
    return event in WRITTEN and not _is_ours(arguments[WRITTEN[event]])


def _is_written(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & writes)


def _is_ours(path: Any) -> bool:
    if isinstance(path, int):
        return True  # open already
    allowed = (Path(tempfile.gettempdir()), cache_folder(""), Path(os.devnull))
    found = Path(os.path.abspath(os.fsdecode(path)))
    compiled = found.parent.name == "__pycache__"  # by imports of what we have ourselves
    return compiled or any(found.is_relative_to(folder) for folder in allowed)


class _Imports:
    """Is asked for every module that is looked for, and finds none."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if _harm is not None and name.startswith(NEVER_IMPORTED):
            _harm.append(f"import: {name}")


sys.addaudithook(_notice)
sys.meta_path.insert(0, _Imports())  # type: ignore[arg-type]
