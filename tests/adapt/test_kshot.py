"""K-shot adaptation where the return of every z is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import by_hand
from probes import AIM_SUITE, Aim, AimParams

from slackline.adapt import kshot
from slackline.adapt.catalogue import ADAPTERS, adapter_named
from slackline.adapt.kshot import KShot, adapt_by, adapt_many
from slackline.api import Line
from slackline.errors import SlacklineError
from slackline.methods.catalogue import CATALOGUE
from slackline.networks.mlp import MLP, Layer, init_mlp
from slackline.suites.suite import TRAIN, Variation, setting

LOW, MIDDLE, HIGH, NOISY = AIM_SUITE.variations
LOUD = replace(NOISY, apply=lambda params: params._replace(target=1.0, noise=5.0))
LINE = CATALOGUE["lop"]


@pytest.fixture(autouse=True)
def _aim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kshot, "home_of", lambda _: AIM_SUITE)


def line(seed: int, ends: tuple[float, float] = (-2.0, 2.0)) -> Line:
    """Policies that act the same whatever they see: tanh of a point between the ends, scaled."""
    bias = np.array(ends, np.float32)[:, None]
    policy = MLP((Layer(np.zeros((2, 1, 1), np.float32), bias),))  # type: ignore[arg-type]
    return Line("aim", LINE, seed, AIM_SUITE.jax_env.action, policy, policy)


def known_returns(candidates: np.ndarray, ends: tuple[float, float], target: float) -> np.ndarray:
    action = 1.0 + 2.0 * np.tanh(candidates @ np.array(ends))
    return -((action - target) ** 2)


def adapt(subspaces: list[Line], variations: list[Variation], **counts: Any) -> KShot:
    given: dict[str, Any] = {"shots": 5, "episodes": 3, "score_episodes": 4, **counts}
    return adapt_many(subspaces, variations, **given)


def test_returns_are_the_known_ones_and_the_best_candidate_is_chosen() -> None:
    ends = {0: (-2.0, 2.0), 1: (0.5, -1.5)}
    subspaces = [line(seed, ends[seed]) for seed in ends]
    variations, targets = [LOW, MIDDLE, HIGH, TRAIN], [-0.9, 1.1, 2.9, 2.0]
    found = adapt(subspaces, variations)
    assert found.returns.shape == (2, 4, 5, 3)
    assert found.scores.shape == (2, 4, 4)
    for s in ends:
        for v, target in enumerate(targets):
            expected = known_returns(found.candidates, ends[s], target)
            for episode in range(3):
                np.testing.assert_allclose(
                    found.returns[s, v, :, episode], expected, rtol=1e-4, atol=1e-5
                )
            assert found.chosen[s, v] == expected.argmax()
            np.testing.assert_allclose(found.scores[s, v], expected.max(), rtol=1e-4, atol=1e-5)
    # z near the second anchor (high) for High, the first for Low, and the ends swap for seed 1.
    np.testing.assert_array_equal(found.chosen[0], [4, 2, 0, 1])


def test_choice_is_the_best_mean_of_noisy_episodes() -> None:
    found = adapt([line(s) for s in range(12)], [LOUD], episodes=4)
    means = found.returns.mean(axis=-1)
    np.testing.assert_array_equal(found.chosen, means.argmax(axis=-1))
    assert (found.returns.max(axis=-1).argmax(axis=-1) != found.chosen).any()


def test_scores_are_fresh_episodes() -> None:
    """No return of the final score is one the choice was made on."""
    found = adapt([line(0)], [NOISY], shots=10, episodes=4, score_episodes=2000)
    assert not np.isin(found.scores, found.returns).any()
    assert len(np.unique(found.scores)) > 1900
    assert len(np.unique(found.returns)) == found.returns.size
    expected = known_returns(found.candidates, (-2.0, 2.0), 1.0)[found.chosen[0, 0]]
    np.testing.assert_allclose(found.scores.mean(), expected, atol=4 / 2000**0.5)


def test_scores_are_free_of_the_winners_curse() -> None:
    """Over many seeds the winner's selection return is far too good, its score is not."""
    found = adapt([line(s) for s in range(12)], [LOUD], shots=10, episodes=2, score_episodes=100)
    expected = known_returns(found.candidates, (-2.0, 2.0), 1.0)[found.chosen[:, 0]]
    error = 5.0 / (12 * 100) ** 0.5
    assert abs((found.scores[:, 0].mean(axis=-1) - expected).mean()) < 4 * error
    selected = found.returns[:, 0].mean(axis=-1).max(axis=-1)
    assert (selected - expected).mean() > 3.0


