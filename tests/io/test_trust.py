"""Links, pipes and damage are refused; one writer has a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from slackline.errors import Damaged, SlacklineError
from slackline.io import files
from slackline.io.checksum import BLANK, is_sealed, is_whole, sealed
from slackline.io.lock import LOCK, Owner, locked
from slackline.io.tensors import read_tensors, write_tensors
from slackline.store.run import SNAPSHOTS, RunFolder

# Files


def link(path: Path, other: Path) -> None:
    path.symlink_to(other)


def dangling(path: Path, other: Path) -> None:
    path.symlink_to(other.with_name("nowhere"))


def second_name(path: Path, other: Path) -> None:
    path.hardlink_to(other)


def pipe(path: Path, other: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, other: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("plant", [link, dangling, second_name, pipe, folder])
def test_what_is_no_ordinary_file_is_neither_read_nor_written(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    other = tmp_path / "elsewhere" / "precious"
    other.parent.mkdir()
    other.write_text("{}")
    path = tmp_path / "run.json"
    plant(path, other)
    attempts = [
        lambda: files.read_regular(path),
        lambda: files.read_json(path),
        lambda: read_tensors(path),
        lambda: files.write_atomic(path, b"harm"),
        lambda: files.append(path, b"harm"),
    ]
    for attempt in attempts:
        with pytest.raises(SlacklineError, match=r"run\.json: (is|has)") as refusal:
            attempt()
        assert "\n" not in str(refusal.value)
    assert other.read_text() == "{}"
    assert [p.name for p in other.parent.iterdir()] == ["precious"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "run.json"]


def test_a_device_is_refused() -> None:
    for attempt in (files.read_regular, lambda path: files.append(path, b"x")):
        with pytest.raises(SlacklineError, match="is a pipe, socket or device"):
            attempt(Path(os.devnull))


def test_a_planted_folder_is_neither_read_nor_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "000000000001.safetensors").write_text("theirs")
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    (run.path / SNAPSHOTS).symlink_to(tmp_path / "elsewhere")
    for attempt in (run.snapshots, lambda: run.snapshot_file(2)):
        with pytest.raises(SlacklineError, match="snapshots: is a symbolic link"):
            attempt()


def test_a_planted_temporary_file_is_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "report.html.partial").symlink_to(precious)
    files.write_output(tmp_path / "report.html", "page")
    assert precious.read_text() == "mine"
    assert (tmp_path / "report.html").read_text() == "page"
    assert not (tmp_path / "report.html.partial").is_symlink()


def test_a_temporary_file_is_fresh_even_if_its_name_were_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    (tmp_path / "a.guessed.partial").symlink_to(tmp_path / "precious")
    with pytest.raises(FileExistsError):
        files.write_atomic(tmp_path / "a", b"harm")
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "run.json", "wb") as file:
        file.truncate(10**12)  # a sparse file: it takes no room
    with pytest.raises(SlacklineError, match="1,000,000,000,000 bytes; such a file must have at"):
        files.read_json(tmp_path / "run.json")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    files.write_atomic(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SlacklineError, match="cannot be written"):
        files.write_output(path, b"new")
    with pytest.raises(OSError, match=r"No space left on device: '.*/a'"):
        files.write_atomic(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"old"


def test_the_old_file_can_be_kept_and_is_there_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, previous = tmp_path / "a", tmp_path / "b"
    files.write_atomic(path, b"0", previous=previous)
    real = os.replace

    def watched(*names: Path) -> None:
        assert path.exists()
        real(*names)
        assert path.exists()

    monkeypatch.setattr(os, "replace", watched)
    for content in (b"1", b"2", b"3"):
        files.write_atomic(path, content, previous=previous)
    assert (previous.read_bytes(), path.read_bytes()) == (b"2", b"3")


def test_what_a_killed_writer_left_is_removed_and_what_is_being_written_is_not(
    tmp_path: Path,
) -> None:
    left, others = tmp_path / "a.0123abcd.partial", tmp_path / "b.0123abcd.partial"
    for file in (left, others):
        file.write_text("half")
    temporary, descriptor = files._claimed_temporary(tmp_path / "a")
    files.write_output(tmp_path / "a", "page")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", temporary.name, others.name]
    files.remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", temporary.name]
    os.close(descriptor)
    files.remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_leftovers_that_are_no_files_are_removed_and_not_followed(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "precious").write_text("mine")
    planted = tmp_path / "a.0123abcd.partial"
    planted.symlink_to(tmp_path / "precious") if kind == "link" else os.mkfifo(planted)
    files.remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]
    assert (tmp_path / "precious").read_text() == "mine"


def test_messages_hold_nothing_that_a_terminal_would_obey() -> None:
    said = str(SlacklineError("no suite \x1b]0;x\x07\x1b[2J\u202eevil\udc80, 10\xa0s"))
    assert said == r"no suite \x1b]0;x\x07\x1b[2J\u202eevil\udc80, 10" + "\xa0s"


# Checksums


def test_a_seal_covers_every_byte() -> None:
    content = sealed(f'{{"checksum": "{BLANK}", "x": 1}}'.encode())
    assert is_sealed(content)
    assert is_whole(content)
    start = content.index(b"slackline-checksum-")
    for i in range(len(content)):
        flipped = bytearray(content)
        flipped[i] ^= 1
        # A mark that is none any more covers nothing; readers of JSON and tensors notice it.
        in_name = start <= i < start + len("slackline-checksum-")
        assert is_whole(bytes(flipped)) == in_name or not is_sealed(bytes(flipped))


def test_content_that_looks_like_a_mark_does_no_harm() -> None:
    content = sealed(f"{BLANK} and {BLANK[:-1]}1".encode())
    assert is_whole(content)
    assert is_whole(sealed(f"{BLANK[:-1]}1 and {BLANK}".encode(), last=True))


def flip(path: Path, at: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(bytes(content))


def test_any_flipped_bit_of_a_tensor_file_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    values = {"w": np.arange(4, dtype=np.float32), "n": np.arange(2)}
    write_tensors(path, values, {"format": "x", "seeds": [1, 2]})
    content = path.read_bytes()
    noticed = 0
    for at in range(len(content)):
        path.write_bytes(content)
        flip(path, at, at % 8)
        try:
            tensors, header = read_tensors(path)
        except SlacklineError:
            noticed += 1
            continue
        assert header == {"format": "x", "seeds": [1, 2]}
        assert {n: a.tolist() for n, a in tensors.items()} == {
            n: a.tolist() for n, a in values.items()
        }
    assert noticed >= len(content) - 10


def test_json_with_a_checksum_notices_a_change_and_says_how_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    files.write_json(path, {"x": 1}, checksum=True)
    assert files.read_json(path) == {"x": 1}
    assert files.has_checksum(path)
    path.write_text(path.read_text().replace('"x": 1', '"x": 2'))
    with pytest.raises(Damaged, match='remove its line "checksum"'):
        files.read_json(path)
    lines = [line for line in path.read_text().split("\n") if "checksum" not in line]
    path.write_text("\n".join(lines))
    assert files.read_json(path) == {"x": 2}
    assert not files.has_checksum(path)


# Locks

HOLD = """
import sys, time
from pathlib import Path
from slackline.io.lock import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock, killed in the end."""
    words = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        who = f"is being written by .*, process {other.pid}, since"
        with pytest.raises(SlacklineError, match=who):
            locked(tmp_path).__enter__()
        assert LOCK in os.listdir(tmp_path)
    assert LOCK in os.listdir(tmp_path), "a killed process leaves its file"
    with locked(tmp_path):
        owner = Owner.read((tmp_path / LOCK).read_bytes())
        assert owner is not None
        assert owner.pid == os.getpid()
        with pytest.raises(SlacklineError, match="is being written by"):
            locked(tmp_path).__enter__()
    assert os.listdir(tmp_path) == []


def test_a_writer_can_wait_for_another(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        threading.Timer(0.3, other.kill).start()
        with locked(tmp_path, wait=30.0):
            pass


def test_a_lock_is_given_back_by_any_end(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), locked(tmp_path):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_lock_of_another_machine_is_for_the_user_to_remove(tmp_path: Path) -> None:
    elsewhere = replace(Owner.me(), host="another-machine")
    (tmp_path / LOCK).write_text(json.dumps(asdict(elsewhere)))
    with pytest.raises(SlacklineError, match=f"another-machine, .* delete .*{LOCK}"):
        locked(tmp_path).__enter__()
    (tmp_path / LOCK).unlink()
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("running", [False, True])
def test_where_a_disk_knows_no_locks_the_process_is_looked_for(
    tmp_path: Path, running: bool
) -> None:
    """A later process with the same pid is another one: it began at another time."""
    parent = replace(Owner.me(), pid=os.getppid())
    stat = Path(f"/proc/{os.getppid()}/stat")
    if not stat.exists():
        pytest.skip("the system has no /proc")
    boot = parent.started.split()[0]
    began = stat.read_text().rpartition(")")[2].split()[19]
    parent = replace(parent, started=f"{boot} {began if running else int(began) + 1}")
    (tmp_path / LOCK).write_text(json.dumps(asdict(parent)))
    if running:
        with pytest.raises(SlacklineError, match="is being written by"):
            locked(tmp_path).__enter__()
        return
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"user": 1}', "[" * 4000])
def test_a_lock_that_says_nothing_is_taken_over(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    with locked(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(SlacklineError, match="symbolic link"):
        locked(tmp_path).__enter__()
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    code = f"""
import os, sys, time
from pathlib import Path
from slackline.io.lock import locked
locked(Path({str(tmp_path)!r})).__enter__()
if os.fork() == 0:
    time.sleep(5)
    os._exit(0)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    with locked(tmp_path):
        pass
