"""Where a benchmark is kept when its workers cannot write there as into a folder of their own: a
folder that several machines share, or the URL of an object store (s3://…, by fsspec).

A worker has a run in a folder of its own and copies its files to the place, each as a whole: at
every checkpoint, and at the end. Nothing there is locked by workers. What a cell computes depends
on its configuration alone, so two that work on the same one, as after a network that was cut, write
the same.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from slackline.errors import SlacklineError, in_one_line, needed
from slackline.io.files import TEMPORARY, read_regular, write_atomic
from slackline.io.lock import LOCK, Owner
from slackline.store.record import RECORD, SUBSPACE

FILES = ("progress.jsonl", "checkpoint.safetensors", SUBSPACE, "scores.parquet", RECORD)
"""What is copied of a run, in this order: a run that says it is finished has the rest, and a
checkpoint finds the log that led to it."""
READ = ("progress.jsonl", "scores.parquet", RECORD)
"""What a report reads."""
LARGEST = 2**32
PROBE = f".slackline-probe{TEMPORARY}"
PROBE_BYTES = 2**20


class Place(Protocol):
    """Files by names like `cartpole-lop/run.json`, each written as a whole."""

    def read(self, name: str) -> bytes | None:
        """A file's content; None if there is none."""
        ...

    def write(self, name: str, content: bytes) -> None: ...

    def remove(self, name: str) -> None: ...

    def runs(self) -> list[str]:
        """The names of the runs there."""
        ...


def is_url(where: str) -> bool:
    return "://" in where


def place_at(where: str) -> Place:
    """The place with this URL or path."""
    if where.startswith("file://"):
        where = where.removeprefix("file://")
    return UrlPlace(where) if is_url(where) else FolderPlace(Path(where))


class FolderPlace:
    """A folder, of this machine or shared."""

    def __init__(self, path: Path):
        self.path = path

    def read(self, name: str) -> bytes | None:
        path = self.path / name
        there = path.exists() or path.is_symlink()
        return read_regular(path, LARGEST) if there else None

    def write(self, name: str, content: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def runs(self) -> list[str]:
        return sorted(file.parent.name for file in self.path.glob(f"*/{RECORD}"))


class UrlPlace:
    """Whatever fsspec can write to; object stores replace an object at once."""

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        fsspec = needed("fsspec", f"{url}: needs fsspec", "remote")
        with told(url, "opened"):
            # Others write there: what was listed a moment ago may not be all there is.
            self.files, self.root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)

    def read(self, name: str) -> bytes | None:
        with told(f"{self.url}/{name}", "read"):
            try:
                return self.files.cat_file(f"{self.root}/{name}")
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        with told(f"{self.url}/{name}", "written"):
            self.files.pipe_file(f"{self.root}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless there is one already: whether it was written."""
        with told(f"{self.url}/{name}", "written"):
            try:
                self.files.pipe_file(f"{self.root}/{name}", content, mode="create")
            except FileExistsError:
                return False
        return True

    def remove(self, name: str) -> None:
        with told(f"{self.url}/{name}", "removed"), contextlib.suppress(FileNotFoundError):
            self.files.rm_file(f"{self.root}/{name}")

    def runs(self) -> list[str]:
        with told(self.url, "read"):
            try:
                found = self.files.glob(f"{self.root}/*/{RECORD}")
            except FileNotFoundError:
                return []
        return sorted(str(name).split("/")[-2] for name in found)


@contextmanager
def told(what: str, done: str) -> Iterator[None]:
    """Turn the errors of any file system into one line."""
    try:
        yield
    except SlacklineError:
        raise
    except Exception as error:  # each file system has its own
        reason = f"{type(error).__name__}: {in_one_line(error)}"
        raise SlacklineError(f"{what}: cannot be {done} ({reason})") from error


def insist_on_writable(place: Place) -> None:
    """Refuse a place that is read-only or full before any time is spent."""
    try:
        place.write(PROBE, bytes(PROBE_BYTES))
        place.remove(PROBE)
    except OSError as error:
        with contextlib.suppress(OSError):
            place.remove(PROBE)
        where = getattr(place, "path", error.filename)
        raise SlacklineError(f"{where}: cannot be written ({error.strerror or error})") from None


@contextmanager
def locked_url(place: UrlPlace) -> Iterator[None]:
    """Be the only benchmark that writes at a URL: a file there says who does."""
    me = json.dumps(asdict(Owner.me())).encode()
    if not place.create(LOCK, me):
        owner = Owner.read(place.read(LOCK) or b"")
        if owner is not None and not (owner.is_here() and not owner.is_running()):
            raise SlacklineError(
                f"{place.url}: is being written by {owner}; wait for it, or if that process has "
                f"ended, delete {place.url}/{LOCK}"
            )
        place.write(LOCK, me)
    try:
        yield
    finally:
        place.remove(LOCK)


def fetch(place: Place, name: str, path: Path, names: tuple[str, ...] = FILES) -> None:
    """Copy what there is of a run into a folder; nothing if it has not begun."""
    record = place.read(f"{name}/{RECORD}")
    if record is None:
        return
    path.mkdir(parents=True, exist_ok=True)
    for file in names:
        content = record if file == RECORD else place.read(f"{name}/{file}")
        if content is not None:
            write_atomic(path / file, content)


def keeper(place: Place, name: str, path: Path) -> Callable[[], None]:
    """A function that copies to the place what has changed in a run's folder since the last time.

    While it is trained, that is whenever there is a new checkpoint.
    """
    kept: dict[str, Any] = {}

    def keep() -> None:
        versions = {file: _version(path / file) for file in FILES}
        if versions["checkpoint.safetensors"] == kept.get("checkpoint.safetensors") and (
            versions[RECORD] == kept.get(RECORD)
        ):
            return
        for file, version in versions.items():
            if version is not None and version != kept.get(file):
                place.write(f"{name}/{file}", read_regular(path / file, LARGEST))
                kept[file] = version

    return keep


def _version(path: Path) -> tuple[int, int] | None:
    """Changes whenever a file is replaced; None if there is none."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size
