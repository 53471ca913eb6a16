"""How a command treats the user's own code that runs in it: what that prints goes to stderr, and
its threads cannot keep the command from ending."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

END_SECONDS = 5.0
"""Seconds for which the user's threads and exit handlers may delay the end of a command."""


def prepare(hint: str) -> None:
    """Send what the user's code prints to stderr, and start the watchdog that reports if that code
    crashes the command; `hint` says how to go on then."""
    from slackline.envs.host import Worker, time_out
    from slackline.envs.sentinel import want_sentinel

    Worker.prints_to_stderr = True
    with contextlib.suppress(OSError, ValueError, AttributeError):
        _keep_stdout()
    want_sentinel(time_out(), hint)


def _keep_stdout() -> None:
    """Reserve stdout for the command: C code and processes of the user's write to stderr."""
    if sys.stdout is not sys.__stdout__ or sys.stdout.fileno() != 1:
        return
    os.fstat(2)
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = open(  # noqa: SIM115 (open to the end)
        own, "w", encoding=sys.stdout.encoding, errors="backslashreplace", buffering=1
    )


def ran() -> bool:
    """Whether any of the user's code ran."""
    host = sys.modules.get("slackline.envs.host")
    return host is not None and host.Worker.started > 0


def end_soon(code: int) -> None:
    """End the process in a few seconds, if threads of the user's keep it from ending itself."""
    from slackline.cli.signals import leave

    def wait() -> None:
        time.sleep(END_SECONDS)
        leave(code)

    threading.Thread(target=wait, name="end", daemon=True).start()
