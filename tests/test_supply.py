"""Every package of every extra is pinned, and the list of them is made from the pins."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def supply() -> ModuleType:
    file = Path(__file__).parents[1] / "tools" / "supply.py"
    spec = importlib.util.spec_from_file_location("supply", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_extra_is_pinned_with_all_that_it_needs(supply: ModuleType) -> None:
    assert [problem for problem in supply.problems() if "is not in constraints" in problem] == []
    assert {"brax", "envpool", "export", "figures", "minigrid"} <= set(supply.asked_for())


def test_what_is_not_pinned_is_found(
    supply: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = supply.CONSTRAINTS.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("onnx==", "numpy=="))]
    (tmp_path / "constraints.txt").write_text("\n".join([*kept, "numpy==1.0"]))
    monkeypatch.setattr(supply, "CONSTRAINTS", tmp_path / "constraints.txt")
    problems = list(supply.problems())
    assert "export: onnx is not in constraints.txt" in problems
    assert "base: numpy>=2.0 does not allow the pinned 1.0" in problems
    assert any(p.startswith("numpy: is installed as 2.") for p in problems)


def test_every_pin_has_hashes(supply: ModuleType) -> None:
    assert list(supply.unlocked()) == []


def test_what_has_no_hash_is_found(
    supply: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = supply.LOCK.read_text().replace("numpy==", "numpy==9.").replace("jax==", "jox==")
    (tmp_path / "lock").write_text(lines + "onnx==1.0 \\\n    --hash=md5:123\n")
    monkeypatch.setattr(supply, "LOCK", tmp_path / "lock")
    problems = "\n".join(supply.unlocked())
    assert "numpy: requirements.lock has 9." in problems
    assert "jax: requirements.lock has nothing, constraints.txt " in problems
    assert "jox: requirements.lock has " in problems
    assert "onnx: requirements.lock has 1.0, constraints.txt " in problems


def test_hashes_are_of_the_pinned_versions_wheels(supply: ModuleType) -> None:
    links = {"a_b-1.0-py3-none-any.whl": "1", "a_b-1.0.tar.gz": "2", "a_b-2.0.tar.gz": "3"}
    page = "".join(f'<a href="https://x/{n}#sha256={d * 64}">{n}</a>' for n, d in links.items())
    page += '<a href="https://x/odd#sha256=' + "4" * 64 + '">odd</a>'
    assert supply.files_of(page, "1.0") == ["--hash=sha256:" + "1" * 64]
    assert supply.files_of(page, "2.0") == ["--hash=sha256:" + "3" * 64]
    assert supply.files_of(page, "3.0") == []


def test_a_changed_file_is_found(supply: ModuleType, tmp_path: Path) -> None:
    from importlib.metadata import PathDistribution

    info = tmp_path / "thing-1.dist-info"
    info.mkdir()
    (tmp_path / "thing.py").write_text("x = 1\n")
    (info / "METADATA").write_text("Name: thing\nVersion: 1\n")
    (info / "RECORD").write_text(
        "thing.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"  # of an empty file
    )
    (found,) = supply.changed_files(PathDistribution(info))
    assert found == "thing: thing.py is missing or was changed"
    (tmp_path / "thing.py").write_text("")
    assert list(supply.changed_files(PathDistribution(info))) == []


def test_the_list_names_every_pin_once_and_is_always_the_same(supply: ModuleType) -> None:
    bill = supply.bill()
    names = {part["name"]: part["version"] for part in bill["components"]}
    assert names == supply.pinned()
    assert bill == supply.bill()
