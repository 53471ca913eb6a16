"""Where benchmarks are kept: folders and URLs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from slackline.errors import SlacklineError
from slackline.io.lock import LOCK, Owner
from slackline.store.places import (
    FILES,
    PROBE,
    FolderPlace,
    Place,
    UrlPlace,
    fetch,
    insist_on_writable,
    keeper,
    locked_url,
    place_at,
)

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        yield place_at(f"file://{tmp_path}/there")
        return
    yield place_at(f"memory://bench-{tmp_path.name}")
    fsspec.filesystem("memory").store.clear()


def run_in(path: Path) -> Path:
    path.mkdir()
    for number, name in enumerate(FILES):
        (path / name).write_bytes(bytes([number]) * 3)
    return path


def test_what_is_kept_comes_back(place: Place, tmp_path: Path) -> None:
    assert place.runs() == []
    assert place.read("cell/run.json") is None
    keeper(place, "cell", run_in(tmp_path / "cell"))()
    assert place.runs() == ["cell"]
    fetch(place, "cell", tmp_path / "back")
    for name in FILES:
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "cell" / name).read_bytes()
    insist_on_writable(place)
    assert place.read(PROBE) is None
    place.remove("cell/run.json")
    assert place.runs() == []
    fetch(place, "cell", tmp_path / "none")
    assert not (tmp_path / "none").exists(), "a run without a run.json has not begun"


def test_only_checkpoints_and_ends_are_worth_copying(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(place, "write", lambda name, _: written.append(name))
    path = run_in(tmp_path / "cell")
    keep = keeper(place, "cell", path)
    keep()
    assert written == [f"cell/{name}" for name in FILES], "run.json last"
    (path / "progress.jsonl").write_bytes(b"more")
    keep()
    assert len(written) == len(FILES)
    (path / "checkpoint.safetensors").write_bytes(b"another")
    keep()
    assert written[len(FILES) :] == ["cell/progress.jsonl", "cell/checkpoint.safetensors"]


def test_one_benchmark_at_a_url(tmp_path: Path) -> None:
    place = place_at("memory://locked")
    assert isinstance(place, UrlPlace)
    with (
        locked_url(place),
        pytest.raises(SlacklineError, match=r"being written by .*process \d+"),
        locked_url(place),
    ):
        pass
    assert place.read(LOCK) is None
    elsewhere = replace(Owner.me(), host="elsewhere")
    place.write(LOCK, json.dumps(asdict(elsewhere)).encode())
    with pytest.raises(SlacklineError, match="if that process has ended, delete memory://locked"):
        locked_url(place).__enter__()
    dead = replace(Owner.me(), pid=2**22 + 1, started="long ago")
    place.write(LOCK, json.dumps(asdict(dead)).encode())
    with locked_url(place):
        assert Owner.read(place.read(LOCK) or b"") != dead


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SlacklineError, match="cannot be written"):
        insist_on_writable(FolderPlace(tmp_path / "file"))
    with pytest.raises(SlacklineError, match="nosuch://there: cannot be opened"):
        place_at("nosuch://there")
