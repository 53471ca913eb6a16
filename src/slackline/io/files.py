"""Atomic writes and suspicious reads.

A file is written under a fresh temporary name, flushed to the disk and renamed, so that a reader
finds the old file or the new one and never half of one. Reading trusts nothing: a file that is
truncated, damaged, foreign, of a newer schema, too large, or no ordinary file of its own (a link, a
pipe, a device, a second name of another file) is refused by name.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slackline.errors import Damaged, SlacklineError, spelt
from slackline.io.checksum import BLANK, is_sealed, is_whole, sealed
from slackline.io.claim import claim, is_still

TEMPORARY = ".partial"
"""Suffix of files being written; leftovers of a killed process are ours to remove."""
CHECKSUM = "checksum"
"""The first field of a JSON object that is sealed."""
MAX_JSON = 64 * 2**20
"""Bytes: no run.json is a thousandth of it."""
UNFOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags to open what may be a link or a pipe: neither is followed or waited for."""


# Writing


def as_path(path: Any, what: str = "path") -> Path:
    """A path from whatever was given, if the system could have a file there."""
    try:
        os.fsencode(path)
    except (TypeError, UnicodeEncodeError):
        raise SlacklineError(f"{what} is {spelt(path)}; it must be the name of a file") from None
    found = Path(os.fsdecode(path))
    if "\0" in str(found):
        raise SlacklineError(f"{what} is {str(found)!r}; it must not hold a zero byte")
    return found


def write_atomic(path: Path, content: bytes, *, previous: Path | None = None) -> None:
    """Replace `path` by `content`, or leave it as it was; `previous` gets what it was."""
    insist_on_own_file(path)
    if previous is not None and path.exists():
        # A copy and no rename, so that readers find `path` at any moment. It is a spare one, and
        # need not have reached the disk.
        _replace(previous, read_regular(path, 2**32), flush=False)
    _replace(path, content, flush=True)


def _replace(path: Path, content: bytes, *, flush: bool) -> None:
    """Write a fresh file and give it the name."""
    insist_on_own_file(path)
    remove(path.with_name(path.name + TEMPORARY))  # how earlier versions called theirs
    temporary, descriptor = _claimed_temporary(path)
    try:
        with _named(path), open(descriptor, "wb") as file:
            file.write(content)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    if flush:
        flush_folder(path.parent)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file it was that the disk had no room for; the system does not."""
    try:
        yield
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def _claimed_temporary(path: Path) -> tuple[Path, int]:
    """A new file beside `path`, open and claimed, so that nobody takes it for a leftover."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | UNFOLLOWED
    while True:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        descriptor = os.open(temporary, flags, 0o666)
        if claim(descriptor) and is_still(temporary, descriptor):
            return temporary, descriptor
        os.close(descriptor)  # somebody who tidies up was quicker


def append(path: Path, content: bytes) -> None:
    """Add to the end of a file, beginning it if need be."""
    insist_on_own_file(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | UNFOLLOWED, 0o666)
    with _named(path), open(descriptor, "ab") as file:
        insist_on_regular(path, os.fstat(descriptor))
        file.write(content)


def remove(path: Path) -> None:
    """Delete a file or link if it is there; what it points to is left alone."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Delete what killed writers left half-written of the file called `name`, or of all; what is
    being written is left alone. Without a name only for the one who may write in the folder."""
    pattern = re.compile(rf"{re.escape(name)}\.[0-9a-f]{{8}}{re.escape(TEMPORARY)}")
    for entry in os.scandir(folder):
        ours = pattern.fullmatch(entry.name) if name else entry.name.endswith(TEMPORARY)
        if ours and not entry.is_dir(follow_symlinks=False):
            _remove_abandoned(Path(entry.path), unknown=not name)


def _remove_abandoned(path: Path, *, unknown: bool) -> None:
    """Delete a temporary file that nobody has claimed; `unknown` if claims cannot be seen."""
    try:
        descriptor = os.open(path, os.O_RDONLY | UNFOLLOWED)
    except FileNotFoundError:
        return
    except OSError:  # a link, or unreadable: none that is being written
        remove(path)
        return
    try:
        if claim(descriptor, unknown=unknown):
            remove(path)
    finally:
        os.close(descriptor)


