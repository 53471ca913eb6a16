"""How anchors move: where they start, how updates are damped, the angle they are held at."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import properties

from slackline.errors import SlacklineError
from slackline.methods.catalogue import method
from slackline.methods.movement import Fan, Movement, coordinates, held_apart
from slackline.networks import init_mlp


def degrees_between(a: Any, b: Any) -> float:
    a, b = np.ravel(np.asarray(a, np.float64)), np.ravel(np.asarray(b, np.float64))
    return math.degrees(math.acos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))


def test_two_anchors_held_apart_literally() -> None:
    anchors = jnp.array([[3.0, 0.1], [3.0, -0.1]])
    np.testing.assert_allclose(
        held_apart(anchors, math.pi / 2), [[3.0, 3.0], [3.0, -3.0]], rtol=1e-6
    )
    height = 3.0 / math.sqrt(3.0)  # tan 30°
    np.testing.assert_allclose(
        held_apart(anchors, math.pi / 3), [[3.0, height], [3.0, -height]], rtol=1e-6
    )


@pytest.mark.parametrize("num_anchors", [2, 3, 5])
@pytest.mark.parametrize("degrees", [1.0, 30.0, 60.0, 90.0])
def test_any_two_anchors_have_the_angle(num_anchors: int, degrees: float) -> None:
    """Differences that are equally long and equally spread: the corners of a simplex."""
    corners = np.eye(num_anchors) - 1.0 / num_anchors
    anchors = jnp.asarray(np.concatenate([np.full((num_anchors, 1), 2.0), 0.03 * corners], axis=1))
    held = held_apart(anchors, math.radians(degrees))
    for i in range(num_anchors):
        for j in range(i):
            assert degrees_between(held[i], held[j]) == pytest.approx(degrees, rel=1e-3)


@properties
@given(seed=st.integers(0, 2**31 - 1), degrees=st.floats(1.0, 90.0), anchors=st.integers(2, 5))
def test_the_centre_stays_and_what_differs_keeps_its_direction(
    seed: int, degrees: float, anchors: int
) -> None:
    before = init_mlp(jax.random.key(seed), (3, 4, 2), anchors)
    after = held_apart(before, math.radians(degrees))
    cosine = math.cos(math.radians(degrees))
    ratio = (anchors - 1) * (1.0 - cosine) / ((anchors - 1) * cosine + 1.0)
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        centre = old.mean(axis=0)
        np.testing.assert_allclose(new.mean(axis=0), centre, atol=1e-5)
        size = np.square(new - centre[None]).reshape(anchors, -1).sum(axis=1).mean()
        np.testing.assert_allclose(size, ratio * np.square(centre).sum(), rtol=1e-3)
        assert degrees_between(old - centre[None], new - centre[None]) < 0.1


def test_what_anchors_share_and_what_does_not_differ_stays() -> None:
    shared, equal = jnp.ones((1, 3)), jnp.ones((2, 3))
    for x in (shared, equal):
        np.testing.assert_array_equal(held_apart(x, 1.0), x)


def test_two_anchors_are_a_centre_and_a_difference() -> None:
    """Gradients (1, 2) and (3, −2): of the centre their sum, of θ_1 − c their difference."""
    gradients = {"w": jnp.array([[1.0, 2.0], [3.0, -2.0]]), "shared": jnp.array([[5.0]])}
    found = Fan().gradients(gradients)
    np.testing.assert_allclose(found["w"], [[4.0, 0.0], [-2.0, 4.0]])
    np.testing.assert_array_equal(found["shared"], [[5.0]])
    assert Movement().gradients(gradients) is gradients


def test_updates_of_the_difference_are_damped() -> None:
    updates = {"w": jnp.array([[1.0, 2.0], [4.0, -2.0]]), "shared": jnp.array([[5.0]])}
    found = Fan(damping=0.25).updates(updates)
    np.testing.assert_allclose(found["w"], [[2.0, 1.5], [0.0, 2.5]])
    np.testing.assert_array_equal(found["shared"], [[5.0]])
    assert Movement().updates(updates) is updates


@pytest.mark.parametrize("num_anchors", [1, 2, 3, 6])
def test_coordinates_are_a_centre_and_contrasts(num_anchors: int) -> None:
    basis = coordinates(num_anchors)
    np.testing.assert_array_equal(basis[0], 1.0)
    gram = basis @ basis.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    if num_anchors > 1:
        np.testing.assert_allclose(np.square(basis[1:]).sum(axis=0), 1.0)


def test_gradients_in_coordinates_are_the_chain_rule() -> None:
    """Of any function of θ = Bᵀ y."""
    basis, fan = jnp.asarray(coordinates(3), jnp.float32), Fan()
    anchors = jax.random.normal(jax.random.key(0), (3, 4))

    def loss(theta: Any) -> Any:
        return jnp.sum(jnp.sin(theta) * jnp.arange(12.0).reshape(3, 4))

    y = jnp.linalg.solve(basis.T, anchors)
    expected = jax.grad(lambda y: loss(basis.T @ y))(y)
    np.testing.assert_allclose(fan.gradients(jax.grad(loss)(anchors)), expected, rtol=1e-4)


def test_anchors_start_closed_and_as_large_as_independent_ones() -> None:
    alone = init_mlp(jax.random.key(0), (200, 200, 2), 2)
    policy = Fan(closed=5.0).start(alone, 1.0)
    first, second = policy.layers[0].weight
    assert degrees_between(first, second) == pytest.approx(5.0, abs=0.3)
    assert float(jnp.std(second)) == pytest.approx(float(jnp.std(first)), rel=0.02)
    np.testing.assert_array_equal(Movement().start(alone, 1.0).layers[0].weight[0], first)


@pytest.mark.parametrize(
    ("progress", "degrees"), [(0.0, 4.0), (0.4, 4.0), (0.6, 32.0), (0.8, 60.0), (1.0, 60.0)]
)
def test_the_fan_opens_on_schedule(progress: float, degrees: float) -> None:
    fan = Fan(angle=60.0, closed=4.0, opens=0.4, opened=0.8)
    held = fan.hold(jnp.array([[1.0, 0.2], [1.0, -0.2]]), jnp.float32(progress))
    assert degrees_between(*held) == pytest.approx(degrees, rel=1e-3)


def test_without_a_fan_nothing_is_held() -> None:
    anchors = jnp.array([[1.0, 0.2], [1.0, -0.2]])
    assert Movement().hold(anchors, jnp.float32(0.7)) is anchors


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"angle": 0.0}, "angle is 0"),
        ({"angle": 91.0}, "angle is 91"),
        ({"closed": -1.0}, "closed is -1"),
        ({"damping": 1.5}, "damping is 1.5"),
        ({"opens": 0.9, "opened": 0.9}, r"opens is 0.9; it must be less than opened, 0.9"),
        ({"opened": 1.1}, "opened is 1.1"),
    ],
)
def test_impossible_fans_are_refused(options: dict[str, float], problem: str) -> None:
    with pytest.raises(SlacklineError, match=problem):
        method("fan", **options)
