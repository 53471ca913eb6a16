"""Runs: what is kept, resuming exactly, refusing what does not fit."""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from probes import Exploding, Killed, killing_at

import slackline as sl
from slackline.errors import SlacklineError
from slackline.io.files import read_json
from slackline.io.tensors import read_tensors
from slackline.learn.program import Program
from slackline.store.checkpoint_names import FIELD_NAMES
from slackline.store.run import RunFolder
from slackline.suites import NAMES, builtin
from slackline.training import configure, prepare, run_training

CARTPOLE = builtin("cartpole")
TINY = sl.Hyper(num_envs=4, num_steps=4, hidden=(4,), critic_hidden=(4,))
STEPS = 16 * 400
"""400 iterations: 200 strides of two."""


def config(**changes: Any) -> Any:
    arguments: dict[str, Any] = {"seeds": (3, 4), "steps": STEPS, "hyper": TINY}
    return configure(CARTPOLE, "lop", **(arguments | changes))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    run_training(config(), path, suite=CARTPOLE)
    return path


def final_state(path: Path) -> dict[str, np.ndarray]:
    return (
        read_tensors(path / "checkpoint.safetensors")[0]
        | read_tensors(path / "subspace.safetensors")[0]
    )


def assert_same_run(path: Path, other: Path) -> None:
    mine, theirs = final_state(path), final_state(other)
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    curves = [
        [(line["iteration"], line["return"]) for line in RunFolder(p).read_progress()]
        for p in (path, other)
    ]
    assert curves[0] == curves[1]


def test_every_field_of_a_checkpoint_has_a_name_that_stays(whole: Path) -> None:
    """A field that was renamed is missing in the map: add it there with its old name."""
    tensors, _ = read_tensors(RunFolder(whole).checkpoint_file)
    theirs = ("mu", "nu", "position", "velocity", "angle", "angular_velocity")
    parts = {part for name in tensors for part in name.split(".") if not part.isdigit()}
    assert parts - set(theirs) <= set(FIELD_NAMES.values())
    assert {"networks.policy.layers.0.weight", "running.env_state.angle", "key"} <= set(tensors)
    assert len(set(FIELD_NAMES.values())) == len(FIELD_NAMES)


def test_a_run_folder_holds_what_it_should(whole: Path) -> None:
    assert {p.name for p in whole.iterdir()} == {
        "run.json",
        "progress.jsonl",
        "checkpoint.safetensors",
        "subspace.safetensors",
    }
    run = RunFolder(whole)
    assert run.finished()
    assert run.config() == config()
    lines = run.read_progress()
    assert len(lines) == 200
    assert lines[-1]["steps"] == STEPS
    assert len(lines[-1]["return"]) == 2
    tensors, _ = read_tensors(run.checkpoint_file)
    assert any("optimisers" in name for name in tensors), "the optimiser's memory is kept"
    assert "key" in tensors
    assert any("running" in name for name in tensors), "the environments are kept"


def test_no_pickle_anywhere(whole: Path) -> None:
    for file in whole.iterdir():
        assert b"pickle" not in file.read_bytes()


@pytest.mark.parametrize("strides", [1, 57, 199])
def test_a_run_killed_between_saves_resumes_bit_identically(
    whole: Path, tmp_path: Path, strides: int
) -> None:
    """The kill comes after some strides; checkpoints exist only of every stride before it."""
    out = tmp_path / "run"
    with pytest.raises(Killed):
        run_training(
            config(), out, on_tick=killing_at(strides), checkpoint_seconds=0.0, suite=CARTPOLE
        )
    assert not RunFolder(out).finished()
    run_training(config(), out, resume=True, suite=CARTPOLE)
    assert_same_run(out, whole)


