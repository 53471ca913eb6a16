"""JAX's own random numbers, computed faster on a CPU.

There JAX lowers the rounds of its generator, Threefry, to a loop, which compiles in less time but
writes its state to memory after every fourth round. With the rounds spelt out a draw becomes one
kernel that is vectorised: stepping CartPole with its resets takes half the time.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import random as jax_extend_random

from slackline.methods.draws import rounds
from slackline.types import Array

UNSIGNED = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}


def fast(keys: Array) -> Array:
    """The same keys, of any shape, for draws inside a program: every function of `jax.random`
    gives the same numbers for them."""
    if not is_threefry(keys):
        return keys
    return jax.random.wrap_key_data(jax.random.key_data(keys), impl=SPELT_OUT)


def is_threefry(keys: Array) -> bool:
    """Whether keys are of JAX's default kind; those that a user chose instead are left alone."""
    partitionable: Any = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
    return partitionable and str(jax.random.key_impl(keys)) == "threefry2x32"


def _hashed(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The numbers 0, 1, … in `shape`, encrypted: two words each."""
    size = math.prod(shape)
    if size >= 2**32:
        raise NotImplementedError(f"{size} random numbers at once")
    count = jax.lax.iota(np.uint32, size).reshape(shape)
    return rounds(key[0], key[1], jnp.zeros_like(count), count)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(_hashed(key, shape), axis=-1)


def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    if width not in UNSIGNED:
        raise NotImplementedError(f"random numbers of {width} bits")
    first, second = _hashed(key, shape)
    return (first ^ second).astype(UNSIGNED[width])


def _seed(seed: Array) -> Array:
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


def _fold_in(key: Array, number: Array) -> Array:
    high, low = _seed(jnp.asarray(number, np.uint32))
    return jnp.stack(rounds(key[0], key[1], high, low))


SPELT_OUT = jax_extend_random.define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,  # type: ignore[arg-type]
    name="threefry2x32-spelt-out",
    tag="tfs",
)
