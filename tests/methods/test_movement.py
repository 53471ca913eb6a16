"""How anchors move: where they start, and the coordinates they are updated in."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.errors import SlacklineError
from slackline.methods.catalogue import method
from slackline.methods.movement import Damped, Movement, Together, coordinates
from slackline.networks.mlp import init_mlp


def degrees_between(a: Any, b: Any) -> float:
    a, b = np.ravel(np.asarray(a, np.float64)), np.ravel(np.asarray(b, np.float64))
    return math.degrees(math.acos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))


def test_two_anchors_are_a_centre_and_a_difference() -> None:
    """Gradients (1, 2) and (3, −2): of the centre their sum, of θ_1 − c their difference."""
    gradients = {"w": jnp.array([[1.0, 2.0], [3.0, -2.0]]), "shared": jnp.array([[5.0]])}
    found = Damped(0.1).gradients(gradients)
    np.testing.assert_allclose(found["w"], [[4.0, 0.0], [-2.0, 4.0]])
    np.testing.assert_array_equal(found["shared"], [[5.0]])
    assert Movement().gradients(gradients) is gradients


def test_updates_of_the_difference_are_damped() -> None:
    updates = {"w": jnp.array([[1.0, 2.0], [4.0, -2.0]]), "shared": jnp.array([[5.0]])}
    found = Damped(0.25).updates(updates)
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
    basis, damped = jnp.asarray(coordinates(3), jnp.float32), Damped(0.1)
    anchors = jax.random.normal(jax.random.key(0), (3, 4))

    def loss(theta: Any) -> Any:
        return jnp.sum(jnp.sin(theta) * jnp.arange(12.0).reshape(3, 4))

    y = jnp.linalg.solve(basis.T, anchors)
    expected = jax.grad(lambda y: loss(basis.T @ y))(y)
    np.testing.assert_allclose(damped.gradients(jax.grad(loss)(anchors)), expected, rtol=1e-4)


def test_anchors_start_together_and_as_large_as_independent_ones() -> None:
    """sin 6° = 0.105"""
    alone = init_mlp(jax.random.key(0), (200, 200, 2), 2)
    policy = Together(start_apart=0.1045).start(alone, 1.0)
    first, second = policy.layers[0].weight
    assert degrees_between(first, second) == pytest.approx(6.0, abs=0.3)
    assert float(jnp.std(second)) == pytest.approx(float(jnp.std(first)), rel=0.02)
    free = Movement().start(alone, 1.0).layers[0].weight
    np.testing.assert_array_equal(free, alone.layers[0].weight)


@pytest.mark.parametrize(("progress", "damping"), [(0.0, 0.2), (0.29, 0.2), (0.3, 0.5), (1.0, 0.5)])
def test_differences_are_damped_less_once_anchors_open(progress: float, damping: float) -> None:
    """One option, `opens`, speaks of the damping and of the angle."""
    fan = method("fan", damping=0.2, late_damping=0.5, opens=0.3)
    assert fan.options["opens"] == 0.3
    now = fan.at(jnp.float32(progress))
    assert float(now.movement.damping) == pytest.approx(damping)  # type: ignore[attr-defined]
    assert float(now.auxiliary.allowed < 1.0) == (progress > 0.3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "options",
    [{"start_apart": 1.5}, {"late_damping": 2.0}, {"damping": -0.1}, {"damping": float("nan")}],
)
def test_impossible_movements_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(SlacklineError, match=f"{next(iter(options))} is"):
        method("fan", **options)