def flush_folder(path: Path) -> None:
    """Bring a folder's names to the disk, renamed files among them."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_output(path: Path, content: str | bytes) -> Path:
    """Write a file that a user asked for by name, making its folder if need be."""
    if path.is_dir():
        raise SlacklineError(f"{path}: is a folder; the output needs a file name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, path.name)
        write_atomic(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise SlacklineError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def write_json(path: Path, value: dict[str, Any], *, checksum: bool = False) -> None:
    """A JSON object; with a checksum it is not meant to be edited by hand."""
    whole = {CHECKSUM: BLANK, **value} if checksum else value
    content = (json.dumps(whole, indent=2, allow_nan=False) + "\n").encode()
    write_atomic(path, sealed(content) if checksum else content)


# Reading


def read_regular(path: Path, limit: int = MAX_JSON) -> bytes:
    """The content of an ordinary file of at most `limit` bytes."""
    insist_on_regular(path, _status(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | UNFOLLOWED)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOENT):  # exchanged since the line above
            raise SlacklineError(f"{path}: is not an ordinary file any more") from None
        raise SlacklineError(f"{path}: cannot be read ({error.strerror})") from None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        insist_on_regular(path, status)
        if status.st_size > limit:
            raise SlacklineError(
                f"{path}: has {status.st_size:,} bytes; such a file must have at most {limit:,}"
            )
        try:
            return file.read(status.st_size)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "it does not fit into memory"
            raise SlacklineError(f"{path}: cannot be read ({reason})") from None


def insist_on_whole(path: Path, content: bytes, rest: str = "") -> None:
    """Refuse content whose checksum is not its own; `rest` says what still can be used."""
    if not is_whole(content):
        why = "its checksum differs, so some of it was changed"
        raise Damaged(f"{path}: is corrupt ({why}){'; ' if rest else ''}{rest}")


def has_checksum(path: Path) -> bool:
    """Whether damage to a file would be noticed; files of earlier versions have no checksum."""
    return is_sealed(read_regular(path, 2**32))


def read_json(path: Path) -> dict[str, Any]:
    """Parse a JSON object, without its checksum."""
    content = read_regular(path)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:  # also numbers or nesting without end
        raise Damaged(f"{path}: is not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise SlacklineError(f"{path}: holds a JSON {type(value).__name__}, not an object")
    # The name of the field may be what was damaged; what it holds comes first in a file.
    marked = value.pop(CHECKSUM, None) is not None or is_sealed(content[:100])
    if marked and not (is_sealed(content) and is_whole(content)):
        raise Damaged(
            f"{path}: is corrupt (its checksum differs); if you changed it on purpose, remove "
            f'its line "{CHECKSUM}"'
        )
    return value


def check_format(path: Path, found: object, schema: object, *, expected: str, newest: int) -> None:
    """Insist on our own file kind, in a schema this version knows."""
    if found != expected:
        raise SlacklineError(f"{path}: is not a {expected} file (its format is {spelt(found)})")
    if not isinstance(schema, int) or schema < 1:
        raise SlacklineError(f"{path}: has no valid schema number ({spelt(schema)})")
    if schema > newest:
        raise SlacklineError(
            f"{path}: has schema {schema}, newer than {newest}, the newest this slackline reads; "
            "upgrade slackline-rl"
        )


# Ordinary files


def _status(path: Path) -> os.stat_result:
    """Of the file itself, should it be a link."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise SlacklineError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # a name that cannot be one, a folder of others
        raise SlacklineError(f"{path}: cannot be read ({error})") from None


def insist_on_own_file(path: Path) -> None:
    """Refuse to write to what is there already and is no ordinary file."""
    with contextlib.suppress(FileNotFoundError):
        insist_on_regular(path, os.lstat(path))


def insist_on_own_folder(path: Path) -> None:
    """Refuse a link to a folder elsewhere."""
    if path.is_symlink():
        raise SlacklineError(
            f"{path}: is a symbolic link; slackline keeps its files in a folder of their own"
        )


def insist_on_regular(path: Path, status: os.stat_result) -> None:
    """Refuse what is no ordinary file, or is one that has other names, perhaps elsewhere."""
    if stat.S_ISLNK(status.st_mode):
        raise SlacklineError(
            f"{path}: is a symbolic link; slackline reads and writes only ordinary files"
        )
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
        raise SlacklineError(f"{path}: is {kind}, not an ordinary file")
    if status.st_nlink > 1:
        raise SlacklineError(
            f"{path}: has {status.st_nlink} names (hard links), so another file would be read or "
            "written with it; put a copy in its place"
        )