@pytest.mark.parametrize(
    ("target", "nth"),
    [
        ("run.json", 1),
        ("checkpoint.safetensors", 1),
        ("checkpoint.safetensors", 3),
        ("subspace.safetensors", 1),
        ("run.json", 2),
    ],
)
@pytest.mark.parametrize("moment", ["write", "replace"])
def test_a_run_killed_during_a_save_resumes_bit_identically(
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    moment: str,
    nth: int,
) -> None:
    """The kill comes half-way through writing a file, or between writing and renaming it."""
    out = tmp_path / "run"
    real, count = os.replace, 0

    def replace(source: Any, destination: Any) -> None:
        nonlocal count
        count += Path(destination).name == target
        if count == nth and Path(destination).name == target:
            if moment == "write":
                content = Path(source).read_bytes()
                Path(source).write_bytes(content[: len(content) // 2])
            raise Killed
        real(source, destination)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(Killed):
        run_training(config(), out, checkpoint_seconds=0.0, suite=CARTPOLE)
    monkeypatch.setattr(os, "replace", real)
    run_training(config(), out, resume=True, suite=CARTPOLE)
    assert_same_run(out, whole)
    assert not list(out.glob("*.partial"))


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        (
            "diayn_r",
            {"algorithm": "ppo", "epochs": 2, "minibatches": 2, "discriminator_hidden": (4,)},
        ),
        ("ensemble", {}),
        ("fan", {"layer_norm": True, "final_lr": 0.1}),
        (
            "lop",
            {
                "algorithm": "ppo",
                "epochs": 2,
                "minibatches": 2,
                "block": 2,
                "normalise_observation": True,
                "normalise_advantage": True,
            },
        ),
    ],
)
def test_discriminators_minibatches_members_and_blocks_resume_bit_identically(
    tmp_path: Path, method: str, changes: dict
) -> None:
    hyper = replace(TINY, **changes)
    made = configure(CARTPOLE, method, seeds=(0, 1), steps=16 * 100, hyper=hyper)
    run_training(made, tmp_path / "whole", suite=CARTPOLE)
    with pytest.raises(Killed):
        run_training(
            made, tmp_path / "cut", on_tick=killing_at(31), checkpoint_seconds=0.0, suite=CARTPOLE
        )
    run_training(made, tmp_path / "cut", resume=True, suite=CARTPOLE)
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def after_third_stride(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any, Any], tuple[Any, Any]]
) -> None:
    """Let `spoil` change the state and progress that the third stride of a training returns."""
    real, count = Program.advance, 0

    def advance(program: Program, state: Any, iterations: int) -> Any:
        nonlocal count
        count += 1
        state, progress = real(program, state, iterations)
        return spoil(state, progress) if count == 3 else (state, progress)

    monkeypatch.setattr(Program, "advance", advance)


def test_a_weight_that_is_no_number_is_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN born in a stride's last update shows in no loss of that stride."""

    def spoil(state: Any, progress: Any) -> Any:
        spoiled = jax.tree.map(lambda x: x * np.float32(np.nan), state.networks.policy)
        return state._replace(networks=state.networks._replace(policy=spoiled)), progress

    after_third_stride(monkeypatch, spoil)
    with pytest.raises(SlacklineError, match=r"diverged at step 96: a weight of seed 3"):
        run_training(config(), tmp_path / "run", checkpoint_seconds=0.0, suite=CARTPOLE)
    assert read_tensors(tmp_path / "run" / "checkpoint.safetensors")[1]["iteration"] == 4


def test_a_normaliser_that_overflows_is_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Observations too large to be squared are finite all the same."""

    def spoil(state: Any, progress: Any) -> Any:
        spoiled = jax.tree.map(lambda x: x * np.float32(np.inf), state.moments)
        return state._replace(moments=spoiled), progress

    after_third_stride(monkeypatch, spoil)
    hyper = replace(TINY, normalise_observation=True)
    with pytest.raises(SlacklineError, match=r"mean or deviation of seed 3 .*scale the observ"):
        run_training(config(hyper=hyper), tmp_path / "run", checkpoint_seconds=0.0, suite=CARTPOLE)
    assert read_tensors(tmp_path / "run" / "checkpoint.safetensors")[1]["iteration"] == 4


def test_a_simulation_that_breaks_down_stops_the_run(tmp_path: Path) -> None:
    """Two good iterations of two steps; the 5th step of every environment is not finite."""
    exploding = replace(builtin("pendulum-continuous"), env=Exploding(), name="exploding")
    hyper = replace(
        exploding.hyper, num_envs=8, num_steps=2, minibatches=2, normalise_observation=True, block=4
    )
    bomb = configure(exploding, "lop", seeds=(3,), steps=160, hyper=hyper)
    with pytest.raises(
        SlacklineError, match=r"broke down at step 32: .* of seed 3 is not finite; the last good"
    ):
        run_training(bomb, tmp_path / "run", suite=exploding, checkpoint_seconds=0.0)
    tensors, header = read_tensors(tmp_path / "run" / "checkpoint.safetensors")
    assert header["iteration"] == 2
    assert tensors["seen.count"] == 32.0
    assert len(RunFolder(tmp_path / "run").read_progress()) == 2
    with pytest.raises(SlacklineError, match="broke down at step 32"):
        run_training(bomb, tmp_path / "run", suite=exploding, resume=True)


def unfinished(whole: Path, out: Path) -> Path:
    """A copy of the whole run that says it was interrupted after its last checkpoint."""
    shutil.copytree(whole, out)
    run = read_json(out / "run.json")
    (out / "run.json").write_text(json.dumps(run | {"finished": False}))
    (out / "subspace.safetensors").unlink()
    return out


def flip(path: Path) -> None:
    """One bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    with pytest.raises(Killed):
        run_training(config(), out, on_tick=killing_at(57), checkpoint_seconds=0.0, suite=CARTPOLE)
    files = [RunFolder(out).previous_file, RunFolder(out).checkpoint_file]
    assert [read_tensors(file)[1]["iteration"] for file in files] == [110, 112]
    flip(RunFolder(out).checkpoint_file)
    run_training(config(), out, resume=True, suite=CARTPOLE)
    assert "checkpoint.safetensors: is corrupt" in caplog.text
    assert "going on from the checkpoint before it" in caplog.text
    assert_same_run(out, whole)
    assert not RunFolder(out).previous_file.exists()