def test_a_variation_does_not_depend_on_those_beside_it() -> None:
    together = adapt([line(3)], [LOW, NOISY, HIGH])
    alone = adapt([line(3)], [NOISY])
    np.testing.assert_allclose(together.returns[:, 1], alone.returns[:, 0], rtol=1e-5)
    np.testing.assert_allclose(together.scores[:, 1], alone.scores[:, 0], rtol=1e-5)


def test_a_seed_does_not_depend_on_those_beside_it() -> None:
    together = adapt([line(3), line(8), line(5)], [NOISY, HIGH])
    for i, seed in enumerate((3, 8, 5)):
        alone = adapt([line(seed)], [NOISY, HIGH])
        np.testing.assert_allclose(together.returns[i], alone.returns[0], rtol=1e-5)
        np.testing.assert_allclose(together.scores[i], alone.scores[0], rtol=1e-5)
    assert (together.returns[0, 0] != together.returns[1, 0]).all()


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2], [0, 1], [0, 1, 2, 3, 4, 5]])
def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, seeds: list[int]) -> None:
    """On two devices: shared out by block, by block and seed in turn, by seed, by seeds."""
    whole = adapt([line(seed) for seed in seeds], [NOISY, HIGH], shots=7)
    monkeypatch.setattr(jax, "local_device_count", lambda: 2)
    monkeypatch.setattr(kshot, "home_of", lambda _: replace(AIM_SUITE, block=6))
    cut = adapt([line(seed) for seed in seeds], [NOISY, HIGH], shots=7)
    np.testing.assert_array_equal(whole.chosen, cut.chosen)
    np.testing.assert_allclose(whole.returns, cut.returns, rtol=1e-5)
    np.testing.assert_allclose(whole.scores, cut.scores, rtol=1e-5)


def test_agrees_with_the_adapter() -> None:
    """The same rule, ask by ask."""
    found = adapt([line(0)], [NOISY], shots=6, episodes=3)
    adapter = by_hand(LINE.latent, shots=6, episodes=3)
    episode = [0] * 6
    while adapter.remaining:
        z = adapter.ask()
        k = int(np.flatnonzero((found.candidates == z).all(axis=-1))[0])
        adapter.tell(z, float(found.returns[0, 0, k, episode[k]]))
        episode[k] += 1
    np.testing.assert_array_equal(adapter.best().z, found.candidates[found.chosen[0, 0]])


def test_subspace_adapts_by_name_by_variation_and_by_function() -> None:
    """Counts left out are the protocol's."""
    by_name = line(0).adapt("High", adapter="grid")
    assert (by_name.variation, by_name.returns.shape, by_name.scores.shape) == (
        "High",
        (5, 2),
        (3,),
    )
    np.testing.assert_array_equal(by_name.z, [0.0, 1.0])
    np.testing.assert_allclose(by_name.score, by_name.scores.mean(), rtol=1e-6)
    by_variation = line(0).adapt(HIGH, adapter="grid")
    np.testing.assert_array_equal(by_variation.returns, by_name.returns)
    mine = line(0).adapt(lambda params: params._replace(target=-0.9), shots=2, episodes=1)
    np.testing.assert_array_equal(mine.z, [1.0, 0.0])
    assert mine.returns.shape == (2, 1)


