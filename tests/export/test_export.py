"""Exported policies do what the NumPy ones do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import refused, told

import slackline as sl
from slackline.arrays import tree_map
from slackline.envs.api import Discrete
from slackline.errors import SlacklineError
from slackline.export.c import identifier

EARLIER = Path(__file__).parents[1] / "subspace" / "earlier"
NAMES = sorted(path.stem for path in EARLIER.glob("*.safetensors"))
VECTORS = [name for name in NAMES if not name.startswith("pictures")]
LINES = [name for name in NAMES if name != "single"]
NUM = 10_000


def line_of(name: str) -> sl.Line:
    return sl.load(EARLIER / f"{name}.safetensors")


def a_z(line: sl.Line, index: int = 1) -> Any:
    """A z in the middle of the space; None where there is only one policy."""
    zs = line.method.latent.candidates(4)
    return zs[index] if line.method.latent.size else None


def observations(line: sl.Line) -> np.ndarray:
    """Random ones of all sizes from 1e-6 to 1e6, zeros, and single numbers that stand out."""
    draws = np.random.default_rng(0)
    if line.picture is not None:
        some = draws.integers(0, 256, (1000, *line.picture), np.uint8)
        return np.concatenate([some, np.zeros_like(some[:1]), np.full_like(some[:1], 255)])
    (size,) = line.observation_shape
    x = draws.normal(size=(NUM, size)) * 10.0 ** draws.uniform(-6, 6, (NUM, 1))
    x[0], x[1 : 1 + size] = 0.0, 1e6 * np.eye(size)
    x[-NUM // 2 :] = draws.normal(size=(NUM // 2, size))
    return x.astype(np.float32)


def same_outputs(found: np.ndarray, expected: np.ndarray, rounding: Any = 0.0) -> None:
    """To 1e-5, of the row's largest number where that is above 1, beyond what `rounding` did."""
    scale = np.maximum(np.abs(expected).max(axis=-1, keepdims=True), 1.0)
    assert (np.abs(found - expected) <= 1e-5 * scale + 2.0 * rounding).all()


def rounding_of(line: sl.Line, z: Any, x: np.ndarray, outputs: np.ndarray) -> Any:
    """How far NumPy's own outputs are from those in double precision. A line adds up anchors in
    another order than a policy that was mixed before: of an observation of 20,000 that happens to
    cancel to an output of 0.2, both are right to five digits only."""
    if line.picture is not None:
        return 0.0
    parts = (line.policy, line.normaliser)
    policy, normaliser = tree_map(lambda leaf: np.asarray(leaf, np.float64), parts)
    policy = policy if normaliser is None else normaliser.folded_into(policy)
    method, wide = line.method, np.asarray(z, np.float64)
    plain = method.conditioning.at(method.latent, policy, wide)  # type: ignore[arg-type]
    return np.abs(plain(x.astype(np.float64)) - outputs)  # type: ignore[arg-type]


def same_actions(line: sl.Line, found: np.ndarray, action: Any, outputs: np.ndarray) -> None:
    """The same but for ties; and means differ by 1e-5 of their size, so actions can, too."""
    if isinstance(line.action, Discrete):
        rows = np.arange(len(found))
        lost = outputs.max(axis=-1) - outputs[rows, found]
        assert (lost <= 2e-5 * np.maximum(np.abs(outputs).max(axis=-1), 1.0)).all()
        assert (found == action).mean() > 0.999
        return
    spread = np.subtract(line.action.high, line.action.low)
    scale = np.maximum(np.abs(outputs).max(axis=-1, keepdims=True), 1.0)
    assert (np.abs(found - action) <= 2e-5 * scale * spread).all()


