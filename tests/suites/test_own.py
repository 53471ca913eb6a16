"""Suites of the user's own: by a word, and by a file."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from host_probes import Diary, HostAim

import slackline as sl
from slackline.envs.api import Continuous, Discrete
from slackline.envs.brax import Ant
from slackline.envs.envpool import EnvPoolEnv
from slackline.envs.gymnasium import GymnasiumEnv
from slackline.envs.host import HostParams
from slackline.errors import SlacklineError
from slackline.suites.own import CONTINUOUS, DISCRETE, HORIZON, PROTOCOL
from slackline.suites.resolve import as_suite, environment


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder."""
    monkeypatch.chdir(tmp_path)


def refused(suite: Any) -> str:
    with pytest.raises(SlacklineError) as refusal:
        as_suite(suite)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_gymnasium_id_with_options() -> None:
    suite = sl.suite("gym:CartPole-v1?max_episode_steps=30&sutton_barto_reward=true")
    assert isinstance(suite.env, GymnasiumEnv)
    assert suite.env.options == {"max_episode_steps": 30, "sutton_barto_reward": True}
    assert suite.name == suite.title == suite.env.name
    assert (suite.env.observation_size, suite.env.action) == (4, Discrete(2))
    assert (suite.hyper, suite.horizon, suite.variations) == (DISCRETE, HORIZON, ())
    assert sl.suite(suite.name).env == suite.env, "a run's name must make it again"
    assert sl.suite("gym:Pendulum-v1").hyper == CONTINUOUS
    assert sl.suite("gym:Pendulum-v1").env.action == Continuous(1, -2.0, 2.0)


def test_an_envpool_id_with_options() -> None:
    suite = sl.suite("envpool:Pendulum-v1?max_episode_steps=30")
    assert isinstance(suite.env, EnvPoolEnv)
    assert (suite.env.env_id, suite.env.options) == ("Pendulum-v1", {"max_episode_steps": 30})
    assert (suite.env.observation_size, suite.env.action) == (3, Continuous(1, -2.0, 2.0))


def test_words_and_quoted_words_are_options_alike() -> None:
    made = environment("gym:CartPole-v1?render_mode=rgb_array")
    assert isinstance(made, GymnasiumEnv)
    assert made.options == {"render_mode": "rgb_array"}
    assert made.name == 'gym:CartPole-v1?render_mode="rgb_array"'
    assert environment(made.name) == made


def test_a_function_in_the_folder_of_the_command() -> None:
    Path("my_robot.py").write_text(
        "from host_probes import HostAim\n\ndef make(**options):\n    return HostAim(**options)\n"
    )
    suite = sl.suite("my_robot:make?target=0.5")
    assert suite.name == "my_robot:make?target=0.5"
    assert isinstance(suite.env, GymnasiumEnv)
    assert suite.env.make(**suite.env.options).target == 0.5


PROBE = "from host_probes import HostAim as make\n"


