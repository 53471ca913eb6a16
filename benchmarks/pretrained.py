"""Make one of the trained lines that come with the package, from a run of several seeds.

    slackline train pendulum --method lop --seeds 10 --first-seed 3000 --out runs/pendulum-lop
    python benchmarks/pretrained.py pendulum runs/pendulum-lop Short "the pendulum is half as long"

Keeps the seed with the highest training return (the lowest such seed), adapts all seeds to the
change and writes both into src/slackline/data/pretrained. `--look` prints and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

from slackline.adapt.catalogue import BUDGET, WITH_BUDGET, spending
from slackline.adapt.helped import Helped, helped
from slackline.adapt.kshot import adapt_by, suite_for
from slackline.adapt.trained import with_training_returns
from slackline.io.files import read_json, write_json
from slackline.runtime import set_up_jax
from slackline.store.pretrained import FOLDER, INDEX
from slackline.store.record import RECORD, SUBSPACE
from slackline.store.run import RunFolder
from slackline.subspace import Subspace, save_subspaces

SCORE_EPISODES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep one trained line.")
    parser.add_argument("name")
    parser.add_argument("run", type=RunFolder)
    parser.add_argument("change", help="the variation that shows adapting")
    parser.add_argument("shows", help="what it is, in words")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--score-episodes", type=int, default=SCORE_EPISODES)
    parser.add_argument("--look", action="store_true", help="print, write nothing")
    asked = parser.parse_args()
    set_up_jax()
    suite = asked.run.suite()
    subspaces = with_training_returns(asked.run.subspaces(), suite)
    best = max(subspaces, key=lambda each: (round(along(each), 1), -each.seed))
    verdicts = adapted(subspaces, asked.change, asked.budget, asked.score_episodes)
    for each, verdict in zip(subspaces, verdicts, strict=True):
        print(f"seed {each.seed}, {along(each):.4g} in training; {asked.change}: {verdict}")
    entry = described(asked, best, verdicts)
    print(json.dumps({asked.name: entry}, indent=2))
    if not asked.look:
        keep(asked.name, asked.run, best, entry)


def along(subspace: Subspace) -> float:
    """The training return, mean over the line."""
    assert subspace.training is not None
    return float(subspace.training.mean.mean())


def adapted(
    subspaces: list[Subspace], change: str, budget: int, score_episodes: int
) -> list[Helped]:
    """What adapting by the default adapter does for each seed."""
    chosen = spending(subspaces[0].method.latent, budget=budget)
    variation = suite_for(subspaces[0], None).variation(change)
    found = adapt_by(
        chosen.adapter, chosen.budget, subspaces, [variation], score_episodes, beside_default=True
    )
    assert found.default_scores is not None
    pairs = zip(found.scores[:, 0], found.default_scores[:, 0], strict=True)
    return [helped(*pair) for pair in pairs]


def described(asked: Any, best: Subspace, verdicts: list[Helped]) -> dict[str, Any]:
    """The index's entry: the fields of `slackline.store.pretrained.Pretrained`."""
    count = Counter(verdict.verdict for verdict in verdicts)
    run = f"runs/{asked.run.path.name}"
    return {
        "suite": best.suite,
        "method": best.method.name,
        "seed": best.seed,
        "seeds": len(verdicts),
        "command": trained_by(asked.run),
        "training_return": float(f"{along(best):.5g}"),
        "change": asked.change,
        "adapt": f"slackline adapt {run} --variation {shlex.quote(asked.change)} "
        f"--adapter {WITH_BUDGET} --budget {asked.budget} --score-episodes {asked.score_episodes}",
        "helped": count["helped"],
        "hurt": count["hurt"],
        "default": float(f"{sum(v.default for v in verdicts) / len(verdicts):.5g}"),
        "adapted": float(f"{sum(v.adapted for v in verdicts) / len(verdicts):.5g}"),
        "shows": asked.shows,
    }


def trained_by(run: RunFolder) -> str:
    """The command that trained a run (after that of the run it began from, if it did), without the
    paths of the machine it ran on."""
    _, *words = shlex.split(run.read()["provenance"]["command"])
    words = [word for word in words if word != "--resume"]
    if "--out" in words:
        words[words.index("--out") + 1] = f"runs/{run.path.name}"
    if not {"--from", "--open"} & {*words}:
        return shlex.join(["slackline", *words])
    place = next(i for i, word in enumerate(words) if (Path(word) / RECORD).exists())
    single = RunFolder(words[place])
    words[place] = f"runs/{single.path.name}"
    return f"{trained_by(single)} && {shlex.join(['slackline', *words])}"


def keep(name: str, run: RunFolder, best: Subspace, entry: dict[str, Any]) -> None:
    folder: Path = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    record = run.read()
    record["config"]["seeds"] = [best.seed]
    record["provenance"].pop("adaptations", None)
    record["provenance"]["command"] = entry["command"]
    write_json(folder / RECORD, record)
    save_subspaces(folder / SUBSPACE, [best])
    index = read_json(INDEX) if INDEX.exists() else {}
    write_json(INDEX, index | {name: entry})


if __name__ == "__main__":
    main()
