"""The kernel's lock on an open file (flock), which ends with the process that has it, however that
ends: so it tells a file that is being written from one that a killed process left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where lines can be loaded but not trained
    fcntl = None

NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


def claim(descriptor: int, *, unknown: bool = True) -> bool:
    """Whether nobody else has claimed an open file, and now this process has; `unknown` on systems
    and disks that know no locks."""
    if fcntl is None:
        return unknown
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return unknown
    return True


def is_still(path: Path, descriptor: int) -> bool:
    """Whether the name still stands for the file that was opened."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
