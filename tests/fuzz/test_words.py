"""Every flag of every verb, and suite files, with anything in them: exit code 2 and one line, or
the command does what it says."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import JSON, WORDS, fuzzed, holds

import slackline as sl
from slackline import cli, training, tuning
from slackline.bench import cells
from slackline.cli import bench
from slackline.cli.options import MethodOptions
from slackline.watch import watched

CLASSES: dict[str, Any] = {
    verb: getattr(import_module(f"slackline.cli.{verb}"), name)
    for verb, (name, *_) in cli.VERBS.items()
}


def flags(verb: str) -> set[str]:
    """As they are written, those of hyper-parameters included."""
    own = {field.name for field in fields(CLASSES[verb])} - {"hyper", "methods_options"}
    found = {f"--{name.replace('_', '-')}" for name in own}
    if verb in ("train", "bench"):
        found |= {f"--{field.name}" for field in fields(MethodOptions)}
    if verb == "train":
        found |= {f"--hyper.{field.name.replace('_', '-')}" for field in fields(sl.Hyper)}
    return found


NUMBERS = ("0", "-1", "1", "2", "1e400", "nan", "inf", "-inf", "8M", "1e-9", "9" * 400, "0x10", "½")
NAMES = (
    "LongPole",
    "lop",
    "fan",
    "senses",
    "single",
    "ppo",
    "true",
    "None",
    "=",
    "a=b",
    "beta=0.1",
    "lr=1,2",
)
VALUES = st.sampled_from((*NUMBERS, *NAMES, *WORDS)) | st.text(max_size=6)
FIRST = {
    "train": ("cartpole", "pendulum", "gym:CartPole-v1"),
    "bench": ("cartpole", "pendulum"),
    "tune": ("cartpole",),
    "list": (),
    **dict.fromkeys(("adapt", "watch", "export"), ("run", "pretrained:cartpole")),
}
"""What a verb begins with; the others' runs are not there, so that they have no work."""
COMMANDS = st.sampled_from(sorted(CLASSES)).flatmap(
    lambda verb: st.tuples(
        st.just(verb),
        st.sampled_from(FIRST.get(verb, ("run",)) or ("",)) | VALUES,
        st.lists(
            st.tuples(st.sampled_from(sorted(flags(verb))), st.lists(VALUES, max_size=2)),
            max_size=3,
        ),
    )
)


class Worked(Exception):  # noqa: N818
    """The command got as far as its work."""


@pytest.fixture(autouse=True)
def _only_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a command but its work, whose length is what was asked for."""

    def worked(*_: Any, **__: Any) -> Any:
        raise Worked

    monkeypatch.setattr(training, "run_training", worked)
    monkeypatch.setattr(tuning, "tune", worked)
    for name in ("adapt_run", "perturb_run"):
        monkeypatch.setattr(cells, name, worked)
    monkeypatch.setattr(bench.Bench, "run_cells", worked)
    monkeypatch.setattr(watched, "watch", worked)


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    """They take long to import the first time, which is not the examples' fault."""
    for word in ("gym:CartPole-v1", "envpool:CartPole-v1"):
        sl.suite(word)


def said(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    try:
        code = cli.run(argv)
    except Worked:
        code = 0
    except SystemExit as left:  # --help
        code = int(left.code or 0)
    return code, capsys.readouterr().err


@fuzzed
@given(COMMANDS)
@example(("train", "cartpole", [("--steps", ["9" * 400])]))
@example(("adapt", "pretrained:cartpole", [("--budget", ["1e400"])]))
@example(("export", "pretrained:cartpole", [("--z", ["nan"])]))
def test_any_flag_may_have_any_value(
    capsys: pytest.CaptureFixture[str], command: tuple[str, str, Any]
) -> None:
    verb, first, given_flags = command
    rest = [word for flag, values in given_flags for word in (flag, *values)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, error = said([verb, *([first] if first else []), *rest], capsys)
        assert code in (0, 2), error
        assert "Traceback" not in error
        if code == 2:
            lines = error.rstrip("\n").split("\n")
            assert lines[-1].startswith("error: "), error
            assert sum(each.startswith("error: ") for each in lines) == 1
            assert len(lines) == 1, error
        inside = {path.name for path in Path(folder).iterdir()}
        assert inside <= {"runs"} | {str(path) for path in inside}


TOML_KEYS = ("env", "options", "title", "horizon", "steps", "shots", "episodes", "score_episodes")
HYPER = tuple(field.name for field in fields(sl.Hyper))


def toml(value: Any) -> str:
    """A value as TOML would have it, as far as it can."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return quoted(value)
    return "0" if value is None else str(value)


def quoted(text: str) -> str:
    escaped = "".join(c if c.isalnum() else f"\\U{ord(c):08X}" for c in text)
    return f'"{escaped}"'


ENVS = ("gym:CartPole-v1", "gym:Nowhere-v0", "envpool:Nowhere-v0", "nowhere:make", "os:getcwd", "x")


@fuzzed
@given(
    st.sampled_from(ENVS),
    st.dictionaries(st.sampled_from(TOML_KEYS) | st.text(max_size=4), JSON, max_size=3),
    st.dictionaries(st.sampled_from(HYPER), JSON, max_size=2),
    st.lists(st.dictionaries(st.sampled_from(["name", "env", "options"]), JSON), max_size=2),
    st.binary(max_size=6),
    st.integers(0, 300),
)
@example("gym:CartPole-v1", {"steps": 10**400}, {}, [], b"", 0)
@example("gym:CartPole-v1", {}, {}, [{"name": "x", "options": {"a": float("nan")}}], b"", 0)
def test_suite_files_may_say_anything(
    env: str,
    top: dict[str, Any],
    hyper: dict[str, Any],
    variations: Any,
    junk: bytes,
    at: int,
) -> None:
    lines = [f"{quoted(key)} = {toml(value)}" for key, value in {"env": env, **top}.items()]
    lines += ["[hyper]", *(f"{key} = {toml(value)}" for key, value in hyper.items())]
    for variation in variations:
        lines += ["[[variation]]", *(f"{key} = {toml(v)}" for key, v in variation.items())]
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "suite.toml"
        path.write_bytes(text[:at] + junk + text[at:] if junk else text)
        found: Any = []
        if holds(lambda: found.append(sl.suite(str(path)))):
            assert all(map(is_dataclass, found))
            holds(lambda: training.configure(found[0]))
