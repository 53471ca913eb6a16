"""A checksum inside of the file that it covers.

A file of any format holds, somewhere in its header, a mark: `slackline-checksum-` and 32 digits,
the BLAKE2b digest of the whole file with zeros in their place. One rename thus brings both, and
there is no second file that could be older or newer than the first. It finds damage, not fraud:
whoever changes a file on purpose can also write a new mark.
"""

from __future__ import annotations

import hashlib
import re

MARK = "slackline-checksum-"
DIGITS = 32
BLANK = MARK + "0" * DIGITS
"""What a file is made with, for `sealed` to fill in."""

_PATTERN = re.compile(rb"slackline-checksum-[0-9a-f]{32}")


def sealed(content: bytes, *, last: bool = False) -> bytes:
    """`content` with its first (or `last`) blank mark filled in."""
    blank = BLANK.encode()
    start = content.rfind(blank) if last else content.find(blank)
    if start < 0:
        raise ValueError("the content has no blank mark")
    return content[:start] + _mark(content, start) + content[start + len(blank) :]


def is_sealed(content: bytes) -> bool:
    """Whether there is a mark at all; files of earlier versions have none."""
    return _PATTERN.search(content) is not None


def is_whole(content: bytes) -> bool:
    """Whether `content` is what was sealed. Also true where there is no mark.

    The text of a user may look like a mark, but never the first or the last one of a file.
    """
    first = _PATTERN.search(content)
    if first is None:
        return True
    starts = {first.start(), content.rfind(MARK.encode())}
    return any(content.startswith(_mark(content, start), start) for start in starts)


def _mark(content: bytes, start: int) -> bytes:
    """The mark that belongs at `start`."""
    digest = hashlib.blake2b(digest_size=DIGITS // 2)
    view = memoryview(content)
    digest.update(view[:start])
    digest.update(BLANK.encode())
    digest.update(view[start + len(BLANK) :])
    return f"{MARK}{digest.hexdigest()}".encode()
