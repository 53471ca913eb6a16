"""A watchdog: a small process beside a command, which reports what happened when an environment
ends the whole command: by a crash in C, by `os._exit`, or by never releasing the GIL.

This file is also what that process runs, so it needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

ROOM = 1024
"""Bytes for the name of the call that the command is in."""
GLANCE = 1.0
GRACE = 15.0
"""Most seconds beyond the environment's own, for a machine that is busy."""
GOODBYE = b"q"
STARTED_BY = "SLACKLINE_STARTED_BY"
"""The variable by which processes that a command started are known when it is gone: then they
are nobody's children any more."""
HELPER = b"from multiprocessing.resource_tracker"
"""What Python starts to tidy up behind a process that died; it ends by itself. (As in
`io/processes.py`, which this file, run by itself, cannot import.)"""


class Sentinel:
    """Watches over this process while users' code works in it."""

    def __init__(self, timeout: float, hint: str):
        """`timeout`: seconds that the interpreter may be held; `hint`: how to go on."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 (both processes keep it open)
        file.truncate(ROOM)
        self._board = mmap.mmap(file.fileno(), ROOM)
        reader, self._writer = os.pipe()
        held = timeout + min(GRACE, 2.0 * timeout)
        token = secrets.token_hex(8)
        words = map(str, (os.getpid(), reader, file.fileno(), held, hint, token))
        self._process: Any = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, *words],
            stdin=subprocess.DEVNULL,
            pass_fds=(reader, file.fileno()),
            start_new_session=True,  # or Ctrl-C would end it first
        )
        os.close(reader)
        file.close()
        os.environ[STARTED_BY] = token  # for those that are started from now on
        threading.Thread(target=self._beat, name="slackline heartbeat", daemon=True).start()

    def note(self, what: bytes) -> None:
        """Which call into the user's code is running; b"" if none is."""
        self._board[: len(what) + 1] = what + b"\0"

    def dismiss(self) -> None:
        """Stop watching: this process ends as planned."""
        with contextlib.suppress(OSError):
            os.write(self._writer, GOODBYE)

    def _beat(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                os.write(self._writer, b".")
                time.sleep(GLANCE)


_current: Sentinel | None = None
_wanted: tuple[float, str] | None = None


def want_sentinel(timeout: float, hint: str) -> None:
    """Start a watchdog with the first environment."""
    global _wanted
    _wanted = timeout, hint


def sentinel() -> Sentinel | None:
    """The watchdog of this process, if a command wants one."""
    global _current
    if _current is None and _wanted is not None:
        with contextlib.suppress(OSError):  # without it everything else still works
            _current = Sentinel(*_wanted)
    return _current


def dismiss_sentinel() -> None:
    if _current is not None:
        _current.dismiss()


def main(pid: int, reader: int, board: int, seconds: float, hint: str, token: str) -> None:
    """Wait until the process `pid` ends as planned, dies, or does not release the GIL for too
    long."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    at, missed = mmap.mmap(board, ROOM), 0.0
    while True:
        ready, _, _ = select.select([reader], [], [], GLANCE)
        heard = os.read(reader, 4096) if ready else b""
        if GOODBYE in heard:
            return
        if os.getppid() != pid or (ready and not heard):
            died(at, hint)
            end_started(token)
            return
        missed = 0.0 if heard or stopped(pid) else missed + GLANCE
        if missed > seconds and (where := said(at)):
            tell(f"{where} holds the whole program for longer than {seconds:g} s; it was ended")
            os.kill(pid, signal.SIGKILL)
            end_started(token)
            return


def died(at: mmap.mmap, hint: str) -> None:
    if where := said(at):
        tell(
            f"{where} ended the whole program: its code or a library that it uses crashed, or "
            f"somebody killed it (out of memory?){hint}"
        )


def end_started(token: str) -> None:
    """End what the command, which is dead, had started: simulators, say."""
    for name in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:
                is_ours = f"{STARTED_BY}={token}".encode() in file.read().split(b"\0")
            with open(f"/proc/{name}/cmdline", "rb") as file:
                is_ours = is_ours and HELPER not in file.read()
            if is_ours:
                os.kill(int(name), signal.SIGKILL)


def said(at: mmap.mmap) -> str:
    """Which call the process was in."""
    return at[:].partition(b"\0")[0].decode(errors="replace")


def tell(message: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"error: {message}\n".encode())


def stopped(pid: int) -> bool:
    """Whether it is suspended (Ctrl-Z), which is no failure."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False


if __name__ == "__main__":
    pid, reader, board = map(int, sys.argv[1:4])
    main(pid, reader, board, float(sys.argv[4]), sys.argv[5], sys.argv[6])
