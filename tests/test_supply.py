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
