"""Which processes were started by which, where the system tells (/proc)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from typing import NamedTuple

HELPERS = (b"from multiprocessing.resource_tracker", b"from multiprocessing.forkserver")
"""What Python's own are called with."""


class Process(NamedTuple):
    """One process: another one that later gets the same number has another beginning."""

    pid: int
    began: str


def descendants(pid: int | None = None) -> set[Process]:
    """Those that a process (this one) started, or they did; empty where there is no /proc."""
    children: dict[int, list[Process]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            if found := _status(int(name)):
                parent, process = found
                children.setdefault(parent, []).append(process)
    found, todo = set(), [os.getpid() if pid is None else pid]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo += [process.pid for process in new]
    return found


def end(processes: Iterable[Process]) -> None:
    """End those that still run, but not Python's own helpers, which tidy up behind the others."""
    for process in processes:
        status = _status(process.pid)
        if status is not None and status[1] == process and not _is_helper(process.pid):
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)


def _status(pid: int) -> tuple[int, Process] | None:
    """(its parent, the process), if there is one."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # Behind the name, in brackets, which may hold spaces.
            fields = file.read().rpartition(")")[2].split()
        return int(fields[1]), Process(pid, fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _is_helper(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read()
        return any(name in command for name in HELPERS)
    except OSError:
        return False
