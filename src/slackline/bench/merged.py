"""Runs of any folders, those of the same settings as one."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from slackline.bench.cells import runs_below, scores_by_suite, suite_played
from slackline.bench.measured import Measured, measure
from slackline.errors import SlacklineError
from slackline.methods.catalogue import BASELINE
from slackline.methods.catalogue import method as find_method
from slackline.store.run import RunConfig, RunFolder
from slackline.suites.recorded import spec_of
from slackline.suites.suite import Suite


@dataclass(frozen=True)
class Merged:
    """Runs that differ in their seeds alone, adapted to one suite with the same K."""

    suite: Suite
    """Whose variations were played."""
    trained_on: Suite
    config: RunConfig
    """The settings; `seeds` are those of all runs."""
    shots: int
    episodes: int
    """Selection episodes of each candidate."""
    folders: tuple[Path, ...]
    measured: Measured
    """In the unit the suite is shown in."""

    @property
    def label(self) -> str:
        """What is set otherwise than by default; the same settings have the same label."""
        return label_of(self.config, self.trained_on, self.suite.name)


class Part(NamedTuple):
    """One run adapted to one suite with one K."""

    run: RunFolder
    config: RunConfig
    trained_on: Suite
    suite: Suite
    shots: int
    episodes: int
    scores: pl.DataFrame

    @property
    def settings(self) -> str:
        """The same for runs that differ in their seeds alone. How often a candidate was tried
        matters only where there are several."""
        config = self.config.to_json() | {"seeds": None}
        spec = spec_of(self.suite)
        tried = self.episodes if self.scores["candidate"].max() else None
        return json.dumps([self.suite.name, spec, self.shots, tried, config], sort_keys=True)


def load_merged(paths: Iterable[Path]) -> tuple[list[Merged], list[str]]:
    """Every scored run below the folders, and what had to be left out, in words."""
    groups: dict[str, list[Part]] = defaultdict(list)
    left_out = []
    for run in runs_below(paths):
        for part in parts_of(run):
            missing = missing_variations(part)
            if missing:
                left_out.append(f"{run.path} at K = {part.shots}: {missing}")
            else:
                groups[part.settings].append(part)
    if not groups:
        raise SlacklineError(f"there is nothing to summarise ({left_out[0]})")
    return [merge(parts) for parts in groups.values()], left_out


def parts_of(run: RunFolder) -> list[Part]:
    """A run by the suites it was adapted to, and by K."""
    config, trained_on, found = run.config().spelt_out, run.suite(), []
    for name, scores in scores_by_suite(run).items():
        suite = suite_played(run, name, scores)
        for shots in sorted(scores["shots"].unique()):
            rows = scores.filter(shots=shots)
            tried = rows.filter(phase="select").group_by("seed", "variation", "candidate").len()
            episodes = min(tried["len"], default=0)
            found.append(Part(run, config, trained_on, suite, shots, episodes, rows))
    return found


def missing_variations(part: Part) -> str:
    """Averages are over all variations of a suite, or they do not compare."""
    wanted = [variation.name for variation in part.suite.variations]
    fresh = part.scores.filter(phase="score")
    whole = fresh.group_by("variation").agg(pl.col("seed").n_unique() == len(part.config.seeds))
    known = set(whole.filter("seed")["variation"])
    missing = [name for name in wanted if name not in known]
    if not wanted:
        return f"{part.suite.name} has no variations to average over"
    return f"{len(missing)} of {len(wanted)} variations are missing" if missing else ""


def merge(parts: list[Part]) -> Merged:
    """Parts of the same settings as one."""
    first = parts[0]
    owners: dict[int, Path] = {}
    for part in parts:
        for seed in part.config.seeds:
            other = owners.setdefault(seed, part.run.path)
            if other != part.run.path:
                raise SlacklineError(
                    f"{other} and {part.run.path} both hold seed {seed} of {part.config.method} on "
                    f"{part.suite.name} with the same settings; leave one of them out"
                )
    scores = pl.concat([part.scores for part in parts])
    scores = scores.with_columns(pl.col("return") * first.suite.display_scale)
    return Merged(
        suite=first.suite,
        trained_on=first.trained_on,
        config=replace(first.config, seeds=tuple(sorted(owners))),
        shots=first.shots,
        episodes=first.episodes,
        folders=tuple(part.run.path for part in parts),
        measured=measure(scores, [variation.name for variation in first.suite.variations]),
    )


def label_of(config: RunConfig, suite: Suite, played: str) -> str:
    """The settings in which a run differs from its suite's own, as in "fast, beta=0.1"."""
    usual = find_method(config.method, **suite.options.get(config.method, {})).options
    preset, hyper = nearest_preset(suite, config)
    words = [] if config.suite == played else [f"trained on {config.suite}"]
    words += [] if preset == "paper" else [preset]
    words += ["begun from single"] if config.from_single else []
    changed = hyper | {k: v for k, v in config.options.items() if v != usual[k]}
    return ", ".join([*words, *(f"{name}={brief(value)}" for name, value in changed.items())])


def nearest_preset(suite: Suite, config: RunConfig) -> tuple[str, dict[str, Any]]:
    """The preset that explains most of the hyper-parameters, and those it does not."""
    own = asdict(config.hyper)

    def unlike(preset: str) -> dict[str, Any]:
        usual = asdict(suite.preset(preset, config.method))
        return {name: value for name, value in own.items() if value != usual[name]}

    presets = {name: unlike(name) for name in ("paper", *suite.presets)}
    return min(presets.items(), key=lambda item: len(item[1]))


def brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def begun_from(merged: Merged, among: Iterable[Merged]) -> Merged | None:
    """The single policies, seed by seed, that the runs of a fan began as, or that lines of
    vigour, reweighted sensors and noisy copies are made of; None where runs began by themselves
    or one is missing."""
    wanted = set(merged.config.seeds)
    if not (merged.config.from_single or merged.config.resolved_method.made_of_single):
        return None
    seeds, like = merged.config.seeds, merged.config
    alike = (merged.suite.name, BASELINE, like.hyper, like.steps)
    for each in among:
        its = each.config
        if (each.suite.name, its.method, its.hyper, its.steps) == alike and wanted <= set(
            its.seeds
        ):
            measured = each.measured.of_rows([its.seeds.index(seed) for seed in seeds])
            return replace(each, config=replace(its, seeds=seeds), measured=measured)
    return None


def best_single(merged: Merged, among: Iterable[Merged]) -> Merged | None:
    """The single policy to compare with: of the same suite and steps, the settings that score best
    on the training environment (of ties, the first by label).

    A single policy scores the same whatever K is, so that of equal settings the K with most seeds
    is taken.
    """
    by_label: dict[str, list[Merged]] = defaultdict(list)
    for each in among:
        same = (each.suite.name, each.config.steps) == (merged.suite.name, merged.config.steps)
        if each.config.method == BASELINE and same:
            by_label[each.label].append(each)

    def seeds(single: Merged) -> tuple[int, bool]:
        return len(single.config.seeds), single.shots == merged.shots

    def on_train(single: Merged) -> float:
        train = single.measured.train
        return -math.inf if train is None else float(train.mean())

    singles = [max(by_label[label], key=seeds) for label in sorted(by_label)]
    return max(singles, key=on_train, default=None)
