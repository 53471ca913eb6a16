"""The trained artefact: acting, saving, and refusing files it cannot trust."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from slackline.api import Line, load
from slackline.envs.api import Continuous, Discrete
from slackline.errors import SlacklineError
from slackline.io.tensors import read_tensors, write_tensors
from slackline.methods.catalogue import CATALOGUE, method
from slackline.networks.mlp import NormedMLP, init_mlp
from slackline.networks.normaliser import Normaliser
from slackline.subspace import Subspace, files, load_subspaces, save_subspaces

EARLIER = Path(__file__).parent / "earlier"
OBSERVATION = 4


TWO = Discrete(2)


def made(
    name: str = "lop", seed: int = 0, action: Discrete | Continuous = TWO, **options: Any
) -> Subspace:
    """An untrained subspace."""
    found = method(name, **options)
    outputs = action.num_actions if isinstance(action, Discrete) else action.size
    wide = found.conditioning.input_size(found.latent, OBSERVATION)
    policy_key, critic_key = jax.random.split(jax.random.key(seed))
    anchors = found.conditioning.num_anchors(found.latent)
    networks = (
        init_mlp(policy_key, (wide, 8, outputs), anchors),
        init_mlp(critic_key, (OBSERVATION + found.member.latent.size, 8, 1)),
    )
    policy, critic = jax.tree.map(np.asarray, networks)
    return Subspace("cartpole", found, seed, action, policy, critic)


BATCH = np.random.default_rng(0).normal(size=(5, OBSERVATION)).astype(np.float32)


@pytest.mark.parametrize("name", CATALOGUE)
def test_acts_on_one_observation_as_on_a_batch(name: str) -> None:
    subspace = made(name)
    z = subspace.method.latent.candidates(3)[-1]
    policy = subspace.at(z if subspace.method.latent.size else None)
    assert policy.observation_size == OBSERVATION
    batch = policy(BATCH)
    assert batch.shape == (5,)
    singles = [policy(row) for row in BATCH]
    assert all(type(action) is int for action in singles)
    np.testing.assert_array_equal(batch, singles)


def test_continuous_actions_keep_their_bounds() -> None:
    policy = made(action=Continuous(3, low=-2.0, high=5.0)).at(0.5)
    assert policy(BATCH).shape == (5, 3)
    assert policy(BATCH[0]).shape == (3,)
    np.testing.assert_allclose(policy(BATCH)[0], policy(BATCH[0]), rtol=1e-5)
    loud = policy(1e4 * BATCH)
    assert loud.min() >= -2.0
    assert loud.max() <= 5.0
    assert loud.max() > 4.9
    assert loud.min() < -1.9


def test_shorthand_is_the_first_coordinate() -> None:
    line = made()
    short, full = line.at(0.25), line.at([0.25, 0.75])
    np.testing.assert_array_equal(short.outputs(BATCH), full.outputs(BATCH))
    first = line.at(1.0).outputs(BATCH)
    weights = [np.asarray(leaf)[0] for leaf in jax.tree.leaves(line.policy)]
    hidden = np.maximum(BATCH @ weights[0] + weights[1], 0.0)
    np.testing.assert_allclose(first, hidden @ weights[2] + weights[3], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(), (3,), (5, 3), (1, 5, 4), (0,)])
def test_observation_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(SlacklineError, match=r"it must be \(4,\) or \(batch, 4\)"):
        made().at(0.5)(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_observation_that_is_no_number(bad: float) -> None:
    with pytest.raises(SlacklineError, match="observation holds NaN or infinite"):
        made().at(0.5)([0.0, bad, 0.0, 0.0])


@pytest.mark.parametrize(
    ("name", "z"),
    [("lop", None), ("lop", 1.2), ("lop", [0.3, 0.3]), ("single", 0.5), ("cop", 0.5), ("lc", -1)],
)
def test_bad_z(name: str, z: Any) -> None:
    with pytest.raises(SlacklineError, match=r"z is .*; it must be"):
        made(name).at(z)


def test_adapter_speaks_of_the_same_space() -> None:
    adapter = Line.of(made()).adapter(shots=3, episodes=2)
    assert adapter.remaining == 6
    np.testing.assert_array_equal(adapter.ask(), [0.0, 1.0])


@pytest.mark.parametrize("name", CATALOGUE)
def test_save_and_load_is_exact(name: str, tmp_path: Path) -> None:
    before = made(name, seed=7)
    path = before.save(tmp_path / "deep" / "line.safetensors")
    after = load(path)
    assert (after.suite, after.method, after.seed) == (before.suite, before.method, before.seed)
    assert after.action == before.action
    assert jax.tree.structure((before.policy, before.critic)) == jax.tree.structure(
        (after.policy, after.critic)
    )
    for a, b in zip(
        jax.tree.leaves((before.policy, before.critic)),
        jax.tree.leaves((after.policy, after.critic)),
        strict=True,
    ):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_options_and_bounds_survive(tmp_path: Path) -> None:
    before = made("lop", action=Continuous(2, -0.4, 3.0), anchors=4, beta=0.1, penalty="vector")
    after = load(before.save(tmp_path / "x"))
    assert after.method == before.method
    assert after.method.options.items() >= {"anchors": 4, "beta": 0.1, "penalty": "vector"}.items()
    assert after.action == Continuous(2, -0.4, 3.0)


def normed() -> Subspace:
    plain = made("fan")
    return replace(plain, policy=NormedMLP(plain.policy.layers))  # type: ignore[union-attr]


def test_layer_norm_survives(tmp_path: Path) -> None:
    before = normed()
    after = load(before.save(tmp_path / "x"))
    assert isinstance(after.policy, NormedMLP)
    assert read_tensors(tmp_path / "x")[1]["schema"] == 2, "earlier versions must not act by it"
    outputs = [line.at(0.3).outputs(BATCH) for line in (before, after, made("fan"))]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[0] - outputs[2]).max() > 0.01


def test_layer_norm_that_is_no_flag_is_refused(tmp_path: Path) -> None:
    path = normed().save(tmp_path / "x")
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, header | {"layer_norm": "yes"})
    with pytest.raises(SlacklineError, match=r"unusable header .*layer_norm is 'yes'"):
        load(path)


def test_several_seeds_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "three"
    save_subspaces(path, [made(seed=s) for s in (4, 2, 9)])
    assert [s.seed for s in load_subspaces(path)] == [4, 2, 9]
    found = load(path, seed=9)
    jax.tree.map(np.testing.assert_array_equal, found.policy, made(seed=9).policy)
    with pytest.raises(SlacklineError, match=r"has no seed 3 \(it has: 4, 2, 9\)"):
        load(path, seed=3)


Tensors = dict[str, np.ndarray]
Header = dict[str, Any]
Change = Callable[[Tensors, Header], Any]


def rewrite(path: Path, change: Change) -> None:
    """Change a file from within, keeping it a valid safetensors file; without its checksum, as a
    writer that knows none would, since with it any change is refused as damage."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["slackline"])
        header.pop("checksum", None)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors, header)
    save_file(tensors, path, metadata={"slackline": json.dumps(header)})


