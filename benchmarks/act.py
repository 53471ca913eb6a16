"""How long a trained policy takes to load and to act, on one core.

    python benchmarks/act.py [--hidden 64 64] [--observation 27] [--actions 8] [--out FILE.json]

Prints the seconds that `import slackline` and `sl.load` take in a fresh process, and microseconds a
call: one observation at a time, as a robot's control loop has them, and a batch. ONNX Runtime and
torch run the same network where they are installed. Contenders take turns; the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from slackline.api import Line
from slackline.envs.api import Continuous
from slackline.methods.catalogue import method
from slackline.networks.mlp import MLP, Layer, NormedMLP
from slackline.subspace import Subspace

ROUNDS, CALLS = 15, 2000
BATCH = 256
LOADING = """
import sys, time
begun = time.perf_counter()
import slackline as sl
from slackline.api import load
imported = time.perf_counter()
policy = load(sys.argv[1]).at(0.3)
loaded = time.perf_counter()
assert "jax" not in sys.modules
print(imported - begun, loaded - imported)
"""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Act = Callable[[np.ndarray], Any]


def line_of(size: int, hidden: list[int], num_actions: int, *, normed: bool) -> Line:
    """An untrained line of two anchors."""
    draws = np.random.default_rng(0)

    def mlp(sizes: list[int], anchors: int) -> MLP:
        def layer(fan_in: int, fan_out: int) -> Layer:
            shape = (anchors, fan_in, fan_out)
            weight = draws.uniform(-1.0, 1.0, shape) / fan_in**0.5
            return Layer(weight.astype(np.float32), np.zeros((anchors, fan_out), np.float32))  # type: ignore[arg-type]

        return MLP(tuple(layer(a, b) for a, b in pairwise(sizes)))

    policy, critic = mlp([size, *hidden, num_actions], 2), mlp([size + 2, 1], 1)
    policy = NormedMLP(policy.layers) if normed else policy
    return Line.of(Subspace("robot", method("fan"), 0, Continuous(num_actions), policy, critic))


def in_onnxruntime(line: Line, folder: Path) -> Act | None:
    if not (find_spec("onnx") and find_spec("onnxruntime")):
        print("ONNX Runtime: skipped, onnx or onnxruntime is not installed")
        return None
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = str(line.export(folder / "policy.onnx", 0.3))
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(["action"], {"observation": x})[0]


def in_torch(line: Line) -> Act | None:
    if not find_spec("torch"):
        print("torch: skipped, it is not installed")
        return None
    import torch  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    network: Any = line.network_at(0.3)
    modules: list[Any] = []
    for i, layer in enumerate(network.layers):
        linear = torch.nn.Linear(*layer.weight.shape[1:])
        linear.weight.data = torch.tensor(np.asarray(layer.weight[0]).T.copy())
        linear.bias.data = torch.tensor(np.asarray(layer.bias[0]))
        modules.append(linear)
        if i + 1 < len(network.layers):
            if isinstance(network, NormedMLP):
                modules.append(torch.nn.LayerNorm(layer.bias.shape[-1], elementwise_affine=False))
            modules.append(torch.nn.ReLU())
    model = torch.nn.Sequential(*modules, torch.nn.Tanh())

    def act(x: np.ndarray) -> Any:
        with torch.inference_mode():
            return model(torch.from_numpy(x)).numpy()

    return act


def microseconds(contenders: dict[str, Act], x: np.ndarray, calls: int) -> dict[str, float]:
    """A call's, by name."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, act in contenders.items():
            begun = time.perf_counter()
            for _ in range(calls):
                act(x)
            best[name] = min(best[name], (time.perf_counter() - begun) / calls * 1e6)
    return best


def loading(line: Line, folder: Path) -> dict[str, float]:
    """Seconds to import and to load in a fresh process, the best of five; Python keeps what it
    compiled, as it does where nobody tells it otherwise."""
    command = [sys.executable, "-c", LOADING, str(line.save(folder / "line.safetensors"))]
    kept = {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | kept
    told = [subprocess.check_output(command, env=ours, text=True).split() for _ in range(1 + 5)]
    imported, loaded = (min(map(float, times)) for times in zip(*told, strict=True))
    return {"import_seconds": imported, "load_seconds": loaded}


def acting(line: Line, folder: Path, size: int) -> dict[str, dict[str, float]]:
    """Microseconds a call, of one observation and of a batch."""
    policy = line.at(0.3)
    others = {"ONNX Runtime": in_onnxruntime(line, folder), "torch": in_torch(line)}
    found = {"slackline": policy} | {name: act for name, act in others.items() if act}
    x = np.random.default_rng(1).normal(size=(BATCH, size)).astype(np.float32)
    for name, act in found.items():
        np.testing.assert_allclose(act(x), policy(x), rtol=1e-4, atol=1e-5, err_msg=name)
    alone: dict[str, Act] = {name: (lambda x, act=act: act(x[None])) for name, act in found.items()}
    alone["slackline"] = policy
    return {
        "one": microseconds(alone, x[0], CALLS),
        f"batch of {BATCH}": microseconds(found, x, CALLS // 20),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--observation", type=int, default=27)
    parser.add_argument("--actions", type=int, default=8)
    parser.add_argument("--out", type=Path, help="also write the numbers as JSON")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # NumPy has read it already: begin again
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    result: dict[str, Any] = {}
    for kind, normed in (("plain", False), ("LayerNorm", True)):
        line = line_of(options.observation, options.hidden, options.actions, normed=normed)
        with tempfile.TemporaryDirectory() as folder:
            if not result:
                result = loading(line, Path(folder))
                print(f"import {result['import_seconds']:.3f} s, ", end="")
                print(f"load and mix {result['load_seconds']:.3f} s")
            result[kind] = acting(line, Path(folder), options.observation)
        for what, times in result[kind].items():
            told = ", ".join(f"{name} {time:.1f}" for name, time in times.items())
            print(f"{kind}, {what}, µs a call: {told}")
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
