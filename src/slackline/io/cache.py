"""Where things are kept that can be made again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from slackline.errors import SlacklineError


def cache_folder(kind: str) -> Path:
    """The folder of one kind of thing (compiled programs, models); SLACKLINE_CACHE moves them."""
    if ours := os.environ.get("SLACKLINE_CACHE"):
        return Path(ours) / kind
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # as in a container, whose user may have neither a name nor a home
        raise SlacklineError(
            "there is no home folder; SLACKLINE_CACHE names one for what can be made again"
        ) from None
    return Path(base) / "slackline" / kind


def keep(path: Path, content: bytes) -> None:
    """See to it that `path` holds `content`, also when other processes do the same just now."""
    try:
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # In a folder of our own: two writers of one temporary file would rename each other's away.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            temporary.write_bytes(content)
            os.replace(temporary, path)
    except OSError as error:
        raise SlacklineError(
            f"{path.parent}: cannot be written ({error.strerror}); "
            "SLACKLINE_CACHE names another folder for what can be made again"
        ) from None
