"""Which adapter chooses best? Replays of adapters on tables of returns, by budget of episodes.

    python benchmarks/adapters.py sample runs/line cartpole.npz --points 33 --episodes 40
    python benchmarks/adapters.py replay cartpole.npz results/dev/narrow/ant-fan --out found.json

A table has the returns of many episodes for every seed, variation and z; it is sampled from a run,
or made of the selection episodes that a run's score table has. An adapter then asks for z's and is
told episodes of the nearest z in the table, drawn with replacement from one half of them; what it
chooses is scored on the other half. The oracle is the z that is best on all of the first half. For
every adapter and budget: the mean score, its regret (the oracle's score less that), both with the
standard error over seeds and variations, and the worst episode met on the way.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slackline.adapt.adapter import Adapter, State
from slackline.adapt.catalogue import ADAPTERS, adapter_named
from slackline.methods.catalogue import CATALOGUE
from slackline.methods.latent import Interval, Latent, Members, Simplex
from slackline.methods.training_returns import TrainingReturns

BUDGETS = (5, 10, 20, 50, 100)
ANYTIME = ("nested", "bayes", "safe")
"""Their asks do not depend on the budget: one replay answers for all of them."""
ONE_BY_ONE = 20
"""Episodes that are asked for one by one."""
MEASURED = 9
"""z's of the table that training returns are known of, as for a trained line."""


class Table(NamedTuple):
    """Returns by seed S, variation V (the first is the training environment), z K, episode M."""

    name: str
    z: np.ndarray
    """(K, size)"""
    returns: np.ndarray
    """(S, V, K, M)"""
    method: str
    """The method that was trained."""


class Cell(NamedTuple):
    """One seed on one variation, its episodes split in two."""

    z: np.ndarray
    told: np.ndarray
    """(K, M / 2)"""
    scores: np.ndarray
    """Mean of the other half, (K,)."""
    prior: TrainingReturns | None

    def nearest(self, z: np.ndarray) -> int:
        return int(np.argmin(np.square(self.z - z).sum(axis=-1)))


def sample(run: Path, out: Path, points: int, episodes: int, seeds: int, suite: str | None) -> None:
    """Play every z on every variation and keep the returns, and what the critic says of each z."""
    import slackline as sl
    from slackline.adapt.kshot import player, suite_for
    from slackline.store.pretrained import located
    from slackline.store.run import RunFolder
    from slackline.suites.suite import TRAIN

    subspaces = RunFolder(located(run)).subspaces()[:seeds]
    played = suite_for(subspaces[0], None if suite is None else sl.suite(suite))
    variations = (TRAIN, *played.variations)
    z = dense(subspaces[0].method.latent, points)
    play = player(subspaces, variations, played, len(z) * episodes)
    number = np.repeat(np.arange(len(z)), episodes)
    shape = (len(subspaces), len(variations), len(number))
    repeat = np.broadcast_to(np.tile(np.arange(episodes), len(z)), shape)
    each = np.broadcast_to(z[number], (*shape, z.shape[1]))
    returns = play.tried(each, np.broadcast_to(number, shape), repeat)
    name = f"{played.name}, {subspaces[0].method.name}"
    returns = returns.reshape(*shape[:2], len(z), episodes).astype(np.float32)
    values = critics(subspaces, played, variations, z)
    np.savez_compressed(out, name=name, z=z, returns=returns, values=values)


def dense(latent: Latent, points: int) -> np.ndarray:
    """About so many z's, evenly over the whole space: a lattice where there are three anchors or
    more."""
    if latent.is_line or not isinstance(latent, Simplex):
        return latent.grid(points)
    parts = next(n for n in range(1, 100) if math.comb(n + latent.size - 1, n) >= points)
    bars = itertools.combinations(range(parts + latent.size - 1), latent.size - 1)
    edges = np.array([(-1, *bar, parts + latent.size - 1) for bar in bars])
    return ((np.diff(edges, axis=1) - 1) / parts).astype(np.float32)


def critics(subspaces: Any, suite: Any, variations: Any, z: np.ndarray) -> np.ndarray:
    """The critic's mean V(s0, z) over twenty first observations, (S, V, K); NaN without a critic
    of z."""
    import jax

    from slackline.adapt.critic import critic_of
    from slackline.errors import SlacklineError

    keys = jax.random.split(jax.random.key(1), 20)
    params = [v.apply(suite.jax_env.default_params()) for v in variations]
    reset = jax.jit(jax.vmap(lambda key, p: suite.jax_env.reset(key, p)[0], in_axes=(0, None)))
    seen = [reset(keys, p) for p in params]
    try:
        found = [critic_of(subspace) for subspace in subspaces]
    except SlacklineError:
        return np.full((len(subspaces), len(variations), len(z)), np.nan)
    return np.array([[[c.given(one)(x).mean() for one in z] for x in seen] for c in found])