@pytest.mark.parametrize("word", ["my_arm.sim:make", "my_arm:make", "my_arm.core:make"])
def test_a_module_of_one_test_is_forgotten_by_the_next(word: str) -> None:
    """Of one name, a folder here and a file there: as two tests once had it."""
    assert "my_arm" not in sys.modules
    file = Path(word.partition(":")[0].replace(".", "/")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(PROBE)
    assert sl.suite(word).name == word


def test_a_module_written_a_moment_ago_is_found() -> None:
    """Python lists a folder again when its time has changed, and clocks of disks are coarse."""
    Path("my_first.py").write_text(PROBE)
    then = Path.cwd().stat()
    assert sl.suite("my_first:make").name == "my_first:make"
    Path("my_second.py").write_text(PROBE)
    os.utime(".", ns=(then.st_atime_ns, then.st_mtime_ns))
    assert sl.suite("my_second:make").name == "my_second:make"


def test_a_module_that_is_another_is_named() -> None:
    Path("my_folder").mkdir()
    assert refused("my_folder:make").endswith(
        f"my_folder has no make (it is the folder {Path.cwd() / 'my_folder'}, not a file)"
    )
    Path("my_file.py").write_text("")
    assert refused("my_file:make").endswith(f"(it is {Path.cwd() / 'my_file.py'})")


def test_objects_stand_for_themselves_and_for_nothing_else() -> None:
    env = sl.gymnasium(Diary)
    assert as_suite(env).env is env
    assert sl.suite("host_probes:Diary").env is not env, "a name is not an object of somebody's"
    assert as_suite(HostAim).name == "host_probes:HostAim"
    one, other = as_suite(lambda: Diary()), as_suite(lambda: HostAim())
    assert one.name == other.name == "lambda"
    assert isinstance(one.env.action, Discrete)
    assert isinstance(other.env.action, Continuous)
    short = replace(sl.suite("cartpole"), horizon=7)
    assert as_suite(short) is short
    assert sl.suite("cartpole").horizon > 7


def test_two_suites_of_one_name_train_and_adapt_apart() -> None:
    """Rewards are 1 a step, so that the return is the horizon where nobody falls so soon."""
    cartpole = sl.suite("cartpole")
    hyper = replace(cartpole.hyper, num_envs=2, num_steps=2)
    lines = [
        sl.train(replace(cartpole, horizon=horizon), "single", steps=4, hyper=hyper)
        for horizon in (3, 5)
    ]
    scores = [one.adapt("Train", shots=1, episodes=1, score_episodes=2).scores for one in lines]
    assert [found.tolist() for found in scores] == [[3.0, 3.0], [5.0, 5.0]]


def test_a_function_called_as_a_suite_is_refused() -> None:
    def ant() -> Diary:
        return Diary()

    with pytest.raises(SlacklineError, match="is called ant, as a suite is"):
        as_suite(ant)
    assert isinstance(sl.suite("ant").env, Ant)


BROKEN = {
    "my_syntax": "def make(:",
    "my_error": "raise RuntimeError('no\\nmotor')",
    "my_attribute": "import sys\nsys.nothing",
    "my_thing": "make = 3\ndef none():\n    pass",
}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("gym:", "environment is 'gym:'; it must look like gym:ID, envpool:ID or module:function"),
        ("gym:CartPole-v1?gravity", "option is 'gravity'; it must look like NAME=VALUE"),
        ("gym:CartPole-v1?=3", "option is '=3'"),
        ("gym:X-v0?a=" + "[" * 50 + "]" * 50, "gym:X-v0: more than 20 lists or tables are within"),
        ("gym:X-v0?a=" + "[" * 99999, 'gym:X-v0?a="[[['),
        ("gym:Nothing-v0", "gym:Nothing-v0: cannot be made"),
        ("envpool:Nothing-v0", "envpool:Nothing-v0: cannot be made"),
        ("my_nowhere:make", "my_nowhere:make: cannot import my_nowhere (ModuleNotFoundError: "),
        ("my_syntax:make", "my_syntax:make: cannot import my_syntax (SyntaxError: "),
        ("my_error:make", "my_error:make: cannot import my_error (RuntimeError: no motor)"),
        ("my_attribute:make", "my_attribute:make: cannot import my_attribute (AttributeError: "),
        ("my_thing:other", "my_thing:other: my_thing has no other"),
        ("my_thing:make", "my_thing:make: is not a function that makes an environment"),
        ("my_thing:none", "my_thing:none: has no observation_space; it must be a gymnasium.Env"),
        ("my_thing:none?x=1", "my_thing:none?x=1: cannot be made (TypeError: "),
        ("none.toml", "none.toml: cannot be read (No such file or directory)"),
    ],
)
def test_a_word_that_makes_nothing_is_named(word: str, says: str) -> None:
    for name, text in BROKEN.items():
        Path(f"{name}.py").write_text(text)
    assert refused(word).startswith(says)


GOOD = """
env = "host_probes:HostAim?longest=3"
title = "Aiming"
horizon = 30
options = {target = 1.5}
steps = 5000
shots = 7

[hyper]
num_envs = 4
hidden = [16, 16]
normalise_advantage = false

[[variation]]
name = "Low"
options = {target = -0.5}

[[variation]]
name = "Elsewhere"
env = "host_probes:HostAim"
options = {noise = 0.5}
"""


def test_a_suite_file_says_everything() -> None:
    Path("my.toml").write_text(GOOD)
    suite = sl.suite("my.toml")
    assert (suite.name, suite.title, suite.horizon) == ("my.toml", "Aiming", 30)
    assert (suite.protocol.steps, suite.protocol.shots) == (5000, 7)
    assert suite.protocol.episodes == PROTOCOL.episodes
    assert (suite.hyper.num_envs, suite.hyper.hidden) == (4, (16, 16))
    assert suite.hyper.normalise_advantage is False
    assert suite.hyper.epochs == CONTINUOUS.epochs
    low, elsewhere = suite.variations
    standard: Any = suite.env.default_params()
    assert standard == HostParams({"longest": 3, "target": 1.5})
    changed: Any = low.apply(standard)
    assert changed.options == {"longest": 3, "target": -0.5}
    other: Any = elsewhere.apply(standard)
    assert other.name == "host_probes:HostAim?noise=0.5"
    assert other.options == {"noise": 0.5}


def test_the_least_a_suite_file_can_say() -> None:
    Path("my.toml").write_text('env = "host_probes:Diary"')
    suite = sl.suite("my.toml")
    assert (suite.title, suite.horizon, suite.hyper) == ("my", HORIZON, DISCRETE)


