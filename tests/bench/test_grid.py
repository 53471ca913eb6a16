"""Grids: which cells there are, how they are called, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackline.bench.cells import insist_on_room
from slackline.bench.grid import Product, is_grid_file, merged, read_grid
from slackline.errors import SlacklineError
from slackline.store.run import RunFolder
from slackline.suites import builtin

OUT = Path("out")


def cells_of(**axes: object) -> dict:
    product = Product(**{"suites": ("cartpole",), **axes})  # type: ignore[arg-type]
    return {cell.name: cell for cell in merged(product.cells(builtin, OUT))}


def test_what_is_no_axis_is_not_in_a_name() -> None:
    found = cells_of(methods=("single", "lop"), steps=10_000, options={"beta": 0.1})
    assert list(found) == ["cartpole-single", "cartpole-lop"]
    assert found["cartpole-lop"].config.options["beta"] == 0.1
    assert found["cartpole-lop"].config.steps == 10_000


def test_betas_are_an_axis_of_the_methods_that_have_one() -> None:
    found = cells_of(methods=("single", "lop"), betas=(0.1, 1.0))
    assert list(found) == ["cartpole-single", "cartpole-lop-beta0.1", "cartpole-lop-beta1"]
    assert found["cartpole-lop-beta1"].config.options["beta"] == 1.0
    assert list(cells_of(methods=("lop",), betas=(1.0,))) == ["cartpole-lop-beta1"], (
        "a cell's name depends on nothing but the cell"
    )


def test_a_list_of_an_option_is_an_axis_too() -> None:
    found = cells_of(methods=("diayn_r",), options={"skills": [5, 10]}, betas=(0.1,))
    assert list(found) == ["cartpole-diayn_r-skills5-beta0.1", "cartpole-diayn_r-skills10-beta0.1"]


def test_blocks_of_seeds_hold_every_seed_once() -> None:
    found = cells_of(methods=("lop",), seeds=5, first_seed=100, seeds_per_cell=2)
    assert list(found) == [
        "cartpole-lop-seeds100-101",
        "cartpole-lop-seeds102-103",
        "cartpole-lop-seeds104-104",
    ]
    seeds = [seed for cell in found.values() for seed in cell.config.seeds]
    assert seeds == [100, 101, 102, 103, 104]


def test_every_k_is_an_adaptation_of_the_same_cell() -> None:
    (cell,) = cells_of(methods=("lop",), shots=(5, 20)).values()
    assert [how.shots for how in cell.adaptings] == [5, 20]
    assert {(how.episodes, how.score_episodes) for how in cell.adaptings} == {(10, 100)}


def test_scale_is_of_steps_and_episodes() -> None:
    (cell,) = cells_of(methods=("lop",), scale=0.01).values()
    assert cell.config.steps == 80_000
    assert [(how.shots, how.episodes, how.score_episodes) for how in cell.adaptings] == [(10, 1, 1)]
    (least,) = cells_of(methods=("lop",), scale=1e-9).values()
    assert least.config.steps == least.config.hyper.steps_per_iteration


def test_two_products_share_a_cell_and_adapt_it_as_both_ask() -> None:
    one = Product(("cartpole",), ("lop",), shots=(5,))
    other = Product(("cartpole",), ("lop",), shots=(10, 5))
    (cell,) = merged(c for p in (one, other) for c in p.cells(builtin, OUT))
    assert [how.shots for how in cell.adaptings] == [5, 10]
    longer = Product(("cartpole",), ("lop",), steps=10**7)
    with pytest.raises(SlacklineError, match=r"two cells called cartpole-lop \(steps is"):
        merged(c for p in (one, longer) for c in p.cells(builtin, OUT))


@pytest.mark.parametrize(
    ("axes", "problem"),
    [
        ({"methods": ("single",), "betas": (1.0,)}, "unknown option of these methods 'beta'"),
        ({"betas": (-1.0,)}, "betas is -1; it must be"),
        ({"seeds_per_cell": 0}, "seeds_per_cell is 0"),
        ({"shots": (5, 0)}, "shots is 0"),
        ({"suites": ()}, "at least one suite"),
    ],
)
def test_axes_that_make_no_sense(axes: dict[str, object], problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        cells_of(**axes)


def test_seeds_that_are_divided_otherwise_are_not_trained_again(tmp_path: Path) -> None:
    first = Product(("cartpole",), ("lop",), seeds=4, seeds_per_cell=2)
    for cell in first.cells(builtin, tmp_path):
        RunFolder(cell.path).create(cell.config)
        RunFolder(cell.path).append_progress({"iteration": 1, "steps": 1, "return": []})
    insist_on_room(list(first.cells(builtin, tmp_path)), tmp_path)
    whole = Product(("cartpole",), ("lop",), seeds=4)
    with pytest.raises(SlacklineError, match="has seed 0 already, and cartpole-lop would"):
        insist_on_room(list(whole.cells(builtin, tmp_path)), tmp_path)
    others = Product(("cartpole",), ("lop",), seeds=4, first_seed=4)
    insist_on_room(list(others.cells(builtin, tmp_path)), tmp_path)
    longer = Product(("cartpole",), ("lop",), seeds=4, seeds_per_cell=2, steps=10_000)
    with pytest.raises(SlacklineError, match="steps is 8000000 there, 10000 here"):
        insist_on_room(list(longer.cells(builtin, tmp_path)), tmp_path)


# Files


def test_the_papers_grid_has_all_of_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("brax")
    pytest.importorskip("envpool")
    pytest.importorskip("minigrid")
    assert is_grid_file("paper.toml")
    found = merged(c for p in read_grid("paper.toml") for c in p.cells(builtin, OUT))
    names = {cell.name for cell in found}
    for family in ("cartpole", "acrobot", "pendulum", "minigrid"):
        for method in ("single", "lop", "diayn_r", "diayn_r_l2"):
            assert f"{family}-{method}" in names
    for beta in ("0.1", "1", "10"):
        assert f"ant-lop-beta{beta}-seeds0-4" in names
        for skills in (5, 10, 20):
            assert f"ant-diayn_r-skills{skills}-beta{beta}-seeds5-9" in names
    assert {"maze2d-lop-beta0.01", "fruitbot-diayn_r-seeds4-4"} <= names
    shots = {c.name: [how.shots for how in c.adaptings] for c in found}
    assert shots["halfcheetah-cop-seeds0-4"] == [5, 10, 20]
    assert shots["halfcheetah-diayn_r-skills20-seeds0-4"] == [20]
    insist_on_room(found, OUT)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("grid = 3", "is not a grid"),
        ("[[grid]]\nsuites = ['cartpole']\n[other]", "unknown field 'other'"),
        ("[[grid]]\nmethods = ['lop']", "fields: suites"),
        ("[[grid]]\nsuites = 'cartpole'", "suites is 'cartpole'; it must be a list"),
        ("[[grid]]\nsuites = [3]", "3 is no name of a suite"),
        ("[[grid]]\nsuites = ['cartpole']\nspeed = 3", "fields: speed"),
        ("[[grid]]\nsuites = ['cartpole']\nseeds = 0", "number 1: seeds is 0"),
        ("[[grid]]\nsuites = ['cartpole']\npreset = 1", "preset is 1"),
        ("[[grid", "is not a TOML file"),
    ],
)
def test_a_file_that_is_no_grid(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    with pytest.raises(SlacklineError, match=problem):
        read_grid(str(file))


def test_a_file_names_only_slacklines_own_suites(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text("[[grid]]\nsuites = ['os:getcwd']")
    (product,) = read_grid(str(file))
    with pytest.raises(SlacklineError, match="unknown suite 'os:getcwd'"):
        list(product.cells(builtin, OUT))
