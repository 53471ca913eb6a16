"""Nothing that a file names is imported, made or opened; and what a file keeps is enough."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from commands import refused, told
from host_probes import Diary, HostAim
from probes import AIM_SUITE

import slackline as sl
from slackline import cli
from slackline.envs.host import RecordedEnv
from slackline.errors import NotNamed, SlacklineError
from slackline.io.tensors import read_tensors, write_tensors
from slackline.report.results import load_results
from slackline.store.run import RunFolder
from slackline.suites.own import another, changed_options, suite_of
from slackline.suites.recorded import home_of, recorded, spec_of, words_of
from slackline.suites.resolve import environment, named_again
from slackline.suites.resolve import words as resolve_words
from slackline.suites.suite import Suite
from slackline.training import run_training

EARLIER = Path(__file__).parent / "earlier"
"""Runs of an earlier version, which kept no more of a user's suite than its name: `word` was
trained on an environment, `file` on planets.toml, and `word` adapted to that file, too."""
WORD = "gym:Pendulum-v1?max_episode_steps=20"
SMALL = ["--shots", "2", "--episodes", "1", "--score-episodes", "2"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    sys.path[:] = path
    sys.modules.pop("my_evil", None)


# Files that would do harm

EVIL = [
    "subprocess:getoutput?cmd=touch harm",
    "my_evil:make",
    "gym:my_evil:Env-v0",
    "gym:CartPole-v1",
    "envpool:Pendulum-v1",
    "evil.toml",
]
"""Names that do something when they are resolved; some only what they always do."""


@pytest.fixture
def harm(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether anything was imported, made or opened because of a name."""
    done: list[str] = []
    evil = "import pathlib\npathlib.Path('harm').touch()\ndef make(**_):\n    raise SystemExit\n"
    Path("my_evil.py").write_text(evil)
    Path("evil.toml").write_text('env = "my_evil:make"')
    monkeypatch.syspath_prepend(".")
    for maker in ("gymnasium.make", "envpool.make", "subprocess.getoutput"):
        monkeypatch.setattr(maker, lambda *_, maker=maker, **__: done.append(maker))
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: done.append("toml") or loads(text))
    return lambda: bool(done) or Path("harm").exists() or "my_evil" in sys.modules


@pytest.mark.parametrize("name", EVIL)
def test_these_names_do_harm_where_they_are_resolved(name: str, harm: Callable[[], bool]) -> None:
    resolve_words._environment.cache_clear()
    with suppress(Exception, SystemExit):
        sl.suite(name)
    assert harm()


def evil_run(name: str, *, with_spec: bool) -> Path:
    """A run that says in every file that it was trained on `name`."""
    out = Path("runs") / "evil"
    shutil.copytree(EARLIER / "word", out)
    values = json.loads((out / "run.json").read_text())
    values["config"]["suite"] = name
    tensors, header = read_tensors(out / "subspace.safetensors")
    header["suite"] = name
    if with_spec:
        env = environment("gym:Pendulum-v1")
        suite = replace(suite_of(env), variations=(another(env, "Other"),))
        spec = json.loads(json.dumps(spec_of(suite)).replace("gym:Pendulum-v1", name))
        values["config"]["spec"] = header["spec"] = spec
        values["schema"] = 2
    (out / "run.json").write_text(json.dumps(values))
    write_tensors(out / "subspace.safetensors", tensors, header)
    scores = pl.read_parquet(out / "scores.parquet")
    scores.with_columns(pl.lit(name).alias("suite")).write_parquet(out / "scores.parquet")
    return out