def header(**values: Any) -> Change:
    """Set entries of the header; None takes one away."""

    def change(_: Tensors, found: Header) -> None:
        found.update(values)
        for name in [name for name, value in values.items() if value is None]:
            del found[name]

    return change


def tensor(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Replace a tensor by one made from it."""

    def change(tensors: Tensors, _: Header) -> None:
        tensors[name] = make(tensors[name])

    return change


def drop(start: str) -> Change:
    """Take away every tensor whose name starts so."""

    def change(tensors: Tensors, _: Header) -> None:
        for name in [name for name in tensors if name.startswith(start)]:
            del tensors[name]

    return change


def add_stranger(tensors: Tensors, _: Header) -> None:
    tensors["stranger"] = np.ones(3, np.float32)


def drop_all_seeds(tensors: Tensors, found: Header) -> None:
    found["seeds"] = []
    tensors.update({name: array[:0] for name, array in tensors.items()})


WEIGHT, BIAS = "policy.layers.0.weight", "critic.layers.0.bias"
REFUSED = {
    "foreign format": (header(format="other"), "is not a slackline-subspace file"),
    "newer schema": (header(schema=99), "has schema 99, newer than 2"),
    "no schema": (header(schema=None), "has no valid schema number"),
    "unknown method": (header(method="magic"), "unusable header.*unknown method"),
    "unknown option": (header(options={"gamma": 1}), "unusable header.*no option"),
    "bad option": (header(options={"beta": -1.0}), "unusable header.*beta"),
    "unknown action": (header(action={"kind": "quantum"}), "unusable header"),
    "no seeds entry": (header(seeds=None), "unusable header"),
    "more seeds": (header(seeds=[0, 1]), "has 1 seeds, its header says 2"),
    "NaN": (tensor(WEIGHT, lambda w: w * np.float32(np.nan)), "holds NaN or infinite"),
    "infinite": (tensor(BIAS, lambda b: b + np.float32(np.inf)), "holds NaN or infinite"),
    "doubles": (tensor(WEIGHT, lambda w: w.astype(np.float64)), "is float64.*expected float32"),
    "missing bias": (drop("policy.layers.1.bias"), "missing or does not belong"),
    "extra tensor": (add_stranger, "missing or does not belong"),
    "layers that do not fit": (
        tensor("policy.layers.1.weight", lambda w: w[:, :, :5]),
        "does not fit the layer before it",
    ),
    "flat weight": (tensor(WEIGHT, np.ravel), "unusable header"),
    "no policy": (drop("policy"), "no policy in it"),
}
CONTRADICTIONS = {
    "another number of anchors": header(options={"anchors": 3}),
    "another number of actions": header(action={"kind": "discrete", "num_actions": 5}),
    "a method whose z is an input": header(method="diayn_r", options={}),
    "no seed at all": drop_all_seeds,
}


@pytest.mark.parametrize(("change", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_changed_file_is_refused_by_name(change: Change, problem: str, tmp_path: Path) -> None:
    path = made().save(tmp_path / "line.safetensors")
    rewrite(path, change)
    with pytest.raises(SlacklineError, match=rf"line\.safetensors: .*{problem}"):
        load(path)


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_header_that_contradicts_the_networks_is_refused(change: Change, tmp_path: Path) -> None:
    path = made().save(tmp_path / "line.safetensors")
    rewrite(path, change)
    with pytest.raises(SlacklineError, match=r"line\.safetensors: "):
        load(path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def cut_early(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scramble(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(500))


def overstate(path: Path) -> None:
    """A header length far beyond the file."""
    path.write_bytes(b"\xff" * 7 + b"\x00" + path.read_bytes()[8:])


def without_header(path: Path) -> None:
    save_file({"x": np.ones(3)}, path)


def header_of_text(path: Path) -> None:
    save_file({"x": np.ones(3)}, path, metadata={"slackline": "{not json"})


def link(path: Path) -> None:
    real = path.rename(path.with_name("real"))
    path.symlink_to(real)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    "damage",
    [cut, cut_early, empty, scramble, overstate, without_header, header_of_text, link, remove],
    ids=lambda f: f.__name__,
)
def test_a_damaged_file_is_refused_by_name(damage: Callable[[Path], None], tmp_path: Path) -> None:
    path = made().save(tmp_path / "line.safetensors")
    damage(path)
    with pytest.raises(SlacklineError, match=r"line\.safetensors: "):
        load(path)


def test_saving_again_replaces_the_file(tmp_path: Path) -> None:
    path = made(seed=1).save(tmp_path / "line.safetensors")
    replace(made(seed=1), seed=5).save(path)
    assert load(path).seed == 5
    assert [p.name for p in tmp_path.iterdir()] == ["line.safetensors"]


def test_names_in_files_are_these() -> None:
    """Whatever the fields of networks are called: files outlive them."""
    layers = [f"layers.{i}.{part}" for i in range(2) for part in ("weight", "bias")]
    both = [f"{network}.{name}" for network in ("policy", "critic") for name in layers]
    assert [name for name, _ in files._named(made())] == both
    moments = Normaliser(np.zeros((1, 4), np.float32), np.ones((1, 4), np.float32))  # type: ignore[arg-type]
    names = [name for name, _ in files._named(replace(made(), normaliser=moments))]
    assert names == [*both, "normaliser.mean", "normaliser.std"]
    (pictures,) = load_subspaces(EARLIER / "pictures-lop.safetensors")
    names = {name for name, _ in files._named(pictures)}
    expected = {"policy.shared.0.entry.weight", "policy.shared.0.residual.1.0.bias"}
    assert names >= expected | {"policy.last.residual.0.1.weight", "policy.head.layers.1.bias"}
    assert len(names) == 2 * 5 * 2 + 2 * 2


def test_a_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "line.safetensors"
    for picture in ([12, 20, 3], [13, 12, 3], [12, 12, 1], [0, 12, 3], [10**9, 10**9, 3]):
        path.write_bytes((EARLIER / "pictures-lop.safetensors").read_bytes())
        rewrite(path, header(picture=picture))
        with pytest.raises(SlacklineError, match=r"does not fit pictures of \("):
            load(path)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "fan-layer-norm",
            "Line: Fan of policies (fan), trained on cartpole, seed 2\n"
            "  z: 2 non-negative numbers with sum 1 (or one number in [0, 1], the first of them)\n"
            "  4 numbers seen, 3 continuous actions, 2 anchors of 8-6 units, LayerNorm, "
            "observations normalised",
        ),
        (
            "pictures-diayn_r_l2",
            "Line: DIAYN+R L2 (diayn_r_l2), trained on fruitbot, seed 10\n"
            "  z: one number in [0, 1]\n"
            "  12 × 12 × 3 numbers seen, 3 discrete actions, 7 hidden units, convolutions below",
        ),
    ],
)
def test_a_line_tells_what_it_is_in_three_lines(name: str, lines: str) -> None:
    assert repr(load(EARLIER / f"{name}.safetensors")) == lines


# As Stable-Baselines3 asks


@pytest.mark.parametrize("action", [Discrete(2), Continuous(3)])
def test_predict_answers_as_a_model_of_stable_baselines_does(action: Any) -> None:
    policy = made(action=action).at(0.5)
    several, state = policy.predict(BATCH, state=None, episode_start=np.ones(5, bool))
    assert state is None
    np.testing.assert_array_equal(several, policy(BATCH))
    one, state = policy.predict(BATCH[0], state="kept", deterministic=True)
    assert state == "kept"
    assert isinstance(one, np.ndarray)
    assert one.shape == several.shape[1:]
    with pytest.raises(SlacklineError, match="deterministic is False"):
        policy.predict(BATCH, deterministic=False)


def test_evaluate_policy_of_stable_baselines() -> None:
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    gymnasium = pytest.importorskip("gymnasium")
    env: Any = gymnasium.make("CartPole-v1")
    mean, _ = evaluation.evaluate_policy(made().at(0.5), env, n_eval_episodes=2, warn=False)
    assert mean >= 1.0


def test_one_policy_serves_several_threads() -> None:
    policy = made(action=Continuous(3)).at(0.5)
    expected = [policy(row) for row in BATCH]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: policy(BATCH[i % 5]), range(2000)))
    for i, action in enumerate(found):
        np.testing.assert_array_equal(action, expected[i % 5])
