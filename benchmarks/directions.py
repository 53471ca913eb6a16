"""Which ways of changing a single policy's weights give policies worth trying on a changed robot?

    slackline train ant --method single --preset fast --seeds 8 --steps 10M --out runs/ant-single
    python benchmarks/directions.py runs/ant-single --suite ant-dev
    slackline train pendulum --method single --seeds 20 --out runs/pendulum-single
    python benchmarks/directions.py runs/pendulum-single --suite pendulum-dev

For every kind of change, nine changed copies of each policy and the policy itself are played on all
variations. Printed are, as ratios to the policy itself: the copies' mean return on the unchanged
environment, and the return of the best of the ten on the changed ones, chosen by one episode each
and by half of the episodes, scored on the others. ± is the standard error over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slackline.adapt.kshot import player
from slackline.adapt.perturb import noisy
from slackline.envs.api import Discrete
from slackline.networks.mlp import Layer
from slackline.runtime import set_up_jax
from slackline.store.run import RunFolder
from slackline.subspace import Subspace
from slackline.suites import builtin
from slackline.suites.suite import TRAIN, Suite

COPIES, EPISODES = 9, 8

Generator = np.random.Generator
VIGOUR = np.linspace(0.4, 1.2, COPIES, dtype=np.float32)


def noise(size: float, policy: Any, draw: Generator) -> Any:
    """Gaussian noise on every weight, beside its tensor's root mean square."""
    return noisy(policy, size, (int(draw.integers(2**31)),))


def sensors(policy: Any, gains: np.ndarray) -> Any:
    """Other weights of whole sensors."""
    return policy.weighing(gains.astype(np.float32)[None])