LOW = '[[variation]]\nname = "Low"\noptions = {target = -0.5}\n'
AIM = 'env = "host_probes:HostAim"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("env = ", "my.toml: is not a TOML file (Invalid value (at"),
        ("", "my.toml: env is missing"),
        ("env = 3", "my.toml: env is 3; it must be a str"),
        ('env = "cartpole"', "my.toml: environment is 'cartpole'; it must look like gym:ID"),
        (AIM + "horizn = 3", "unknown field of suite in my.toml 'horizn'; did you mean horizon?"),
        (AIM + "horizon = 0", "horizon in my.toml is 0; it must be a whole number"),
        (AIM + "horizon = 2.5", "horizon in my.toml is 2.5"),
        (AIM + "horizon = true", "horizon in my.toml is True"),
        (AIM + "shots = 'ten'", "my.toml: shots is 'ten'; it must be a whole number"),
        (AIM + "title = 3", "my.toml: title is 3; it must be a str"),
        (AIM + "options = 3", "my.toml: options is 3; it must be a dict"),
        (AIM + "options = {day = 2020-01-01}", "my.toml: host_probes:HostAim: options are {'day'"),
        (AIM + "options = {wind = 3}", "my.toml: host_probes:HostAim?wind=3: cannot be made ("),
        (AIM + "horizon = 2020-01-01", "horizon in my.toml is datetime.date(2020, 1, 1)"),
        (AIM + "horizon = " + "9" * 5000, "my.toml: is not a TOML file (Exceeds the limit"),
        ("deep = " + "[" * 9999, "my.toml: is not a TOML file (maximum recursion depth"),
        (
            AIM + f"options = {{target = {'[' * 50 + ']' * 50}}}",
            "my.toml: host_probes:HostAim: more",
        ),
        (AIM + LOW.replace("Low", " "), "my.toml: a variation is called ' '; it needs a name"),
        (AIM + "variation = 3", "my.toml: variation is 3; it must be a list"),
        (AIM + "variation = [3]", "my.toml: a variation is written [[variation]]"),
        (AIM + LOW + LOW, "my.toml: the name 'Low' is taken by another variation"),
        (AIM + LOW.replace("Low", "Train"), "my.toml: the name 'Train' is taken"),
        (AIM + LOW.replace("name", "nam"), "unknown field of a variation in my.toml 'nam'"),
        (AIM + "[[variation]]\noptions = {target = 1}", "my.toml: name is missing"),
        (
            AIM + '[[variation]]\nname = "A"\nenv = "gym:No-v0"',
            "my.toml: gym:No-v0: cannot be made",
        ),
        (AIM + '[[variation]]\nname = "Low"', "my.toml: variation 'Low' has neither options nor"),
        (AIM + "[hyper]\nnum_env = 3", "unknown field of hyper in my.toml 'num_env'; did you mean"),
        (AIM + "[hyper]\ndiscount = 1.5", "my.toml: discount is 1.5; it must be"),
        (AIM + "[hyper]\ndiscount = 'x'", "my.toml: discount is 'x'; it must be"),
        (AIM + "[hyper]\nalgorithm = 'sac'", "my.toml: algorithm is 'sac'; it must be a2c or ppo"),
        (AIM + "[hyper]\nnum_envs = 3\nminibatches = 7", "my.toml: minibatches is 7"),
        (AIM + "[hyper]\nhidden = 64", "my.toml: hidden is 64; it must be a list of widths"),
        (AIM + "[hyper]\nhidden = ['x']", "my.toml: hidden is 'x'; it must be a whole number"),
        (AIM + "[hyper]\nnormalise_advantage = 1", "my.toml: normalise_advantage is 1; it must be"),
    ],
)
def test_a_bad_suite_file_names_the_file_the_field_and_the_value(text: str, says: str) -> None:
    Path("my.toml").write_text(text)
    assert refused("my.toml").startswith(says)


@pytest.mark.parametrize("text", ['title = "a\\u001b[2J"', LOW.replace("Low", "a\\u001b[2J")])
def test_text_that_could_not_be_read_again_is_refused_before_anything_is_written(text: str) -> None:
    """What a file says is printed, and must hold nothing that a terminal obeys."""
    Path("my.toml").write_text(AIM + text)
    with pytest.raises(SlacklineError, match=r"my\.toml: cannot be kept in a file \('a"):
        sl.train("my.toml", "single", steps=32, out="run")
    assert not Path("run").exists()


def test_a_suite_file_may_begin_with_the_mark_that_windows_writes() -> None:
    Path("my.toml").write_text(AIM, encoding="utf-8-sig")
    assert sl.suite("my.toml").title == "my"


def test_a_suite_file_without_end_is_not_read() -> None:
    Path("link.toml").symlink_to(os.devnull)
    assert refused("link.toml") == "link.toml: is not an ordinary file"
    os.mkfifo("pipe.toml")
    assert refused("pipe.toml") == "pipe.toml: is not an ordinary file"
    with open("huge.toml", "wb") as file:
        file.truncate(10**12)
    assert "at most 1,048,576" in refused("huge.toml")


def test_a_file_of_bytes_is_no_suite() -> None:
    Path("my.toml").write_bytes(b"\xff\xfe\x00")
    assert refused("my.toml").startswith("my.toml: is not a TOML file (")