@pytest.mark.parametrize("with_spec", [False, True])
@pytest.mark.parametrize("name", EVIL)
def test_no_reader_resolves_a_name_of_a_file(
    name: str, with_spec: bool, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    out = evil_run(name, with_spec=with_spec)
    harm = request.getfixturevalue("harm")  # after what made the run
    run = RunFolder(out)
    assert run.config().suite == name
    assert isinstance(run.suite().env, RecordedEnv)
    assert run.subspaces()[0].suite == name
    assert load_results(out).suites[0].suite.name == name
    for path in (out, out / "subspace.safetensors"):
        line = sl.load(path)
        assert line.at(0.5)(np.zeros(3)).shape == (1,)
        with pytest.raises(NotNamed, match="name it again, if you trust it: "):
            line.adapt("Train")
    for words in (["report", str(out)], ["report", "runs"]):
        told(capsys, *words)
    cli.run(["report", "runs", "--summary", "summary.json"])
    capsys.readouterr()
    said = refused(capsys, "adapt", str(out))
    flag = "--suite" if name == "evil.toml" and not with_spec else "--env"
    if name == "evil.toml" and with_spec:
        assert 'sl.load("runs/evil", env=...) with the object called evil.toml' in said
    else:
        assert said.endswith(shlex.join(["slackline", "adapt", str(out), flag, name]))
    assert refused(capsys, "watch", str(out)) == said.replace("slackline adapt", "slackline watch")
    adapt = ["adapt", str(out)]
    assert "its observation shape is (4,)" in refused(capsys, *adapt, "--suite", "cartpole")
    stranger = refused(capsys, *adapt, "--env", "host_probes:Diary")
    assert ("name it again" if flag == "--suite" else "not on host_probes:Diary") in stranger
    assert "another run" in refused(capsys, "train", "cartpole", "--resume", "--out", str(out))
    told(capsys, "bench", "cartpole", "--dry-run", "--out", "runs")
    assert not harm()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"env": 3}, "3 is not a line of text"),
        ({"env": "gym:\x1b[2J"}, "is not a line of text"),
        ({"title": "two\nlines"}, "is not a line of text"),
        ({"horizon": "long"}, "horizon is 'long'"),
        ({"hyper": {}}, "hyper-parameters do not match"),
        ({"spaces": {}}, "KeyError"),
        ({"spaces": {"observation": [-1], "action": {"kind": "discrete", "num_actions": 2}}}, "-1"),
        ({"variations": [{"name": "A"}]}, "KeyError"),
        ({"variations": 3}, "TypeError"),
        ({"protocol": {"shoots": 3}}, "fields: shoots, steps"),
        ({"display_scale": 10**400}, "OverflowError"),
        ({"variations": 2 * [{"name": "A", "description": ""}]}, "the name 'A' is taken"),
        ({"variations": [{"name": "Train", "description": ""}]}, "the name 'Train' is taken"),
    ],
)
def test_a_spec_that_is_not_one_is_refused_by_the_name_of_its_file(
    change: dict[str, Any], problem: str
) -> None:
    out = evil_run("gym:Pendulum-v1", with_spec=True)
    values = json.loads((out / "run.json").read_text())
    values["config"]["spec"] |= change
    (out / "run.json").write_text(json.dumps(values))
    with pytest.raises(SlacklineError) as refusal:
        RunFolder(out).config()
    said = str(refusal.value)
    assert said.startswith("runs/evil/run.json: its suite's spec is unusable (")
    assert problem in said
    assert "\n" not in said


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "9" * 5000 + "}"])
def test_json_without_end_is_refused(text: str) -> None:
    Path("run.json").write_text(text)
    with pytest.raises(SlacklineError, match="is not valid JSON"):
        RunFolder(".").read()


def test_a_config_is_decoded_again_when_the_file_has_changed() -> None:
    shutil.copytree(EARLIER / "word", "word")
    run = RunFolder("word")
    assert run.config() is run.config()
    before, values = run.config(), json.loads(Path("word/run.json").read_text())
    values["config"]["steps"] += 1
    Path("word/run.json").write_text(json.dumps(values))
    assert run.config().steps == before.steps + 1
    values["config"]["steps"] = -1
    Path("word/run.json").write_text(json.dumps(values))
    with pytest.raises(SlacklineError, match="steps is -1"):
        run.config()


