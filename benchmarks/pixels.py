"""How fast the convolutional network runs: FLOP/s against the machine's best matrix product.

    taskset -c 0 python benchmarks/pixels.py [--quick] [--out FILE]

Forward, and forward and backward, of IMPALA's network on FruitBot's pictures, by patch and by how
many pictures at once, and of the strided network of `--preset quick`; IMPALA's written the usual
way (reduce_window for the maxima, gradients left to XLA), outside and inside of a loop, as training
has it; and the two layouts of a picture. Best of several rounds that take turns. `taskset` keeps
XLA to one core: that is what one seed has in training.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from timing import keep, seconds

from slackline.networks import impala
from slackline.networks.impala import Impala, init_impala
from slackline.networks.strided import Strided
from slackline.suites.fruitbot import GAME, PAPER, QUICK

SEEN = GAME.observation_shape
LOOP = 4
"""Parts that a loop goes over."""


def flops(network: Impala, picture: tuple[int, ...]) -> int:
    """Multiplications and additions of one picture, forward."""
    side = network.patch(picture[2], extra=0)
    height, width, total = picture[0] // side, picture[1] // side, 0

    def convolution(weight: jax.Array) -> int:
        return 2 * height * width * int(np.prod(weight.shape[1:]))

    for block in (*network.shared, network.last):
        small: list[Any] = [block]
        if not isinstance(block, Strided):
            total += convolution(block.entry.weight)
            small = [c for pair in block.residual for c in pair]
        height, width = -(-height // 2), -(-width // 2)
        total += sum(convolution(c.weight) for c in small)
    return total + sum(2 * int(np.prod(layer.weight.shape[1:])) for layer in network.head.layers)


def usual_halved(x: jax.Array, axis: int) -> jax.Array:
    """The whole square at the first call."""
    if axis == 2:
        return x
    return jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (0, 1), (0, 1), (0, 0))
    )


def slope(network: Impala, pictures: jax.Array) -> Impala:
    return jax.grad(lambda n: jnp.mean(jnp.square(n(pictures))))(network)


def looped(network: Impala, parts: jax.Array) -> Any:
    def add(total: Any, part: jax.Array) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, slope(network, part)), None

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, network), parts)[0]


def compiled(function: Callable[..., Any], *arguments: Any, usual: bool = False) -> Any:
    """Traced now, with either way of writing convolutions and maxima."""
    ours = impala.convolved, impala.halved
    if usual:
        impala.convolved, impala.halved = impala.plain_convolved, usual_halved
    try:
        run = jax.jit(lambda *x: function(*x)).lower(*arguments).compile()
    finally:
        impala.convolved, impala.halved = ours
    return lambda: run(*arguments)


def contenders(sizes: list[int]) -> dict[str, tuple[Callable[[], Any], float]]:
    """By name, what to run and its FLOPs."""
    draw, found = np.random.default_rng(0), {}
    widths = (*PAPER.hidden, GAME.action.num_actions + 1)  # type: ignore[union-attr]
    for patch in (1, 2):
        network = init_impala(jax.random.key(0), SEEN, 0, patch, PAPER.channels, widths)
        each = flops(network, SEEN)
        for num in sizes:
            parts = jnp.asarray(draw.integers(0, 256, (LOOP, num, *SEEN)), jnp.uint8)
            name = f"patch {patch}, {num} pictures"
            found[f"{name}: forward"] = (
                compiled(lambda n, x: n(x), network, parts[0]),
                num * each,
            )
            for usual in (False, True):
                how = ", the usual way" if usual else ""
                found[f"{name}: both ways{how}"] = (
                    compiled(slope, network, parts[0], usual=usual),
                    3 * num * each,
                )
                if num == sizes[0] or not usual:
                    found[f"{name}: both ways in a loop{how}"] = (
                        compiled(looped, network, parts, usual=usual),
                        3 * LOOP * num * each,
                    )
    return found | strided(sizes) | layouts() | products()


def strided(sizes: list[int]) -> dict[str, tuple[Callable[[], Any], float]]:
    """The network of `--preset quick`."""
    draw, found = np.random.default_rng(0), {}
    widths = (*QUICK.hidden, GAME.action.num_actions + 1)  # type: ignore[union-attr]
    shape = (QUICK.patch, QUICK.channels, widths)
    network = init_impala(jax.random.key(0), SEEN, 0, *shape, kind=Strided)
    each = flops(network, SEEN)
    for num in sizes:
        parts = jnp.asarray(draw.integers(0, 256, (LOOP, num, *SEEN)), jnp.uint8)
        name = f"strided, {num} pictures"
        forward = compiled(lambda n, x: n(x), network, parts[0])
        found[f"{name}: forward"] = (forward, num * each)
        both = compiled(looped, network, parts)
        found[f"{name}: both ways in a loop"] = (both, 3 * LOOP * num * each)
    return found


def layouts() -> dict[str, tuple[Callable[[], Any], float]]:
    """One convolution of the second block with colours last, and with colours first."""
    draw, found = np.random.default_rng(0), {}
    weight = jnp.asarray(draw.normal(size=(3, 3, 32, 32)), jnp.float32)
    for name, shape in (("NHWC", (32, 16, 16, 32)), ("NCHW", (32, 32, 16, 16))):
        x = jnp.asarray(draw.normal(size=shape), jnp.float32)

        def run(x: jax.Array, weight: jax.Array, name: str = name) -> jax.Array:
            layout = (name, "HWIO", name)
            return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout)

        found[f"one convolution, {name}"] = (
            compiled(run, x, weight),
            2.0 * 32 * 16 * 16 * weight.size,
        )
    return found


def products() -> dict[str, tuple[Callable[[], Any], float]]:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1024, 1024)), jnp.float32)
    return {"matrix product, 1024": (compiled(jnp.matmul, x, x), 2.0 * 1024**3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    everyone = contenders([32] if options.quick else [32, 8, 128, 512])
    best = {name: float("inf") for name in everyone}
    for _ in range(3 if options.quick else 8):
        for name, (work, _) in everyone.items():
            best[name] = min(best[name], seconds(work))
    speed = {name: everyone[name][1] / spent / 1e9 for name, spent in best.items()}
    top = max(value for name, value in speed.items() if name.startswith("matrix"))
    for name, value in speed.items():
        print(f"{name:55} {value:7.1f} GFLOP/s  {value / top:5.0%}")
    keep({"gflops": speed}, options.out)


if __name__ == "__main__":
    main()
