"""A benchmark in a store that speaks S3: moto's server, where it is installed (pip install s3fs
'moto[server]')."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import refused, told

from slackline.errors import SlacklineError
from slackline.io.lock import LOCK
from slackline.store.places import UrlPlace, insist_on_writable, locked_url

pytestmark = pytest.mark.filterwarnings("ignore")  # of others' packages
s3fs = pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"bucket-{secrets.token_hex(4)}"  # the servers of one process share their buckets
    s3fs.S3FileSystem().mkdir(name)
    yield f"s3://{name}/bench"
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_place_in_a_bucket(bucket: str) -> None:
    place = UrlPlace(bucket)
    assert place.runs() == []
    assert place.read("cell/run.json") is None
    place.write("cell/run.json", b"{}")
    assert (place.read("cell/run.json"), place.runs()) == (b"{}", ["cell"])
    insist_on_writable(place)
    with (
        locked_url(place),
        pytest.raises(SlacklineError, match="is being written by"),
        locked_url(UrlPlace(bucket)),
    ):
        pass
    assert place.read(LOCK) is None
    with pytest.raises(SlacklineError, match=r"s3://nowhere/bench/.*: cannot be written"):
        insist_on_writable(UrlPlace("s3://nowhere/bench"))


def test_a_benchmark_in_a_bucket(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By worker processes, which have files of their own and share nothing but the store."""
    tiny = ("--seeds", "1", "--shots", "2", "--episodes", "1", "--score-episodes", "2")
    words = ("bench", "cartpole", "--methods", "single", *tiny, "--steps", "1k")
    said = told(capsys, *words, "--out", bucket)
    assert f"kept in {bucket}/cartpole-single" in said
    assert UrlPlace(bucket).runs() == ["cartpole-single"]
    assert (UrlPlace(bucket).read("report.html") or b"").startswith(b"<!doctype html>")
    problem = refused(capsys, *words[:-1], "2k", "--out", bucket)
    assert "steps is 1000 there, 2000 here" in problem