def table_of(path: Path) -> Table:
    """A sampled table, or the selection episodes that a run folder has."""
    if path.suffix == ".npz":
        kept = np.load(path)
        name = str(kept["name"])
        return Table(name, kept["z"], kept["returns"].astype(float), name.rpartition(", ")[2])
    from slackline.bench.measured import selection_returns
    from slackline.store.scores import read_scores
    from slackline.suites.suite import TRAIN

    scores = read_scores(path / "scores.parquet").filter(adapter="grid")
    scores = scores.filter(shots=scores["shots"].max())
    names = sorted(set(scores["variation"]) - {TRAIN.name})
    first = scores.filter(phase="select").sort("candidate").unique("candidate", maintain_order=True)
    z = np.array(first["z"].to_list(), np.float32)
    name = f"{scores['suite'][0]}, {scores['method'][0]} ({path.parent.name})"
    returns = selection_returns(scores, [TRAIN.name, *names])
    return Table(name, z, returns, scores["method"][0])


def cells(table: Table, repeats: int) -> Iterator[Cell]:
    """Every seed and variation, with `repeats` splits of its episodes."""
    num_seeds, num_variations, num_z, num_episodes = table.returns.shape
    known = np.unique(np.round(np.linspace(0, num_z - 1, MEASURED)).astype(int))
    if table.z.shape[1] > 2:
        known = np.arange(min(num_z, 3 * MEASURED))
    for s, v, r in np.ndindex(num_seeds, num_variations - 1, repeats):
        prior = TrainingReturns.of(table.z[known], table.returns[s, 0, known, :10])
        order = np.random.default_rng([s, v, r]).permutation(num_episodes)
        one, other = order[: num_episodes // 2], order[num_episodes // 2 :]
        one = one if len(one) else other  # one episode a z: the environment is deterministic
        returns = table.returns[s, v + 1]
        yield Cell(table.z, returns[:, one], returns[:, other].mean(axis=1), prior)


def replayed(
    adapter: Adapter, latent: Latent, cell: Cell, budgets: tuple[int, ...], seed: int
) -> list[tuple[float, float]]:
    """(score of the choice, worst episode met) at each budget."""
    generator = np.random.default_rng(seed)
    state: State = adapter.init(latent, budgets[-1], cell.prior)
    found = []
    while state.remaining:
        spent = len(state.asked)
        # One by one at first, then five at once, as in a simulation with a budget of 100.
        state, z = adapter.ask(state, 1 if spent < ONE_BY_ONE else 5)
        told = [generator.choice(cell.told[cell.nearest(one)]) for one in z]
        state = adapter.tell(state, z, np.array(told))
        if len(state.asked) in budgets:
            choice = adapter.best(state).z
            found.append((cell.scores[cell.nearest(choice)], state.returns.min()))
    return found


def latent_of(method: str, z: np.ndarray) -> Latent:
    """The space that the z's of a table are of: the method's as it is by default, where it fits."""
    usual = CATALOGUE[method].latent if method in CATALOGUE else None
    if isinstance(usual, Simplex) and usual.size == z.shape[1]:
        return usual
    if z.shape[1] == 1:
        return Interval()
    one_hot = len(z) == z.shape[1] and np.array_equal(np.sort(z, axis=1)[:, -1], np.ones(len(z)))
    return Members(len(z)) if one_hot else Simplex(z.shape[1])


def replay(
    table: Table, names: list[str], repeats: int, budgets: tuple[int, ...] = BUDGETS
) -> dict[str, Any]:
    """What every adapter scores at every budget, on average over seeds and variations."""
    latent = latent_of(table.method, table.z)
    found: dict[str, list[Any]] = {name: [] for name in names}
    default, oracle, spread = [], [], []
    for i, cell in enumerate(cells(table, repeats)):
        assert cell.prior is not None
        default.append(cell.scores[cell.nearest(cell.prior.default)])
        oracle.append(cell.scores[cell.told.mean(axis=1).argmax()])
        spread.append(cell.scores.var())
        for name in names:
            trained = float(cell.prior.mean.max())
            options = {"floor": trained - 0.5 * abs(trained)} if name == "safe" else {}
            adapter = adapter_named(name, **options)
            each = [budgets] if name in ANYTIME else [(budget,) for budget in budgets]
            found[name].append([x for b in each for x in replayed(adapter, latent, cell, b, i)])
    return {
        "table": table.name,
        "seeds x variations x z x episodes": list(table.returns.shape),
        "default": _mean(np.array(default)),
        "oracle": _mean(np.array(oracle)),
        "spread": float(np.sqrt(np.mean(spread))),
        "adapters": {
            name: _by_budget(np.array(rows), np.array(default), np.array(oracle), budgets)
            for name, rows in found.items()
        },
    }


def _by_budget(
    rows: np.ndarray, default: np.ndarray, oracle: np.ndarray, budgets: tuple[int, ...]
) -> dict[str, Any]:
    """Of (score, worst episode) by cell and budget (C, B, 2)."""
    return {
        str(budget): {
            "score": _mean(rows[:, b, 0]),
            "gain": _mean(rows[:, b, 0] - default),
            "regret": _mean(oracle - rows[:, b, 0]),
            "worst episode": _mean(rows[:, b, 1])[0],
        }
        for b, budget in enumerate(budgets)
    }


def _mean(values: np.ndarray) -> list[float]:
    """[mean, standard error]"""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return [float(f"{values.mean():.5g}"), float(f"{error:.2g}")]


def shown(found: dict[str, Any]) -> str:
    """One table in Markdown: the gain over the default z by adapter and budget."""
    default, oracle = found["default"][0], found["oracle"][0]
    budgets = list(next(iter(found["adapters"].values())))
    lines = [
        f"**{found['table']}** default z {default:.5g}, oracle {oracle:.5g}",
        "",
        "| adapter | " + " | ".join(budgets) + f" | worst episode ({budgets[-1]}) |",
        "|---|" + "---:|" * (len(budgets) + 1),
    ]
    for name, rows in found["adapters"].items():
        gains = [rows[b]["gain"] for b in budgets]
        words = [f"{gain:+.3g} ± {error:.2g}" for gain, error in gains]
        worst = f"{rows[budgets[-1]]['worst episode']:.4g}"
        lines.append(f"| `{name}` | " + " | ".join([*words, worst]) + " |")
    return "\n".join(lines) + "\n"


def summary(results: list[dict[str, Any]]) -> str:
    """Over all tables: the share of the oracle's gain that was reached and the regret as a fraction
    of the grid's, both of means over tables in units of how much scores differ along z."""

    budgets = list(results[0]["adapters"]["grid"])

    def mean(name: str, what: str, budget: str) -> float:
        rows = [(r["adapters"][name][budget][what][0], r["spread"]) for r in results]
        return float(np.mean([value / max(spread, 1e-9) for value, spread in rows]))

    gains = [(r["oracle"][0] - r["default"][0]) / max(r["spread"], 1e-9) for r in results]
    lines = [
        f"**all {len(results)} tables**: share of the oracle's gain (regret ÷ the grid's)",
        "",
        "| adapter | " + " | ".join(budgets) + " |",
        "|---|" + "---:|" * len(budgets),
    ]
    for name in results[0]["adapters"]:
        shares = [mean(name, "gain", b) / float(np.mean(gains)) for b in budgets]
        regrets = [mean(name, "regret", b) / mean("grid", "regret", b) for b in budgets]
        words = [f"{s:.2f} ({r:.2f})" for s, r in zip(shares, regrets, strict=True)]
        lines.append(f"| `{name}` | " + " | ".join(words) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sampling = verbs.add_parser("sample")
    sampling.add_argument("run", type=Path)
    sampling.add_argument("out", type=Path)
    for name, value in (("points", 33), ("episodes", 40), ("seeds", 8)):
        sampling.add_argument(f"--{name}", type=int, default=value)
    sampling.add_argument("--suite")
    replaying = verbs.add_parser("replay")
    replaying.add_argument("tables", type=Path, nargs="+")
    replaying.add_argument("--out", type=Path)
    replaying.add_argument("--repeats", type=int, default=2)
    replaying.add_argument("--seeds", type=int, default=8)
    replaying.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS))
    replaying.add_argument("--adapters", nargs="+", default=list(ADAPTERS))
    chosen = parser.parse_args()
    if chosen.verb == "sample":
        sample(chosen.run, chosen.out, chosen.points, chosen.episodes, chosen.seeds, chosen.suite)
        return
    results = []
    for path in chosen.tables:
        begun = time.process_time()
        table = table_of(path)
        table = table._replace(returns=table.returns[: chosen.seeds])
        budgets = tuple(sorted(chosen.budgets))
        results.append(replay(table, chosen.adapters, chosen.repeats, budgets))
        print(shown(results[-1]), f"({time.process_time() - begun:.0f} s)\n", flush=True)
    if "grid" in chosen.adapters and len(results) > 1:
        print(summary(results))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
