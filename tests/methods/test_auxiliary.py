"""What is optimised beside the return, in literal numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties
from scipy import stats

from slackline.errors import SlacklineError
from slackline.methods.auxiliary import (
    Auxiliary,
    CosinePenalty,
    DiscriminatorLoss,
    DiscriminatorReward,
    LateAngle,
    Penalty,
    cosine_penalty,
    log_ratio,
)
from slackline.methods.latent import Interval, Simplex, Skills
from slackline.networks.mlp import MLP, Layer, init_mlp
from slackline.types import Array, Transition

PENALTIES: tuple[Penalty, ...] = ("tensor", "vector")


def saying(outputs: list[float], fan_in: int = 2) -> MLP:
    """A network that gives the same outputs whatever it sees."""
    bias = jnp.array([outputs])
    return MLP((Layer(jnp.zeros((1, fan_in, len(outputs))), bias),))


def transition(z: Array, observation_size: int = 2) -> Transition:
    num = z.shape[0]
    key, other = jax.random.split(jax.random.key(0))
    return Transition(
        observation=jax.random.normal(key, (num, observation_size)),
        z=z,
        action=jnp.zeros(num, jnp.int32),
        log_prob=jnp.zeros(num),
        reward=jnp.ones(num),
        terminated=jnp.zeros(num, bool),
        truncated=jnp.zeros(num, bool),
        next_observation=jax.random.normal(other, (num, observation_size)),
    )


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    ("anchors", "expected"),
    [
        ([[1.0, 2.0], [2.0, 4.0]], 1.0),
        ([[1.0, 2.0], [-2.0, -4.0]], 1.0),
        ([[1.0, 0.0], [0.0, 3.0]], 0.0),
        ([[1.0, 0.0], [2.0, 2.0]], 0.5),
        ([[3.0, 4.0], [4.0, 3.0]], (24 / 25) ** 2),
        # Pairs at 45°, 90° and 45°.
        ([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], 1.0),
        ([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], 3.0),
    ],
)
def test_cosine_penalty_literal(
    anchors: list[list[float]], expected: float, penalty: Penalty
) -> None:
    found = cosine_penalty({"theta": jnp.array(anchors)}, penalty)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_per_tensor_and_whole_vector_differ() -> None:
    """One tensor parallel and one opposed cancel as a vector, not tensor by tensor."""
    anchors = (jnp.array([[1.0], [1.0]]), jnp.array([[1.0], [-1.0]]))
    np.testing.assert_allclose(cosine_penalty(anchors, "tensor"), 1.0)
    np.testing.assert_allclose(cosine_penalty(anchors, "vector"), 0.0)


def test_per_tensor_averages_whatever_the_size() -> None:
    anchors = (jnp.array([[1.0], [1.0]]), jnp.eye(2)[:, :, None] * jnp.ones((1, 1, 50)))
    np.testing.assert_allclose(cosine_penalty(anchors, "tensor"), 0.5)


@properties
@given(
    seed=st.integers(0, 1000),
    first=st.floats(0.1, 100.0),
    second=st.floats(0.1, 100.0),
    penalty=st.sampled_from(PENALTIES),
)
def test_cosine_penalty_ignores_the_length_of_an_anchor(
    seed: int, first: float, second: float, penalty: Penalty
) -> None:
    network = init_mlp(jax.random.key(seed), (3, 4, 2), 2)

    def scaled(leaf: Array) -> Array:
        factors = jnp.array([first, -second], jnp.float32)
        return leaf * factors.reshape(2, *(1,) * (leaf.ndim - 1))

    before = cosine_penalty(network, penalty)
    after = cosine_penalty(jax.tree.map(scaled, network), penalty)
    np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-5)
    assert 0.0 <= before <= 1.0


@pytest.mark.parametrize("penalty", PENALTIES)
def test_descending_it_makes_anchors_orthogonal(penalty: Penalty) -> None:
    network = init_mlp(jax.random.key(0), (3, 4), 2)
    # Start almost parallel.
    network = jax.tree.map(lambda leaf: leaf.at[1].set(leaf[0] + 0.3 * leaf[1]), network)
    assert cosine_penalty(network, penalty) > 0.5

    @jax.jit
    def descend(network: MLP) -> MLP:
        gradient = jax.grad(cosine_penalty)(network, penalty)
        return jax.tree.map(lambda leaf, g: leaf - 0.1 * g, network, gradient)

    for _ in range(200):
        network = descend(network)
    assert cosine_penalty(network, penalty) < 1e-3


@pytest.mark.parametrize("penalty", PENALTIES)
def test_zero_anchors_give_numbers(penalty: Penalty) -> None:
    zero = jax.tree.map(jnp.zeros_like, init_mlp(jax.random.key(0), (3, 4), 2))
    value, gradient = jax.value_and_grad(cosine_penalty)(zero, penalty)
    assert value == 0.0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_beta_scales_the_penalty() -> None:
    network = init_mlp(jax.random.key(0), (3, 4), 2)
    steps = transition(jnp.full((5, 2), 0.5))
    for penalty in PENALTIES:
        found = CosinePenalty(beta=3.0, penalty=penalty).policy_loss(
            (), Simplex(2), network, steps, steps.action
        )
        np.testing.assert_allclose(found, 3.0 * cosine_penalty(network, penalty))


def test_no_auxiliary_adds_nothing() -> None:
    steps = transition(jnp.zeros((4, 0)))
    network = init_mlp(jax.random.key(0), (3, 4))
    nothing = Auxiliary()
    np.testing.assert_array_equal(nothing.bonus((), Simplex(2), steps), np.zeros(4))
    assert nothing.policy_loss((), Simplex(2), network, steps, steps.action) == 0.0
    assert nothing.own_loss((), Simplex(2), steps, steps.action) == 0.0


def test_log_ratio_softmax_literal() -> None:
    """q = (1/4, 3/4) against a prior of 1/2."""
    network = saying([0.0, float(np.log(3.0))])
    found = log_ratio(network(jnp.ones((2, 2))), Skills(2), jnp.eye(2))
    np.testing.assert_allclose(found, [np.log(0.5), np.log(1.5)], rtol=1e-5)


def test_log_ratio_gaussian_literal() -> None:
    """A Gaussian around the guess, its variance that of a uniform z: 1/12; the prior is flat."""
    z = np.array([[0.0], [0.5], [0.9]], np.float32)
    found = log_ratio(saying([0.5])(jnp.ones((3, 2))), Interval(), jnp.asarray(z))
    expected = stats.norm.logpdf(z[:, 0], 0.5, (1 / 12) ** 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(found[1], 0.3235, atol=1e-4)


def test_diayn_bonus_is_zero_for_an_uninformed_discriminator() -> None:
    latent = Skills(10)
    steps = transition(jnp.eye(10))
    bonus = DiscriminatorReward(beta=2.0).bonus(saying([0.7] * 10), latent, steps)
    np.testing.assert_allclose(bonus, np.zeros(10), atol=1e-5)


def test_diayn_bonus_is_at_most_log_skills() -> None:
    """Certain and right earns β log K."""
    latent = Skills(4)
    steps = transition(jnp.eye(4)[:1])
    bonus = DiscriminatorReward(beta=2.0).bonus(saying([50.0, 0.0, 0.0, 0.0]), latent, steps)
    np.testing.assert_allclose(bonus, [2.0 * np.log(4.0)], rtol=1e-5)


def small_network(extra: int, num_outputs: int) -> MLP:
    """Sees two numbers."""
    return init_mlp(jax.random.key(0), (2 + extra, 8, 8, num_outputs))


def test_diayn_guesses_from_where_the_step_led() -> None:
    latent, auxiliary = Skills(3), DiscriminatorReward()
    network = auxiliary.init(small_network, latent, 2)
    steps = transition(jnp.eye(3))
    elsewhere = steps._replace(next_observation=steps.next_observation + 1.0)
    earlier = steps._replace(observation=steps.observation + 1.0)
    bonus = auxiliary.bonus(network, latent, steps)
    np.testing.assert_array_equal(auxiliary.bonus(network, latent, earlier), bonus)
    assert (auxiliary.bonus(network, latent, elsewhere) != bonus).any()


def test_discriminators_learn_to_tell() -> None:
    """Descending its own loss raises the bonus where the observation gives z away."""
    latent, auxiliary = Skills(2), DiscriminatorReward()
    network = auxiliary.init(small_network, latent, 2)
    steps = transition(jnp.eye(2))._replace(next_observation=jnp.eye(2))

    @jax.jit
    def descend(network: MLP) -> MLP:
        gradient = jax.grad(auxiliary.own_loss)(network, latent, steps, steps.action)
        return jax.tree.map(lambda leaf, g: leaf - 0.5 * g, network, gradient)

    for _ in range(300):
        network = descend(network)
    bonus = auxiliary.bonus(network, latent, steps)
    np.testing.assert_allclose(bonus, np.log(2.0), atol=0.05)


def test_lc_gradient_flows_through_the_action() -> None:
    """d/da of −β log q(z|s, a): with a guess equal to a it pulls the action towards z."""
    auxiliary, latent = DiscriminatorLoss(beta=2.0), Interval()
    reads_action = MLP((Layer(jnp.array([[[0.0], [0.0], [1.0]]]), jnp.zeros((1, 1))),))
    z, action = jnp.array([[0.8]]), jnp.array([[0.3]])
    steps = transition(z)

    def loss(action: Array) -> Array:
        return auxiliary.policy_loss(reads_action, latent, reads_action, steps, action)

    # −log q = 6 (z − a)² + const, so β · 12 (a − z) = −12.
    np.testing.assert_allclose(jax.grad(loss)(action), [[-12.0]], rtol=1e-4)
    assert auxiliary.continuous_only


@pytest.mark.parametrize("kind", [CosinePenalty, DiscriminatorReward, DiscriminatorLoss])
@pytest.mark.parametrize("beta", [-0.1, float("nan"), float("inf")])
def test_bad_beta_is_refused(kind: type[CosinePenalty], beta: float) -> None:
    with pytest.raises(SlacklineError, match="beta is"):
        kind(beta=beta)


def test_unknown_penalty_is_refused() -> None:
    with pytest.raises(SlacklineError, match="it must be tensor or vector"):
        CosinePenalty(penalty="matrix")  # type: ignore[arg-type]


def at_degrees(degrees: float) -> MLP:
    """Two anchors of one weight tensor at this angle, and biases at a right angle."""
    angle = np.radians(degrees)
    weight = jnp.array([[[1.0, 0.0]], [[2.0 * np.cos(angle), 2.0 * np.sin(angle)]]], jnp.float32)
    return MLP((Layer(weight, jnp.eye(2)),))


@pytest.mark.parametrize(
    ("progress", "allowed"),
    [(0.0, 1.0), (0.4, 1.0), (0.6, np.cos(np.pi / 6) ** 2), (0.8, 0.25), (1.0, 0.25)],
)
def test_the_angle_of_a_spread_grows_on_schedule(progress: float, allowed: float) -> None:
    """From 0° at 40 % to 60° at 80 % of the training."""
    hinge = LateAngle(angle=60.0, opens=0.4, opened=0.8).at(jnp.float32(progress))
    assert float(hinge.allowed) == pytest.approx(allowed, abs=1e-6)


@pytest.mark.parametrize(("degrees", "excess"), [(30.0, 0.5), (60.0, 0.0), (75.0, 0.0)])
def test_a_spread_costs_nothing_beyond_its_angle(degrees: float, excess: float) -> None:
    """cos² 30° − cos² 60° = 1/2, halved by the tensor that is at a right angle already."""
    hinge = LateAngle(beta=3.0, angle=60.0).at(jnp.float32(1.0))
    steps = transition(jnp.ones((1, 2)))
    loss = hinge.policy_loss((), Simplex(2), at_degrees(degrees), steps, steps.action)
    assert float(loss) == pytest.approx(3.0 * excess / 2.0, abs=1e-5)


def test_what_has_no_schedule_is_the_same_at_any_time() -> None:
    penalty = CosinePenalty()
    assert penalty.at(jnp.float32(0.3)) is penalty


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"angle": 91.0}, "angle is 91"),
        ({"beta": -1.0}, "beta is -1"),
        ({"opens": 0.9, "opened": 0.9}, "opens is 0.9; it must be less than opened, 0.9"),
        ({"opened": 1.1}, "opened is 1.1"),
    ],
)
def test_impossible_spreads_are_refused(options: dict[str, float], problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        LateAngle(**options)