def test_a_checkpoint_of_other_seeds_is_refused(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    RunFolder(out).create(config(seeds=(5, 6)))
    for name in ("checkpoint.safetensors", "subspace.safetensors"):
        shutil.copy(whole / name, out)
    with pytest.raises(SlacklineError, match=r"seeds \[3, 4\], and this one has \[5, 6\]"):
        run_training(config(seeds=(5, 6)), out, resume=True, suite=CARTPOLE)
    with pytest.raises(SlacklineError, match=r"subspace.*a run with seeds \[3, 4\]"):
        RunFolder(out).subspaces()


def test_a_folder_that_is_being_written_is_left_alone(whole: Path, tmp_path: Path) -> None:
    out = unfinished(whole, tmp_path / "run")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    with (
        RunFolder(out).writing(),
        pytest.raises(SlacklineError, match=r"run: is being written by .*, process"),
    ):
        run_training(config(), out, resume=True, suite=CARTPOLE)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


def test_a_changed_digit_in_the_log_is_noticed(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    file = out / "progress.jsonl"
    file.write_text(file.read_text().replace('"steps": 64,', '"steps": 65,', 1))
    with pytest.raises(SlacklineError, match="line 2 is not a progress line"):
        RunFolder(out).read_progress()


def test_what_lies_behind_the_checkpoint_in_the_log_may_be_damaged(
    whole: Path, tmp_path: Path
) -> None:
    out = unfinished(whole, tmp_path / "run")
    log = RunFolder(out).progress_file
    log.write_bytes(log.read_bytes() + 100 * b"\0" + b"\n")
    run_training(config(), out, resume=True, suite=CARTPOLE)
    assert_same_run(out, whole)


def test_a_progress_line_cut_short_is_dropped(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    text = (out / "progress.jsonl").read_text()
    (out / "progress.jsonl").write_text(text[:-20])
    assert len(RunFolder(out).read_progress()) == 199


def test_resuming_a_finished_run_changes_nothing(whole: Path) -> None:
    before = {p.name: p.read_bytes() for p in whole.iterdir()}
    lines = run_training(config(), whole, resume=True, suite=CARTPOLE)
    assert [line.seed for line in lines] == [3, 4]
    assert {p.name: p.read_bytes() for p in whole.iterdir()} == before


def test_a_run_is_never_overwritten(whole: Path) -> None:
    with pytest.raises(SlacklineError, match="already holds a run; pass --resume"):
        run_training(config(), whole, suite=CARTPOLE)


def test_a_folder_with_something_else_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    for resume in (False, True):
        with pytest.raises(SlacklineError, match="is not a run; choose another folder"):
            run_training(config(), tmp_path, resume=resume, suite=CARTPOLE)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(SlacklineError, match="is a file"):
        run_training(config(), tmp_path / "thesis.tex", suite=CARTPOLE)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"steps": 2 * STEPS}, "steps is 6400 there, 12800 here"),
        ({"beta": 0.5}, r"beta = 1.0 there, 0.5 here"),
        ({"seeds": (3, 5)}, "seeds"),
    ],
)
def test_resuming_with_other_settings_names_the_difference(
    whole: Path, change: dict, problem: str
) -> None:
    with pytest.raises(SlacklineError, match=problem):
        run_training(config(**change), whole, resume=True, suite=CARTPOLE)


