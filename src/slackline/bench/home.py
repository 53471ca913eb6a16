"""Where a benchmark is kept: a folder, or a URL with a copy here of what is read of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from slackline.bench.cells import bench_folder
from slackline.io.cache import cache_folder
from slackline.store.places import (
    READ,
    FolderPlace,
    UrlPlace,
    fetch,
    insist_on_writable,
    is_url,
    locked_url,
)


@dataclass(frozen=True)
class Home:
    """Where a benchmark is kept."""

    out: str
    """As workers are told: a URL, or a path that does not depend on the folder they run in."""
    folder: Path
    """Where this process reads it."""
    remote: UrlPlace | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only benchmark that writes there; refuses what is read-only or full."""
        if self.remote is not None:
            with locked_url(self.remote):
                insist_on_writable(self.remote)
                yield
            return
        with bench_folder(self.folder):
            insist_on_writable(FolderPlace(self.folder))
            yield

    def refresh(self, name: str) -> None:
        """See what workers have kept of a run."""
        if self.remote is not None:
            fetch(self.remote, name, self.folder / name, READ)

    def keep(self, file: Path) -> str:
        """Bring a file that was written here where the benchmark is; how it is called there."""
        if self.remote is None:
            return str(file)
        self.remote.write(file.name, file.read_bytes())
        return self.called(file.name)

    def called(self, name: str) -> str:
        """The path or URL of something in it."""
        return str(self.folder / name) if self.remote is None else f"{self.remote.url}/{name}"

    @property
    def logs(self) -> Path:
        """Where processes of this machine write what went wrong."""
        if self.remote is None:
            return self.folder / "logs"
        return cache_folder("logs") / re.sub(r"[^A-Za-z0-9._-]+", "-", self.remote.url)


@contextmanager
def home_at(out: str) -> Iterator[Home]:
    """The home of a benchmark at a path or URL, and for the latter a copy of what is there."""
    out = out.removeprefix("file://")
    if not is_url(out):
        yield Home(str(Path(out).absolute()), Path(out))
        return
    with TemporaryDirectory(prefix="slackline-") as folder:
        home = Home(out, Path(folder), UrlPlace(out))
        for name in home.remote.runs() if home.remote else []:
            home.refresh(name)
        yield home