def test_policies_of_another_body_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever run.json says they were trained on."""
    shutil.copytree(EARLIER / "word", "word")
    values = json.loads(Path("word/run.json").read_text())
    values["config"]["suite"] = "cartpole"
    Path("word/run.json").write_text(json.dumps(values))
    tensors, header = read_tensors(Path("word/subspace.safetensors"))
    write_tensors(Path("word/subspace.safetensors"), tensors, header | {"suite": "cartpole"})
    said = refused(capsys, "adapt", "word", *SMALL)
    assert "word/subspace.safetensors: its policies see (3,)" in said
    assert "on cartpole they would have to see (4,)" in said


def test_what_an_earlier_version_kept_of_a_suite_still_compares_equal() -> None:
    """Hyper-parameters that came later are added to what it kept."""
    suite = everything()
    out = evil_run("gym:Pendulum-v1", with_spec=True)
    spec: Any = spec_of(suite)
    values = json.loads((out / "run.json").read_text())
    values["suites"] = {suite.name: spec | {"hyper": {**spec["hyper"]}}}
    del values["suites"][suite.name]["hyper"]["output_scale"]
    (out / "run.json").write_text(json.dumps(values))
    RunFolder(out).insist_on_same(suite)


# Specs


def everything() -> Suite:
    """A suite of the user's own with every kind of variation."""
    suite = suite_of(environment("host_probes:HostAim?longest=3"))
    others = (
        changed_options("Low", {"target": -0.5}),
        another(environment("host_probes:HostAim?noise=0.5"), "Elsewhere"),
        replace(AIM_SUITE.variations[0], name="Code"),
    )
    return replace(suite, name="my.toml", title="Aiming", horizon=30, variations=others, digits=3)


@pytest.mark.parametrize("digits", [3, None])
def test_a_spec_says_everything_but_the_code(digits: int | None) -> None:
    suite = replace(everything(), digits=digits)
    spec = spec_of(suite)
    assert spec is not None
    back = recorded("my.toml", json.loads(json.dumps(spec)), "x")
    assert spec_of(back) == spec
    for field in ("name", "title", "horizon", "protocol", "hyper", "digits"):
        assert getattr(back, field) == getattr(suite, field)
    assert back.env.observation_shape == suite.env.observation_shape
    assert back.env.action == suite.env.action
    assert words_of(back) == ["host_probes:HostAim?longest=3", "host_probes:HostAim?noise=0.5"]
    told = [(v.name, v.description) for v in suite.variations]
    assert [(v.name, v.description) for v in back.variations] == told


@pytest.mark.parametrize("name", ["cartpole", "ant-positional", "ant-mujoco", "cartpole-dev"])
def test_slacklines_own_suites_are_kept_by_name(name: str) -> None:
    suite = sl.suite(name)
    assert spec_of(suite) is None
    changed = spec_of(replace(suite, horizon=7))
    assert changed is not None
    assert changed["horizon"] == 7


def back() -> Suite:
    spec = spec_of(everything())
    assert spec is not None
    return recorded("my.toml", spec, "runs/my")


def test_named_again_it_is_what_it_was() -> None:
    again = named_again(
        back(), ["host_probes:HostAim?noise=5e-1", sl.gymnasium(HostAim, longest=3)], "runs/my"
    )
    low, elsewhere, _ = again.variations
    assert again.env.default_params().options == {"longest": 3}  # type: ignore[union-attr]
    changed: Any = low.apply(again.env.default_params())
    assert changed.options == {"longest": 3, "target": -0.5}
    assert elsewhere.env is not None
    assert elsewhere.env.default_params().options == {"noise": 0.5}
    assert spec_of(again) == spec_of(everything())
    suite = everything()
    assert named_again(back(), [suite], "runs/my") is suite


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], 'sl.load("runs/my", env=["host_probes:HostAim?longest=3", "host_probes:HostAim?no'),
        (["host_probes:HostAim?longest=3"], 'env=["host_probes:HostAim?longest=3", "host_probes'),
        (
            ["host_probes:HostAim"],
            "was trained on host_probes:HostAim?longest=3 and host",
        ),
        ([Diary], "not on host_probes:Diary; another one to adapt to is given with --to"),
        (["my.toml"], "not on my.toml"),
        ([sl.suite("cartpole")], "was trained on my.toml, not on cartpole"),
        ([replace(everything(), horizon=31)], "another my.toml (horizon = 30 there, 31 here)"),
    ],
)
def test_naming_something_else_is_an_error(given: list[Any], says: str) -> None:
    with pytest.raises(SlacklineError) as refusal:
        named_again(back(), given, "runs/my")
    assert says in str(refusal.value)


def test_an_environment_that_has_other_spaces_by_now_is_refused() -> None:
    spec = spec_of(suite_of(environment("host_probes:HostAim")))
    assert spec is not None
    spec["spaces"]["observation"] = [7]
    with pytest.raises(SlacklineError, match=r"its observation shape is \(1,\), and the policies"):
        named_again(recorded("x:y", spec, "runs/x"), ["host_probes:HostAim"], "runs/x")


