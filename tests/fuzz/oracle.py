"""What fuzzing has in common: how many examples, odd values, and when an answer is acceptable."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from slackline.errors import SlacklineError

EXAMPLES = int(os.environ.get("SLACKLINE_FUZZ", "0"))
"""Of each test; 0 for a short slice, always the same."""

fuzzed = settings(
    max_examples=EXAMPLES or 25,
    derandomize=not EXAMPLES,
    database=None,
    deadline=10_000,  # milliseconds: nothing hangs
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

WORDS = ("", "cartpole", "lop", "os:system", "../..", "a\nb", "\x1b[2J", "\ud800", "é" * 999)
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
ANYTHING = st.one_of(JSON, ARRAYS, st.binary(max_size=5), st.tuples(ODD, ODD), st.just(object()))
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
