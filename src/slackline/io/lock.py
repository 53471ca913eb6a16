"""One writer per folder.

The lock is a file that says who writes there, and the kernel's own lock (flock) on it, which ends
with its owner however that ends. So the file of a killed writer is taken over, unless it is from
another machine: whether a process there still runs cannot be told from here, and the user decides.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from slackline.errors import SlacklineError
from slackline.io.claim import claim, is_still
from slackline.io.files import UNFOLLOWED, insist_on_own_file, insist_on_regular, remove

LOCK = ".slackline-lock"
MAX_LOCK = 4096
"""Bytes that are read of a lock file."""

_held: dict[Path, int] = {}
"""The lock files of this process and their descriptors."""


@dataclass(frozen=True)
class Owner:
    """Who writes in a folder."""

    user: str
    host: str
    pid: int
    started: str
    """When the process began, in the kernel's count, and which boot that counts from: a later
    process with the same pid differs. Empty where the system does not tell."""
    since: str
    """When the lock was taken."""

    @staticmethod
    def me() -> Owner:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container's user may have no name
            user = str(os.getuid())
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Owner(user, socket.gethostname(), os.getpid(), _started(os.getpid()), now)

    @staticmethod
    def read(content: bytes) -> Owner | None:
        """What a lock file says; None if its writer was killed before it said anything."""
        try:
            values = json.loads(content)
            owner = Owner(**{f.name: values[f.name] for f in fields(Owner)})
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        named = all(
            isinstance(x, str) for x in (owner.user, owner.host, owner.started, owner.since)
        )
        return owner if named and isinstance(owner.pid, int) else None

    def is_here(self) -> bool:
        """Whether it ran on this machine."""
        return self.host == socket.gethostname()

    def is_running(self) -> bool:
        """Whether the very process still runs on this machine."""
        return bool(self.started) and _started(self.pid) == self.started

    def __str__(self) -> str:
        text = f"{self.user}@{self.host}, process {self.pid}, since {self.since}"
        return "".join(c if c.isprintable() else "?" for c in text)[:300]


@contextmanager
def locked(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Be the only one who writes in `folder`; `wait` so many seconds for another to end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / LOCK
    deadline = time.monotonic() + wait
    while not _take(path, last_try=time.monotonic() >= deadline):
        time.sleep(0.1)
    try:
        yield
    finally:
        _release(path)


def release_all() -> None:
    """Give back every lock, for a process that is about to end without ending its functions."""
    for path in list(_held):
        _release(path)


def _take(path: Path, *, last_try: bool) -> bool:
    """Take the lock; where another has it, False, or an error if this was the `last_try`."""
    if path in _held:
        return _refuse(path, Owner.me(), last_try=last_try)
    insist_on_own_file(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | UNFOLLOWED, 0o666)
    taken = False
    try:
        insist_on_regular(path, os.fstat(descriptor))
        owner = Owner.read(os.read(descriptor, MAX_LOCK))
        if not claim(descriptor):
            return _refuse(path, owner, last_try=last_try)
        if not is_still(path, descriptor):  # its owner gave it back and removed it meanwhile
            return False
        if not _is_abandoned(path, owner):
            return _refuse(path, owner, last_try=last_try)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Owner.me())).encode(), 0)
        _held[path] = descriptor
        taken = True
    finally:
        if not taken:
            os.close(descriptor)
    return True


def _refuse(path: Path, owner: Owner | None, *, last_try: bool) -> bool:
    if not last_try:
        return False
    who = "another process" if owner is None else str(owner)
    raise SlacklineError(
        f"{path.parent}: is being written by {who}; wait for it, or choose another folder"
    )


def _is_abandoned(path: Path, owner: Owner | None) -> bool:
    """The kernel says that nobody has the lock, but not every disk passes locks on: whether the
    owner it names is gone."""
    if owner is None:
        return True
    if not owner.is_here():
        raise SlacklineError(
            f"{path.parent}: was being written by {owner}, which cannot be seen from here; "
            f"if that process has ended, delete {path}"
        )
    return owner.pid == os.getpid() or not owner.is_running()


def _release(path: Path) -> None:
    descriptor = _held.pop(path, None)
    if descriptor is None:
        return
    try:
        if is_still(path, descriptor):
            remove(path)
    finally:
        os.close(descriptor)


def _started(pid: int) -> str:
    """When a process began; empty if there is none, or the system has no /proc."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    # Behind the name, in brackets, which may hold spaces: the state, and 19 fields on the time.
    fields_behind = line.rpartition(")")[2].split()
    ended = fields_behind[0] in "ZX"  # and its parent has not asked for its exit code yet
    return "" if ended else f"{boot} {fields_behind[19]}"


def _forget() -> None:
    """A forked child writes nothing, and must not keep its dead parent's lock."""
    while _held:
        os.close(_held.popitem()[1])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
