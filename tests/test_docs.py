"""What README.md and the documents it leads to show runs as it is printed.

Trainings are shortened by SLACKLINE_STEPS. Robots and pictures take minutes to compile: without
`--all` their commands are only parsed.
"""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from commands import told
from documents import blocks

import slackline as sl
from slackline.store.pretrained import pretrained

ROOT = Path(__file__).parents[1]
README, COMMANDS, SUITES, SCALE = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/commands.md", "docs/suites.md", "docs/scale.md")
)
DOCUMENTS = {
    "README.md": README,
    "docs/commands.md": COMMANDS,
    "docs/suites.md": SUITES,
    "docs/scale.md": SCALE,
}
STEPS = "20000"


def commands(text: str) -> list[list[str]]:
    """Every `slackline …` of the document: in blocks, and as the first cell of a table's row."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    lines += re.findall(r"^\| `(slackline .*?)` \|", text, flags=re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("slackline")]


@pytest.fixture(autouse=True)
def _short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLACKLINE_STEPS", STEPS)
    shutil.copytree(ROOT / "examples", "examples")


def test_the_readme_is_two_screens() -> None:
    assert len(README.splitlines()) <= 120


def test_the_readmes_python_does_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(README, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 13
    exec(code, {})
    before, after, verdict = capsys.readouterr().out.splitlines()
    claimed = [int(word) for word in re.findall(r": (\d+) of 200", code)]
    assert [float(before), float(after)] == pytest.approx(claimed, abs=3)
    assert verdict.endswith("helped")


def test_what_the_readme_says_of_ten_seeds_is_in_the_index() -> None:
    text, numbers = " ".join(README.split()), "no one two three four five six seven eight nine ten"
    word = numbers.split()
    cart, pendulum = pretrained()["cartpole"], pretrained()["pendulum"]
    assert f"one of {word[cart.seeds]} seeds" in text
    assert f"helped {word[cart.helped]} of the {word[cart.seeds]} and hurt none" in text
    assert cart.hurt == 0
    assert f"{cart.default:.0f} of 200 without, {cart.adapted:.0f} with" in text
    assert f"helped {word[pendulum.helped]} of {word[pendulum.seeds]} seeds as well" in text
    assert f"−{-pendulum.default:.0f} without, −{-pendulum.adapted:.0f} with" in text
    assert pendulum.hurt == 0


def test_the_readmes_change_of_ones_own() -> None:
    (call,) = re.findall(r"`(line\.adapt\(lambda .*?\))`", README)
    line = sl.load("pretrained:cartpole")
    assert eval(call, {"line": line}).variation == "Custom"


def test_the_readmes_commands(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    found = commands(README)
    assert [words[0] for words in found] == ["list", "watch", "adapt"]
    said = [told(capsys, *words) for words in found]
    assert all(f"pretrained:{name}" in said[0] for name in pretrained())
    assert said[1].count("best │") == 2  # two of five hold the pole
    assert said[2].count(" helped") == 2
    assert Path("watch-LongPole.gif").exists()
    assert Path("watch-LongPole.png").exists()


def test_the_commands_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("onnx")
    found = commands(COMMANDS)
    assert {words[0] for words in found} == set(importlib.import_module("slackline.cli").VERBS)
    for words in found:
        if words[0] == "tune":  # a grid of trainings with budgets of its own
            parsed(words)
        else:
            told(capsys, *words)
    for name in ("run.json", "watch-LongPole.gif", "watch-LongPole.png", "policy.onnx"):
        assert Path("runs/line", name).exists()
    assert Path("runs/bench/report.html").exists()
    assert Path("summary.json").exists()


def parsed(words: list[str]) -> None:
    importlib.import_module(f"slackline.cli.{words[0]}").parse(words[1:])


@pytest.mark.parametrize("words", [*commands(SUITES), *commands(SCALE)], ids=" ".join)
def test_commands_of_suites_and_scale_parse(words: list[str]) -> None:
    parsed(words)


@pytest.mark.slow
def test_the_suites_document(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("brax")
    pytest.importorskip("minigrid")
    pytest.importorskip("matplotlib")
    for words in commands(SUITES):
        if "fruitbot" not in words:  # Procgen wants OpenGL, and the command a million steps
            told(capsys, *words)
    for code in blocks(SUITES, "python"):
        exec(code, {})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_pictures_are_there(document: str) -> None:
    folder = (ROOT / document).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", DOCUMENTS[document]):
        assert (folder / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_installed_and_made_exists(document: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for extras in re.findall(r"\.\[([a-z,]+)\]", DOCUMENTS[document]):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for target in re.findall(r"^make (\w+)", DOCUMENTS[document], flags=re.MULTILINE):
        assert f"\n{target}: " in makefile


def test_a_budget_that_is_no_number_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKLINE_STEPS", "few")
    with pytest.raises(sl.SlacklineError, match="SLACKLINE_STEPS is 'few'; it must be a whole"):
        sl.train("cartpole")