@pytest.mark.parametrize("file", ["run.json", "checkpoint.safetensors"])
def test_resuming_from_a_damaged_file_says_so_and_touches_nothing(
    whole: Path, tmp_path: Path, file: str
) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    run = read_json(out / "run.json")  # without its checksum
    (out / "run.json").write_text(json.dumps(run | {"finished": False}))
    content = (out / file).read_bytes()
    (out / file).write_bytes(content[: len(content) // 2])
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    with pytest.raises(SlacklineError, match=file):
        run_training(config(), out, resume=True, suite=CARTPOLE)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema": 99}, "newer than 2"),
        ({"format": "other"}, "is not a slackline-run file"),
        ({"config": []}, "'config' is missing or not an object"),
    ],
)
def test_a_foreign_or_newer_run_is_refused(
    whole: Path, tmp_path: Path, change: dict, problem: str
) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    run = read_json(out / "run.json")  # without its checksum
    (out / "run.json").write_text(json.dumps(run | change))
    with pytest.raises(SlacklineError, match=problem):
        RunFolder(out).config()


def test_a_checkpoint_of_another_network_is_refused(whole: Path, tmp_path: Path) -> None:
    wide = sl.Hyper(num_envs=4, num_steps=4, hidden=(5,), critic_hidden=(4,))
    out = tmp_path / "run"
    RunFolder(out).create(config(hyper=wide))
    shutil.copy(whole / "checkpoint.safetensors", out)
    with pytest.raises(SlacklineError, match=r"policy.*expected float32"):
        run_training(config(hyper=wide), out, resume=True, suite=CARTPOLE)


