"""Ending on request, within a second, with the exit code that shells expect: 128 + the signal.

Python runs signal handlers between two of its own instructions, and compiling a program is one
instruction that may take minutes. So a thread is notified of each signal, too, and ends the process
if the main thread does not react. That loses nothing: files are replaced by a rename or not at all,
and once a training has a stride that its checkpoint lacks, the first signal is left to it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from slackline.io.lock import release_all
from slackline.io.processes import descendants, end
from slackline.io.signals import stop_signals

ANSWER_SECONDS = 0.6
"""How long the main thread may take to notice a signal."""
END_SECONDS = 10.0
"""How long it may take to end from then on: environments are closed."""
SHOW_CURSOR = "\x1b[?25h"


class Stopped(KeyboardInterrupt):
    """A signal, raised in the main thread."""

    def __init__(self, signum: int):
        super().__init__()
        self.signum = signum


class _State:
    """What the thread that waits for signals needs to know."""

    def __init__(self) -> None:
        self.has_unsaved_work = False
        self.noticed = threading.Event()
        self.ended = threading.Event()


_state = _State()


def unsaved_work(there_is: bool) -> None:
    """Say whether the first signal is to wait until a stride is done and saved."""
    _state.has_unsaved_work = there_is


@contextmanager
def stoppable(farewell: str, at_once: bool = False) -> Iterator[None]:
    """Within, signals to stop raise `Stopped`, or else end the process with `farewell`. With
    `at_once` they end it where there is nothing to save, nor anything of the user's to close."""
    global _state
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _state = state = _State()

    def handle(signum: int, _: Any) -> None:
        state.noticed.set()
        if at_once and not state.has_unsaved_work and not _has_others():
            # What is raised here may be dropped: Python does so in callbacks of its garbage
            # collector, JAX while it traces.
            _leave(signum, farewell)
        raise Stopped(signum)

    handlers = {number: signal.signal(number, handle) for number in stop_signals()}
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    numbers = {int(number) for number in handlers}
    words = (reader, numbers, state, farewell)
    threading.Thread(target=_listen, args=words, name="signals", daemon=True).start()
    try:
        yield
    finally:
        state.ended.set()
        signal.set_wakeup_fd(old)
        os.close(writer)  # which ends the thread
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _has_others() -> bool:
    """Whether code of the user's has run here, or processes were started."""
    host = sys.modules.get("slackline.envs.host")
    return (host is not None and host.Worker.started > 0) or bool(descendants())


def _listen(reader: int, numbers: set[int], state: _State, farewell: str) -> None:
    """Wait for signals; end the process if the main thread does not."""
    heard = 0
    with open(reader, "rb", buffering=0) as pipe:
        while byte := pipe.read(1):
            if byte[0] not in numbers:
                continue
            heard += 1
            if heard == 1 and state.has_unsaved_work:
                continue
            if state.noticed.wait(ANSWER_SECONDS):
                state.ended.wait(END_SECONDS)
            if not state.ended.is_set():
                _leave(byte[0], farewell)


def _leave(signum: int, farewell: str) -> None:
    """End the process from outside of the main thread."""
    with contextlib.suppress(OSError, ValueError):
        cursor = SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""
        os.write(2, f"{cursor}{farewell}\n".encode())
    leave(128 + signum)


def leave(code: int) -> NoReturn:
    """End the process without taking it apart, which takes seconds once JAX has compiled."""
    release_all()
    if (sentinel := sys.modules.get("slackline.envs.sentinel")) is not None:
        sentinel.dismiss_sentinel()
    end_descendants()  # which may hang, and have nothing to save
    os._exit(code)


def end_descendants() -> None:
    """End the processes that this one started, or they did, where the system tells which: users'
    environments may have some, as simulators."""
    for child in multiprocessing.active_children():
        child.kill()
    end(descendants())