def one_sensor(policy: Any, size: float, number: int) -> Any:
    gains = np.ones(policy.num_weighed)
    gains[number // 2 % len(gains)] += size * (1 - 2 * (number % 2))
    return sensors(policy, gains)


def log_normal(policy: Any, size: float, draw: Generator) -> Any:
    return sensors(policy, np.exp(normal(draw, (policy.num_weighed,), 0.0, size)))


def motors(policy: Any, gains: Any, offsets: Any = 0.0) -> Any:
    """The last layer's outputs × gains + offsets."""
    *rest, layer = policy.layers
    moved = Layer(layer.weight * gains, layer.bias * gains + offsets)
    return policy._replace(layers=(*rest, moved))


def normal(draw: Generator, shape: tuple[int, ...], mean: float, std: float) -> np.ndarray:
    return draw.normal(mean, std, shape).astype(np.float32)


def num_motors(policy: Any) -> tuple[int]:
    return (policy.layers[-1].bias.shape[-1],)


def head(policy: Any, size: float, draw: Generator) -> Any:
    """Noise on the last layer alone."""
    *rest, layer = policy.layers
    return policy._replace(layers=(*rest, noise(size, layer, draw)))


def leaning(policy: Any, size: float, draw: Generator) -> Any:
    """Every action preferred or avoided everywhere, beside what outputs can be at most."""
    weight = policy.layers[-1].weight
    reach = float(np.sqrt(np.mean(np.square(weight))) * np.sqrt(weight.shape[1]))
    return motors(policy, 1.0, normal(draw, num_motors(policy), 0.0, size * reach))


Kinds = dict[str, Callable[[Any, int, Generator], Any]]
DISCRETE: Kinds = {
    **{
        f"noise of {size:.0%} on all weights": lambda p, _, draw, size=size: noise(size, p, draw)
        for size in (0.1, 0.2, 0.3, 0.5)
    },
    **{
        f"noise of {size:.0%} on the last layer": lambda p, _, draw, size=size: head(p, size, draw)
        for size in (0.3, 0.7)
    },
    **{
        f"each action + N(0, {size:g})": lambda p, _, draw, size=size: leaning(p, size, draw)
        for size in (0.1, 0.3)
    },
    **{
        f"one sensor after the other × {1 - size:g} or {1 + size:g}": lambda p, k, _, size=size: (
            one_sensor(p, size, k)
        )
        for size in (0.5, 0.9)
    },
    "each sensor × N(1, 0.5)": lambda p, _, draw: sensors(
        p, normal(draw, (p.num_weighed,), 1.0, 0.5)
    ),
    **{
        f"each sensor × LogN(0, {size:g})": lambda p, _, draw, size=size: log_normal(p, size, draw)
        for size in (0.3, 0.5, 0.8)
    },
}
CONTINUOUS: Kinds = {
    "noise of 10 % on all weights": lambda p, _, draw: noise(0.1, p, draw),
    "noise of 20 % on all weights": lambda p, _, draw: noise(0.2, p, draw),
    "each sensor × N(1, 0.3)": lambda p, _, draw: sensors(
        p, normal(draw, (p.num_weighed,), 1.0, 0.3)
    ),
    "each motor × N(1, 0.2)": lambda p, _, d: motors(p, normal(d, num_motors(p), 1.0, 0.2)),
    "each motor + N(0, 0.2)": lambda p, _, d: motors(p, 1.0, normal(d, num_motors(p), 0.0, 0.2)),
    "all motors × 0.4 to 1.2": lambda p, k, _: motors(p, VIGOUR[k]),
}
"""(policy, number of the copy, randomness) -> the changed policy, by the kind of change."""


def copies(one: Subspace, change: Callable[..., Any]) -> list[Subspace]:
    """The policy itself and changed copies of it."""
    draws = [np.random.default_rng((one.seed, k)) for k in range(COPIES)]
    return [one, *(replace(one, policy=change(one.policy, k, d)) for k, d in enumerate(draws))]  # type: ignore[arg-type]


def played(singles: list[Subspace], suite: Suite, change: Callable[..., Any]) -> np.ndarray:
    """Returns (S, V, K, M); the first variation is the unchanged environment, the first of the K
    policies the unchanged one."""
    every = [copy for one in singles for copy in copies(one, change)]
    variations = (TRAIN, *suite.variations)
    shape = (len(every), len(variations), EPISODES)
    play = player(every, variations, suite, EPISODES)
    repeat = np.broadcast_to(np.arange(EPISODES), shape)
    returns = play.tried(np.zeros((*shape, 0), np.float32), np.zeros_like(repeat), repeat)
    return returns.reshape(len(singles), -1, *shape[1:]).swapaxes(1, 2).astype(np.float64)


def chosen(returns: np.ndarray, num: int) -> np.ndarray:
    """(S, V): the best of K by `num` episodes each, scored on the others; over all such splits."""
    found = []
    for start in range(0, EPISODES, num):
        seen = np.arange(start, start + num)
        best = returns[..., seen].mean(axis=-1).argmax(axis=-1)[..., None]
        others = np.delete(returns, seen, axis=-1).mean(axis=-1)
        found.append(np.take_along_axis(others, best, axis=-1)[..., 0])
    return np.mean(found, axis=0)


def ratio(mine: np.ndarray, single: np.ndarray) -> str:
    """Of the means over seeds (S,), with the standard error of a ratio of paired means; where
    returns are negative, of the costs, so that more than 1 is always better."""
    above, below = (mine, single) if single.mean() > 0.0 else (single, mine)
    value = above.mean() / below.mean()
    error = np.std(above - value * below, ddof=1) / np.sqrt(len(mine)) / abs(below.mean())
    return f"{value:.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--suite", required=True)
    given = parser.parse_args()
    set_up_jax()
    singles, suite = RunFolder(given.run).subspaces(), builtin(given.suite)
    print("| what is changed | copies, unchanged | best of ten by 1 episode | by 4 episodes |")
    print("|---|---:|---:|---:|")
    kinds = DISCRETE if isinstance(suite.env.action, Discrete) else CONTINUOUS
    for name, change in kinds.items():
        returns = played(singles, suite, change)
        single = returns[:, :, 0].mean(axis=-1)
        unchanged = ratio(returns[:, 0, 1:].mean(axis=(1, 2)), single[:, 0])
        found = [chosen(returns, num)[:, 1:].mean(axis=1) for num in (1, EPISODES // 2)]
        by = " | ".join(ratio(each, single[:, 1:].mean(axis=1)) for each in found)
        print(f"| {name} | {unchanged} | {by} |", flush=True)


if __name__ == "__main__":
    main()