def test_divergence_stops_the_run_and_keeps_the_last_good_checkpoint(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third stride brings NaN: the second one's checkpoint stays, and resuming works."""

    def spoil(state: Any, progress: Any) -> Any:
        bad = progress.losses._replace(critic=progress.losses.critic * np.array([1.0, np.nan]))
        return state, progress._replace(losses=bad)

    out = tmp_path / "run"
    after_third_stride(monkeypatch, spoil)
    with pytest.raises(SlacklineError, match=r"diverged at step 96: critic of seed 4 .*kept in"):
        run_training(config(), out, checkpoint_seconds=0.0, suite=CARTPOLE)
    assert read_tensors(out / "checkpoint.safetensors")[1]["iteration"] == 4
    monkeypatch.undo()
    run_training(config(), out, resume=True, suite=CARTPOLE)
    assert_same_run(out, whole)


def test_load_picks_a_seed_and_says_what_there_is(whole: Path, tmp_path: Path) -> None:
    assert sl.load(whole).seed == 3
    assert sl.load(whole, seed=4).seed == 4
    with pytest.raises(SlacklineError, match=r"no seed 7 \(it has: 3, 4\)"):
        sl.load(whole, seed=7)
    with pytest.raises(SlacklineError, match="no such file"):
        sl.load(tmp_path / "nothing")
    RunFolder(tmp_path / "young").create(config())
    with pytest.raises(SlacklineError, match="not trained to the end"):
        sl.load(tmp_path / "young")


def test_the_same_seed_twice_is_bit_identical_and_another_differs() -> None:
    first = sl.train("cartpole", seed=1, steps=1600, hyper=TINY)
    again = sl.train("cartpole", seed=1, steps=1600, hyper=TINY)
    other = sl.train("cartpole", seed=2, steps=1600, hyper=TINY)
    networks = [jax.tree.leaves(line.policy) for line in (first, again, other)]
    for a, b, c in zip(*networks, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.allclose(a, c)


def test_an_ensemble_trains_members_apart_and_stacks_them() -> None:
    lines = sl.train_seeds("cartpole", "ensemble", seeds=2, steps=1600, hyper=TINY, members=3)
    weight = jax.tree.leaves(lines[0].policy)[0]
    assert weight.shape == (3, 4, 4)
    assert not np.allclose(weight[0], weight[1])
    chosen = lines[0].at(1)
    np.testing.assert_allclose(
        chosen.outputs(np.ones(4)), lines[0].at([0, 1, 0]).outputs(np.ones(4))
    )


def test_train_hands_all_its_arguments_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two signatures are written out, so that editors complete them; they must not drift."""
    several = dict(inspect.signature(sl.train_seeds).parameters)
    one = dict(inspect.signature(sl.train).parameters)
    assert one.pop("seed").default == several.pop("first_seed").default
    del several["seeds"]
    assert one == several
    given = {name: object() for name in one if name != "options"} | {"beta": object()}
    handed_on: dict[str, Any] = {}

    def train_seeds(suite: Any, method: Any, **others: Any) -> list[str]:
        handed_on.update(suite=suite, method=method, **others)
        return ["line"]

    monkeypatch.setattr("slackline.api.train_seeds", train_seeds)
    assert sl.train(**given, seed=7) == "line"  # type: ignore[arg-type]
    assert handed_on == given | {"first_seed": 7, "seeds": 1}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"suite": "cartpol"}, "unknown suite 'cartpol'; did you mean cartpole"),
        ({"method": "lopp"}, "unknown method 'lopp'; did you mean lop"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": 10**13}, "steps is"),
        ({"method": "lop", "beta": -1.0}, "beta is -1"),
        ({"method": "lop", "beta": float("nan")}, "beta is nan"),
        ({"method": "lop", "penalty": "both"}, "penalty is 'both'"),
        ({"method": "lop", "gamma": 1}, "method 'lop' has no option 'gamma'"),
        ({"method": "lc"}, "needs continuous actions"),
        ({"seed": -1}, "seed is -1"),
        ({"hyper": sl.Hyper(discount=1.5)}, "discount is 1.5"),
        ({"hyper": sl.Hyper(num_envs=3, minibatches=7)}, "minibatches is 7"),
        ({"hyper": sl.Hyper(hidden=(0,))}, "hidden is 0"),
        ({"hyper": {"discount": 0.9}}, "hyper is a dict"),
        ({"steps": "8M"}, "steps is '8M'"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"method": "lop", "beta": "x"}, "beta is 'x'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, problem: str) -> None:
    arguments = {"suite": "cartpole"} | arguments
    with pytest.raises(SlacklineError, match=problem):
        sl.train(**arguments)


RESULTS = sorted((Path(__file__).parent.parent / "results").rglob("run.json"))


def test_what_earlier_versions_wrote_can_be_read_and_resumed() -> None:
    """Every committed run is taken for the one that its settings make today."""
    assert len(RESULTS) > 40
    trained_on = {RunFolder(path.parent).config().suite for path in RESULTS}
    assert trained_on >= {*NAMES, "halfcheetah-mujoco"} - {"pendulum-continuous"}
    for path in RESULTS:
        folder = RunFolder(path.parent)
        asked = folder.config()
        prepare(folder, replace(asked, options=asked.resolved_method.options), resume=True)


def test_other_options_are_another_run(tmp_path: Path) -> None:
    before, folder = config(), RunFolder(tmp_path / "run")
    folder.create(before)
    folder.append_progress({"iteration": 1, "steps": 8, "return": [1.0]})
    other = replace(before, options={**before.options, "concentration": 0.5})
    with pytest.raises(SlacklineError, match=r"concentration = 1\.0 there, 0\.5 here"):
        prepare(folder, other, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_of_which_nothing_is_trained_gives_way(tmp_path: Path, resume: bool) -> None:
    before, folder = config(), RunFolder(tmp_path / "run")
    folder.create(before)
    other = replace(before, options={**before.options, "concentration": 0.5})
    prepare(folder, other, resume=resume)
    assert folder.config() == other


def test_a_preset_by_its_name() -> None:
    fast = builtin("halfcheetah").presets["fast"]
    assert configure(builtin("halfcheetah"), preset="fast").hyper == fast
    assert configure(builtin("halfcheetah")).hyper == builtin("halfcheetah").hyper
    with pytest.raises(SlacklineError, match=r"unknown preset of halfcheetah 'slow'.*paper, fast"):
        sl.train("halfcheetah", preset="slow")
    with pytest.raises(SlacklineError, match="exclude each other"):
        sl.train_seeds("halfcheetah", preset="fast", hyper=fast)