def session(path: Path) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", NAMES)
def test_an_onnx_policy(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    line = line_of(name)
    z, x = a_z(line), observations(line)
    model = session(line.export(tmp_path / "policy.onnx", z))
    action, outputs = model.run(["action", "outputs"], {"observation": x})
    expected = line.at(z).outputs(x)
    same_outputs(outputs, expected)
    same_actions(line, action, line.at(z)(x), expected)
    assert len(model.run(["action"], {"observation": x[:1]})[0]) == 1


@pytest.mark.parametrize("name", LINES)
def test_an_onnx_line_has_a_z_for_every_row(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    line = line_of(name)
    model = session(line.export(tmp_path / "line.onnx", as_line=True))
    x, zs = observations(line), line.method.latent.candidates(4)
    rows = np.arange(len(x)) % len(zs)
    action, outputs = model.run(["action", "outputs"], {"observation": x, "z": zs[rows]})
    for k, z in enumerate(zs):
        policy, own = line.at(z), rows == k
        expected = policy.outputs(x[own])
        same_outputs(outputs[own], expected, rounding_of(line, z, x[own], expected))
        same_actions(line, action[own], policy(x[own]), expected)


def test_an_onnx_model_says_what_it_is(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    line = line_of("cop-normalised")
    for name, z in (("policy", [0.2, 0.3, 0.5]), ("line", None)):
        path = line.export(tmp_path / f"{name}.onnx", z, as_line=z is None)
        props = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
        assert (props["suite"], props["method"], props["seed"]) == ("my:env", "cop", "1")
        assert json.loads(props["observation"]) == [4]
        assert json.loads(props["action"])["high"] == [1.0, 5.0]
        assert props["z_range"] == "3 non-negative numbers with sum 1"
        assert "input" in props["z"] if name == "line" else json.loads(props["z"])[2] == 0.5


MAIN = """
#include <stdio.h>
#include "policy.h"

int main(void)
{
    float x[policy_OBSERVATION_SIZE], y[policy_NUM_OUTPUTS];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        policy_outputs(x, y);
        fwrite(y, sizeof y, 1, stdout);
        ACT
    }
    return 0;
}
"""
ACTS = {
    True: "float a = (float)policy_act(x); fwrite(&a, sizeof a, 1, stdout);",
    False: "float a[policy_ACTION_SIZE]; policy_act(x, a); fwrite(a, sizeof a, 1, stdout);",
}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("name", VECTORS)
def test_a_c_header(name: str, tmp_path: Path) -> None:
    line = line_of(name)
    z, x = a_z(line), observations(line)
    line.export(tmp_path / "policy.h", z)
    discrete = isinstance(line.action, Discrete)
    (tmp_path / "main.c").write_text(MAIN.replace("ACT\n", ACTS[discrete] + "\n"))
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wdouble-promotion"]
    build = ["gcc", *strict, "-O1", "main.c", "-o", "act", "-lm"]
    subprocess.run(build, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "act"], input=x.tobytes(), capture_output=True, check=True)
    expected = line.at(z).outputs(x)
    size = expected.shape[1]
    found = np.frombuffer(done.stdout, np.float32).reshape(len(x), -1)
    same_outputs(found[:, :size], expected)
    action = found[:, size].astype(int) if discrete else found[:, size:]
    same_actions(line, action, line.at(z)(x), expected)


def test_a_header_calls_nothing_that_allocates(tmp_path: Path) -> None:
    text = line_of("fan-layer-norm").export(tmp_path / "0 odd-name.h", 0.3).read_text()
    calls = set(re.findall(r"\b([a-z]+)\(", text))
    assert calls <= {"sqrtf", "tanhf", "for", "if"}
    assert "#define policy_0_odd_name_OBSERVATION_SIZE 4" in text
    assert "seed: 2" in text


@pytest.mark.parametrize(
    ("name", "valid"), [("policy-0.3", "policy_0_3"), ("3", "policy_3"), ("ü", "policy__")]
)
def test_names_that_c_allows(name: str, valid: str) -> None:
    assert identifier(name) == valid


def test_facts_cannot_end_the_comment(tmp_path: Path) -> None:
    line = replace(line_of("bop"), suite="*/ #error @_ \n")
    text = line.export(tmp_path / "x.h", 0.5).read_text()
    assert "* / #error @ _  \n" in text


@pytest.mark.parametrize(
    ("name", "path", "options", "says"),
    [
        ("single", "x.onnx", {"as_line": True}, "single is one policy and has no line of them"),
        ("lop-two-seeds", "x.onnx", {}, "z is missing; it must be 2 non-negative numbers"),
        ("lop-two-seeds", "x.onnx", {"z": 1.5}, "z is 1.5; it must be 2 non-negative"),
        ("lop-two-seeds", "x.onnx", {"z": 0.5, "as_line": True}, "exclude each other"),
        ("lop-two-seeds", "x.h", {"as_line": True}, "holds one policy and no line"),
        ("pictures-lop", "x.h", {"z": 0.5}, "this policy pictures; export to onnx"),
        ("lop-two-seeds", "x.pt", {"z": 0.5}, "it must end in .onnx or .h"),
        ("lop-two-seeds", "x", {"z": 0.5, "to": "torch"}, "to is 'torch'; it must be onnx or c"),
    ],
)
def test_what_cannot_be_exported(
    name: str, path: str, options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(SlacklineError) as refusal:
        line_of(name).export(tmp_path / path, **options)
    assert says in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_without_onnx_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SlacklineError, match=r"pip install 'slackline-rl\[export\]'"):
        line_of("bop").export(tmp_path / "x.onnx", 0.5)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    folder = tmp_path / "run"
    shutil.copytree(Path(__file__).parents[1] / "store" / "earlier" / "word", folder)
    file = str(EARLIER / "cop-normalised.safetensors")
    out = str(tmp_path / "x" / "p.bin")
    assert told(capsys, "export", str(folder), "--to", "onnx", "--as-line") == (
        f"onnx: {folder / 'line.onnx'}\n"
    )
    assert (folder / "line.onnx").stat().st_size > 0
    told(capsys, "export", file, "--to", "c", "--z", "0.2,0.3,0.5", "--out", out)
    assert b"float p_weight_0[" in Path(out).read_bytes()
    said = refused(capsys, "export", file, "--to", "onnx", "--z", "0.5")
    assert "z is 0.5; it must be 3 non-negative numbers" in said
    assert "no seed 7" in refused(
        capsys, "export", file, "--to", "onnx", "--as-line", "--seed", "7"
    )
    assert "--to" in refused(capsys, "export", file, "--to", "pdf")
