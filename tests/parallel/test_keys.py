"""Keys whose rounds are spelt out: the same numbers as JAX's own, in fewer kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from slackline.parallel.keys import fast

DRAWS: dict[str, Callable[[Any], Any]] = {
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 2))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 5)),
    "twice": lambda key: jax.random.uniform(jax.random.split(key)[1], (3,)),
    "uniform": lambda key: jax.random.uniform(key, (7,)),
    "scalar": jax.random.uniform,
    "normal": lambda key: jax.random.normal(key, (4, 3)),
    "randint": lambda key: jax.random.randint(key, (5,), 0, 9),
    "dirichlet": lambda key: jax.random.dirichlet(key, jnp.full(3, 0.5), (4,)),
    "bytes": lambda key: jax.random.bits(key, (3,), "uint8"),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draws_are_jaxs_own(draw: Callable[[Any], Any]) -> None:
    key = jax.random.fold_in(jax.random.key(2**31), 7)
    assert np.array_equal(draw(key), draw(fast(key)))


def test_keys_of_any_shape() -> None:
    keys = jax.random.split(jax.random.key(1), (2, 3))

    def draw(keys: Any) -> Any:
        return jax.vmap(jax.vmap(lambda key: jax.random.uniform(key, (4,))))(keys)

    assert np.array_equal(draw(keys), jax.jit(lambda keys: draw(fast(keys)))(keys))


def test_no_loop_is_compiled() -> None:
    def draw(key: Any) -> Any:
        return jax.random.uniform(key, (8,))

    key = jax.random.key(0)
    assert "while" in jax.jit(draw).lower(key).as_text()
    assert "while" not in jax.jit(lambda key: draw(fast(key))).lower(key).as_text()


def test_other_kinds_of_keys_are_left_alone() -> None:
    key = jax.random.key(0, impl="rbg")
    assert fast(key) is key
    assert fast(fast(jax.random.key(0))).dtype == fast(jax.random.key(0)).dtype
