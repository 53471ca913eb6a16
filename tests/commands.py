"""Commands as a user gives them, and what they say."""

from __future__ import annotations

import pytest

from slackline import cli


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints that succeeds."""
    assert cli.run(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says when it exits with 2; always one line and never a traceback."""
    capsys.readouterr()
    assert cli.run(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err.strip()