def test_the_default_z_plays_the_same_episodes_and_the_words_say_what_came_of_it() -> None:
    """Train aims at 2.0; of the z that are measured 0.375 is the nearest."""
    far = line(0).adapt("Low", budget=12, score_episodes=20)
    assert (far.adapter, len(far.scores), len(far.default_scores)) == ("bayes", 20, 20)
    np.testing.assert_array_equal(far.default_z, [0.375, 0.625])
    assert far.z[0] > 0.9
    assert far.helped.verdict == "helped"
    assert "gain" in str(far)
    assert str(far).endswith("helped")
    home = line(0).adapt(TRAIN, budget=12, score_episodes=20)
    np.testing.assert_array_equal(home.z, home.default_z)
    np.testing.assert_array_equal(home.scores, home.default_scores)
    assert home.helped.verdict == "made no difference"


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_finds_the_target(name: str) -> None:
    """The same object as in people's hands: told the same returns, it asks for the same z's."""
    options = {"floor": -1e6} if name == "safe" else {}
    adapter = adapter_named(name, **options)
    found = adapt_by(adapter, 30, [line(0), line(1)], [LOW, HIGH, NOISY], 4)
    assert found.returns.shape == (2, 3, 30)
    np.testing.assert_allclose(found.z[:, :2, 0], [[1.0, 0.0]] * 2, atol=0.1)
    state = adapter.init(LINE.latent, 30)
    while state.remaining:
        before = len(state.asked)
        state, z = adapter.ask(state, adapter.batch(30))
        np.testing.assert_array_equal(z, found.asked[0, 2, before : len(state.asked)])
        state = adapter.tell(state, z, found.returns[0, 2, before : len(state.asked)])
    np.testing.assert_array_equal(adapter.best(state).z, found.z[0, 2])


def test_the_variations_may_be_those_of_another_suite() -> None:
    """Its environment, parameters and protocol count; names may be the same."""

    class Opposite(Aim):
        def default_params(self) -> AimParams:
            return AimParams(target=-0.5)

    far = setting("High", target=2.0)
    protocol = replace(AIM_SUITE.protocol, shots=3)
    other = replace(AIM_SUITE, name="other", env=Opposite(), variations=(far,), protocol=protocol)
    found = adapt([line(0)], [far, TRAIN], suite=other)
    for v, target in enumerate((2.0, -0.5)):
        expected = known_returns(found.candidates, (-2.0, 2.0), target)
        np.testing.assert_allclose(found.returns[0, v, :, 0], expected, rtol=1e-4, atol=1e-5)
    one = line(0).adapt("High", suite=other, adapter="grid")
    assert one.returns.shape == (3, 2)
    assert one.score != line(0).adapt("High").score


def test_policies_cannot_act_in_other_spaces() -> None:
    class Wide(Aim):
        observation_size = 2

    other = replace(AIM_SUITE, name="wide", env=Wide())
    said = (
        r"wide: its observation shape is \(2,\), and the policies were trained on aim with \(1,\)"
    )
    with pytest.raises(SlacklineError, match=said):
        line(0).adapt("High", suite=other)


def test_an_episode_that_is_no_number_is_not_the_best() -> None:
    """A simulator that blows up for one z: the adapter refuses NaN, so K-shot must not pick it."""

    def explode(params: Any) -> Any:
        return params._replace(target=jnp.nan)

    broken = Variation("Broken", "no return is a number", explode)
    with pytest.raises(SlacklineError, match=r"Broken.*finite|finite.*Broken"):
        adapt([line(0)], [HIGH, broken])


@pytest.mark.parametrize("count", ["shots", "episodes", "score_episodes"])
def test_impossible_counts(count: str) -> None:
    with pytest.raises(SlacklineError, match=f"{count} is 0"):
        adapt([line(0)], [LOW], **{count: 0})


def test_too_many_episodes_are_refused_before_they_run() -> None:
    with pytest.raises(SlacklineError, match="episodes were asked for"):
        adapt([line(0)], [LOW], shots=1_000_000, episodes=1000)


@pytest.mark.parametrize("name", CATALOGUE)
def test_numpy_policy_is_the_jax_network(name: str) -> None:
    """What `at(z)` does in NumPy is what was scored in JAX."""
    method, space = CATALOGUE[name], AIM_SUITE.jax_env.action
    wide = method.conditioning.input_size(method.latent, 3)
    anchors = method.conditioning.num_anchors(method.latent)
    policy = jax.tree.map(np.asarray, init_mlp(jax.random.key(0), (wide, 8, 1), anchors))
    subspace = replace(line(0), method=method, policy=policy)
    observations = jax.random.normal(jax.random.key(1), (20, 3))
    for z in method.latent.candidates(3):
        plain = method.conditioning.at(method.latent, policy, jnp.asarray(z))
        acts = subspace.at(z if method.latent.size else None)
        expected = space.low + (jnp.tanh(plain(observations)) + 1) * (space.high - space.low) / 2  # type: ignore[union-attr]
        np.testing.assert_allclose(acts(observations), expected, rtol=1e-4, atol=1e-5)