TINY = replace(
    everything().hyper,
    num_envs=2,
    num_steps=8,
    minibatches=2,
    epochs=1,
    hidden=(4,),
    critic_hidden=(4,),
)


def test_objects_are_named_again_from_python() -> None:
    """A run on a lambda, and on a suite that is like one of slackline's own."""
    make = lambda target=2.0: HostAim(target)  # noqa: E731
    sl.train(make, steps=16, hyper=TINY, out="runs/lambda")
    with pytest.raises(NotNamed, match=r'load\("runs/lambda", env=\.\.\.\) with the object'):
        sl.load("runs/lambda").adapt("Train")
    score: dict[str, Any] = {"shots": 2, "episodes": 1, "score_episodes": 1}
    found = sl.load("runs/lambda").adapt(sl.gymnasium(HostAim), **score)
    assert found.variation == "host_probes:HostAim", "another environment needs no home"
    again = sl.load("runs/lambda", env=make).adapt("Train", **score)
    assert again.scores == found.scores
    saved = sl.load("runs/lambda").save("line.safetensors")
    assert sl.load(saved, env=make).adapt("Train", **score).scores == again.scores

    short = replace(sl.suite("cartpole"), horizon=3)
    hyper = replace(short.hyper, num_envs=2, num_steps=2)
    sl.train(short, "single", steps=4, hyper=hyper, out="runs/short")
    with pytest.raises(NotNamed, match=r"env=\.\.\.\) with the suite in Python"):
        sl.load("runs/short").adapt("Train")
    line = sl.load("runs/short", env=short)
    assert line.adapt("Train", shots=1, episodes=1, score_episodes=2).scores.tolist() == [3.0, 3.0]


# Runs of an earlier version


def test_runs_of_an_earlier_version_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("word", "file"):
        shutil.copytree(EARLIER / name, name)
    assert "Moon" in told(capsys, "report", "file"), "the variations that were played"
    said = told(capsys, "report", "word")
    assert "planets: return after adapting with K = 2" in said
    assert "Jupiter" in said
    assert "Jupiter" in Path("word/report.html").read_text()


def test_an_earlier_run_is_adapted_once_its_environment_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(EARLIER / "word", "word")
    said = refused(capsys, "adapt", "word", "--kwargs", "g=5.0", *SMALL)
    line = f"slackline adapt word --kwargs g=5.0 {' '.join(SMALL)} --env '{WORD}'"
    assert said.endswith(line)
    before = pl.read_parquet("word/scores.parquet")
    assert "g = 5.0" in told(capsys, *shlex.split(line)[1:])
    same_returns(before, pl.read_parquet("word/scores.parquet"))


def same_returns(before: pl.DataFrame, after: pl.DataFrame) -> None:
    """The same episodes as ever, but for rounding."""
    np.testing.assert_allclose(after["return"].sort(), before["return"].sort(), rtol=1e-4)


def test_an_earlier_run_on_a_file_is_adapted_with_that_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(EARLIER / "file", "file")
    shutil.copy(EARLIER / "planets.toml", "planets.toml")
    said = refused(capsys, "adapt", "file", *SMALL)
    line = f"slackline adapt file {' '.join(SMALL)} --suite planets.toml"
    assert said.endswith(line)
    before = pl.read_parquet("file/scores.parquet")
    assert "Moon" in told(capsys, *shlex.split(line)[1:])
    same_returns(before, pl.read_parquet("file/scores.parquet"))
    Path("planets.toml").unlink()
    assert "Pendulum on other planets" in told(capsys, "report", "file"), "kept from now on"
    assert home_of(sl.load("file")).title == "Pendulum on other planets"


def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """The names of its tensors are those of fields; it has every kind of network there is."""
    out = tmp_path / "run"
    shutil.copytree(EARLIER / "checkpoint", out)
    config = RunFolder(out).config()
    before = read_tensors(out / "checkpoint.safetensors")[0]
    run_training(config, out, suite=RunFolder(out).suite(), resume=True)
    assert [line["iteration"] for line in RunFolder(out).read_progress()] == list(range(1, 7))
    assert set(read_tensors(out / "checkpoint.safetensors")[0]) == set(before)
    assert "networks.auxiliary.layers.0.weight" in before
