"""The command line end to end, on tiny budgets."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import refused

from slackline import cli
from slackline.io.tensors import read_tensors
from slackline.store.run import RunFolder
from slackline.store.scores import read_scores

TINY = ["--hyper.num-envs", "4", "--hyper.num-steps", "4"]


def slackline(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "slackline.cli", *words],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished benchmark, made by the real command."""
    folder = tmp_path_factory.mktemp("cli")
    words = "bench cartpole --methods single lop cop --seeds 2 --steps 20k --shots 10 --episodes 2"
    done = slackline(*words.split(), "--score-episodes", "4", "--out", "b", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "printed.txt").write_text(done.stdout)
    assert done.stderr == "", "quiet when not a terminal"
    return folder / "b"


def test_help_teaches_and_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--help"], ["-h"]):
        assert cli.run(words) == 0
        text = capsys.readouterr().out
        assert all(verb in text for verb in cli.VERBS)
    code = "import sys, slackline.cli as c; c.run(['--help']); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_importing_slackline_does_not_import_jax() -> None:
    code = (
        "import sys, slackline; sys.exit(any(m in sys.modules for m in ('jax', 'polars', 'tyro')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("verb", sorted(cli.VERBS))
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.run([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: slackline {verb}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("slackline-rl ")


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["list"]) == 0
    text = capsys.readouterr().out
    assert cli.run(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = [v["name"] for s in found["suites"] for v in s["variations"]]
    names += [s["name"] for s in found["suites"]] + [m["name"] for m in found["methods"]]
    assert {"cartpole", "LongPole", "single", "lop"} <= set(names)
    assert all(name in text for name in names)
    assert "ant-hard: other changes of ant; adapt RUN --suite ant-hard for a run on ant" in text
    assert {s["trained_as"] for s in found["suites"] if "halfcheetah" in s["name"]} == {
        "halfcheetah",
        "halfcheetah-mujoco",
    }


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("trian", "unknown verb 'trian'; did you mean train?"),
        ("train cartpol", "unknown suite 'cartpol'; did you mean cartpole or cartpole-dev?"),
        ("train cartpole --method lopp", "did you mean lop"),
        ("train", "SUITE is missing (slackline train --help)"),
        ("train cartpole --nosuch 1", "unknown options: --nosuch 1"),
        ("train cartpole --seeds", "--seeds needs a value"),
        ("train cartpole --hyper.algorithm sac", "algorithm is 'sac'; it must be a2c or ppo"),
        ("train cartpole --steps nan", "--steps: not a whole number"),
        ("train cartpole --steps inf", "--steps: not a whole number"),
        ("train cartpole --steps 0.5", "--steps: not a whole number"),
        ("train cartpole --steps 0", "steps is 0"),
        ("train cartpole --steps -5", "steps is -5"),
        ("train cartpole --steps 1e30", "steps is 1"),
        ("train cartpole --seeds 0", "seeds is 0"),
        ("train cartpole --seeds -3", "seeds is -3"),
        ("train cartpole --seeds 1e9", "--seeds"),
        ("train cartpole --first-seed -1", "seed is -1"),
        ("train cartpole --method lop --beta -1", "beta is -1"),
        ("train cartpole --method lop --beta nan", "beta is nan"),
        ("train cartpole --method lop --beta inf", "beta is inf"),
        ("train cartpole --method single --beta 1", "has no option 'beta'"),
        ("train cartpole --beta 1", "methods with it: lop, cop, bop"),
        ("train cartpole --penalty both", "--penalty: 'both' is not one of tensor, vector"),
        ("train cartpole --hyper.policy-lr 0", "policy_lr is 0"),
        ("train cartpole --hyper.num-envs 0", "num_envs is 0"),
        ("train cartpole --checkpoint-seconds nan", "checkpoint_seconds is nan"),
        ("train cartpole --devices 4096", "devices is 4096"),
        ("train cartpole --method lc", "needs continuous actions"),
        ("train cartpole --method perturbed", "is not trained but made of a single policy"),
        ("bench cartpole --methods single perturbed", "is not trained but made of"),
        ("train cartpole --hyper", "--hyper needs a value"),
        ("train cartpole --hyper --steps 1k", "--hyper needs a value"),
        ("train cartpole --hyper nothing.json", "nothing.json: no such file"),
        ("train --seeds 2 cartpol", "unknown suite 'cartpol'"),
        ("train maze2d --preset=explor", "did you mean explore"),
        ("train cartpole --hyper x.json --preset explore", "exclude each other"),
        ("train cartpole --option beta", "must look like NAME=VALUE"),
        ("train cartpole --out /proc/nowhere", "/proc/nowhere: "),
        ("train cartpole --hyper.num-envs 65536 --hyper.num-steps 65536", "num_envs × num_steps"),
        ("bench cartpole --methods lop single --skills 3", "unknown option of these methods"),
        ("bench cartpole --methods diayn_r --shots 20", "has 10 skills and cannot try more"),
        ("bench cartpole --methods lop bob", "unknown method 'bob'; did you mean bop?"),
        ("bench cartpol", "unknown suite"),
        ("bench cartpole --shots 0", "shots is 0"),
        ("bench cartpole --shots 2e6", "shots is 2000000"),
        ("bench", "at least one suite"),
        ("adapt nowhere", "nowhere: no such run folder"),
        ("report nowhere", "nowhere: no such folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert problem in refused(capsys, *words.split())
    assert list(tmp_path.iterdir()) == [], "bad input leaves nothing behind"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--variation LongPol", "did you mean LongPole"),
        ("--shots 0", "shots is 0"),
        ("--shots 1000001", "shots is 1000001"),
        ("--episodes -1", "episodes is -1"),
        ("--score-episodes 0", "score_episodes is 0"),
        ("--shots 1e6 --episodes 1e6", "episodes were asked for"),
    ],
)
def test_adapt_refuses_bad_input_and_keeps_the_scores(
    bench: Path, words: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (bench / "cartpole-lop" / "scores.parquet").read_bytes()
    assert problem in refused(capsys, "adapt", str(bench / "cartpole-lop"), *words.split())
    assert (bench / "cartpole-lop" / "scores.parquet").read_bytes() == before


def test_an_output_folder_with_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for verb in ("train", "bench"):
        message = refused(capsys, verb, "cartpole", "--steps", "1k", "--out", str(tmp_path))
        assert str(tmp_path) in message
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_bench_makes_runs_a_table_and_a_page(bench: Path) -> None:
    printed = (bench.parent / "printed.txt").read_text()
    assert {p.name for p in bench.iterdir()} == {
        "cartpole-single",
        "cartpole-lop",
        "cartpole-cop",
        "report.html",
    }
    for word in ("HeavyPole", "WeakPush", "average", "paper", "143.4", "149.9", "±", "IQM"):
        assert word in printed
    assert (bench / "report.html").stat().st_size > 100_000


def test_bench_again_skips_what_is_finished(bench: Path) -> None:
    kept = [bench / "cartpole-lop" / name for name in ("checkpoint.safetensors", "scores.parquet")]
    before = [file.stat().st_mtime_ns for file in kept]
    words = "bench cartpole --methods single lop cop --seeds 2 --steps 20k --shots 10 --episodes 2"
    done = slackline(*words.split(), "--score-episodes", "4", "--out", "b", cwd=bench.parent)
    assert done.returncode == 0
    assert [file.stat().st_mtime_ns for file in kept] == before


def test_bench_refuses_a_folder_of_another_budget(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("bench", "cartpole", "--seeds", "2", "--steps", "30k", "--out", str(bench))
    assert "steps is 20000 there, 30000 here" in refused(capsys, *words)


def test_bench_dry_run_prints_commands_and_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "b"
    assert cli.run(["bench", "cartpole", "--seeds", "3", "--out", str(out), "--dry-run"]) == 0
    *lines, total = capsys.readouterr().out.splitlines()
    assert [line.split()[4] for line in lines] == ["single", "senses"]
    assert all("--preset paper" in line and "adapt" in line for line in lines)
    assert all(re.search(r"  # cartpole-\w+: about \d+(\.\d)? (s|min)$", line) for line in lines)
    assert total.startswith("# 2 cells, 2 to run: about ")
    assert not out.exists()


def test_adapt_prints_a_table_or_json_and_keeps_other_scores(bench: Path) -> None:
    words = ("adapt", "b/cartpole-lop", "--variation", "LongPole", "WeakPush", "--shots", "5")
    table = slackline(*words, "--episodes", "2", cwd=bench.parent)
    assert table.returncode == 0, table.stderr
    assert "LongPole" in table.stdout
    assert "paper" in table.stdout
    done = slackline(*words, "--episodes", "2", "--json", cwd=bench.parent)
    found = json.loads(done.stdout)
    assert [row["variation"] for row in found] == ["LongPole", "WeakPush"]
    assert [seed["seed"] for seed in found[0]["seeds"]] == [0, 1]
    mean = np.mean([seed["score"] for seed in found[0]["seeds"]])
    assert found[0]["mean"] == pytest.approx(mean)
    assert sum(found[0]["seeds"][0]["z"]) == pytest.approx(1.0)
    report = slackline("report", "b/cartpole-lop", "--out", "one.html", cwd=bench.parent)
    assert report.returncode == 0, report.stderr
    assert "K = 10" in report.stdout
    assert "K = 5" in report.stdout


def test_options_may_come_before_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite decides the hyper-parameters wherever it stands, and so does --preset=NAME."""
    from slackline.cli.train import parse
    from slackline.suites.resolve import suite

    assert parse(["--seeds", "3", "maze2d"]).hyper == suite("maze2d").hyper
    assert parse(["--method", "lop", "pendulum"]).hyper == suite("pendulum").hyper
    asked = parse(["maze2d", "--preset=explore", "--hyper.clip", "0.3"])
    assert (asked.hyper.entropy, asked.hyper.clip) == (0.1, 0.3)
    asked = parse(["cartpole", "--beta", "0.5", "--option", "penalty=vector", "spread=even"])
    assert asked.methods_options.given() == {"beta": 0.5, "penalty": "vector", "spread": "even"}


def test_options_add_up() -> None:
    from slackline.cli.train import parse

    asked = parse(["cartpole", "--option", "angle=40", "--option", "damping=0.3", "--beta", "2"])
    assert asked.methods_options.given() == {"beta": 2.0, "angle": 40, "damping": 0.3}


def test_what_a_preset_switches_on_can_be_switched_off() -> None:
    from slackline.cli.train import parse

    asked = ["halfcheetah", "--preset", "fast"]
    assert parse(asked).hyper.layer_norm
    assert parse([*asked, "--hyper.layer-norm"]).hyper.layer_norm
    assert not parse([*asked, "--hyper.no-layer-norm"]).hyper.layer_norm
    assert parse(["cartpole", "--hyper.layer-norm"]).hyper.layer_norm


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m slackline.cli list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("suites\n", "")


@pytest.mark.parametrize("damage", ["", "5\n", "{}\n"])
def test_a_finished_run_without_a_usable_log_is_told_in_one_line(
    bench: Path, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bench / "cartpole-lop", tmp_path / "run")
    (tmp_path / "run" / "progress.jsonl").write_text(damage)
    words = ["train", "cartpole", "--method", "lop", "--seeds", "2", "--steps", "20k"]
    code = cli.run([*words, "--resume", "--out", str(tmp_path / "run")])
    captured = capsys.readouterr()
    if damage:
        assert code == 2
        assert "progress.jsonl: is corrupt (line 1 is not a progress line)" in captured.err
    else:
        assert code == 0
        assert "no episode ended" in captured.out


def test_evenly_spread_candidates_are_shown_but_not_kept(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = (bench / "cartpole-cop" / "scores.parquet").read_bytes()
    words = ["adapt", str(bench / "cartpole-cop"), "--spread", "even", "--variation", "LongPole"]
    assert cli.run([*words, "LongPole", "--episodes", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["variation"] for row in found] == ["LongPole"]
    assert (bench / "cartpole-cop" / "scores.parquet").read_bytes() == scores


PERTURBED = ("--perturb", "0.1", "--shots", "4", "--episodes", "2", "--score-episodes", "3")


def test_a_perturbed_single_policy_is_adapted_in_a_folder_of_its_own(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (bench / "cartpole-single" / "scores.parquet").read_bytes()
    out = tmp_path / "copies" / "cartpole-perturbed"
    words = ["adapt", str(bench / "cartpole-single"), *PERTURBED, "--out", str(out)]
    assert cli.run(words) == 0
    assert "perturbed on cartpole, adapted with K = 4: 2 seeds" in capsys.readouterr().out
    assert (bench / "cartpole-single" / "scores.parquet").read_bytes() == before
    config = RunFolder(out).config()
    assert (config.method, config.options) == ("perturbed", {"members": 4, "noise": 0.1})
    assert config.seeds == RunFolder(bench / "cartpole-single").config().seeds
    scores = read_scores(out / "scores.parquet")
    assert scores["variation"].n_unique() == 7
    tried = scores.filter(phase="select", variation="LongPole", seed=1)
    assert sorted(tried["candidate"]) == [0, 0, 1, 1, 2, 2, 3, 3]
    again = [*words, "--variation", "LongPole", "--json"]
    assert cli.run(again) == 0, "the same copies, adapted once more"
    assert read_scores(out / "scores.parquet").height == scores.height
    capsys.readouterr()
    summary = tmp_path / "summary.json"
    words = ["report", str(bench), str(out.parent), "--summary", str(summary)]
    assert cli.run(words) == 0
    row = next(r for r in json.loads(summary.read_text()) if r["method"] == "perturbed")
    assert (row["K"], row["seeds"], row["steps"]) == (4, 2, 20_000)
    assert row["ratio"] > 0.0


@pytest.mark.parametrize(
    ("run", "words", "problem"),
    [
        ("cartpole-lop", "--perturb 0.1 --out new", "only a single policy can be perturbed"),
        ("cartpole-single", "--perturb 0.1", "--perturb and --out FOLDER belong together"),
        ("cartpole-single", "--out new", "--perturb and --out FOLDER belong together"),
        ("cartpole-single", "--perturb 0 --out new", "noise is 0"),
        ("cartpole-single", "--perturb x --out new", "'x' is not a number"),
        ("cartpole-single", "--perturb 0.1 --shots 1 --out new", "members is 1"),
        ("cartpole-single", "--perturb 0.1 --variation Nope --out new", "unknown variation"),
        ("cartpole-single", "--perturb 0.1 --out {bench}/cartpole-lop", "holds another run"),
    ],
)
def test_perturbing_refuses_bad_input(
    bench: Path,
    run: str,
    words: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = words.format(bench=bench).split()
    assert problem in refused(capsys, "adapt", str(bench / run), *asked)
    assert list(tmp_path.iterdir()) == []


def test_train_stops_on_ctrl_c_and_resumes_to_the_same_weights(tmp_path: Path) -> None:
    words = ["train", "cartpole", "--seeds", "2", "--steps", "4M", *TINY, "--out"]
    short = ["train", "cartpole", "--seeds", "2", "--steps", "400k", *TINY, "--out"]
    command = [sys.executable, "-m", "slackline.cli", *words, "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    progress = tmp_path / "run" / "progress.jsonl"
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and not (progress.exists() and progress.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said
    assert read_tensors(tmp_path / "run" / "checkpoint.safetensors")[1]["iteration"] > 0

    checkpoint = tmp_path / "cut" / "checkpoint.safetensors"
    reached = 0
    for later in (1, 4_000, 9_000):  # killed three times, each time further on
        words = [*short, "cut", "--resume", "--checkpoint-seconds", "0"]
        killed = subprocess.Popen([sys.executable, "-m", "slackline.cli", *words], cwd=tmp_path)
        while time.monotonic() < deadline and reached < later:
            time.sleep(0.01)
            reached = read_tensors(checkpoint)[1]["iteration"] if checkpoint.exists() else 0
        killed.kill()
        killed.wait()
        assert later <= reached < 25_000
    assert slackline(*short, "cut", "--resume", cwd=tmp_path).returncode == 0
    assert slackline(*short, "whole", cwd=tmp_path).returncode == 0
    cut, whole = (
        read_tensors(tmp_path / n / "checkpoint.safetensors")[0] for n in ("cut", "whole")
    )
    for name, array in whole.items():
        np.testing.assert_array_equal(cut[name], array, err_msg=name)
