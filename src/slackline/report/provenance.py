"""How the runs were made: commands, versions, times, settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from slackline.report.results import RunResult
from slackline.report.table import Column, Row, Table


def commands_of(run: RunResult) -> list[str]:
    """The command that trained a run, then those that adapted it."""
    adapted = run.provenance.get("adaptations")
    later = adapted.values() if isinstance(adapted, dict) else []
    return [str(command) for command in (run.provenance.get("command", "unknown"), *later)]


def run_table(runs: list[RunResult], anchors: list[str]) -> Table:
    """A column a run, each an element of the page that numbers link to."""
    facts = [run_facts(run) for run in runs]
    return facts_table("Run folder", [run.folder for run in runs], facts, anchors)


def facts_table(
    name: str, columns: list[str], facts: list[dict[str, str]], anchors: Sequence[str] = ()
) -> Table:
    places = ["", *anchors] if anchors else [""] * (len(columns) + 1)
    titles = zip((name, *columns), places, strict=True)
    head = tuple(Column(title, words=True, anchor=anchor) for title, anchor in titles)
    rows = tuple(Row((fact, *(each[fact] for each in facts))) for fact in facts[0])
    return Table("", head, (rows,))


def run_facts(run: RunResult) -> dict[str, str]:
    made, config = run.provenance, run.config
    seeds = ", ".join(str(seed) for seed in config.seeds)
    return {
        "Method": run.method.title,
        "Commands": "; ".join(commands_of(run)),
        "Options": named_values(run.method.options) or "none",
        "Seeds": seeds if len(config.seeds) <= 20 else f"{len(config.seeds)} seeds",
        "Steps per seed": f"{config.steps:,}",
        "Training time, all seeds": duration(made.get("training_seconds")),
        "Speed": speed(run),
        "Started": moment(made.get("created")),
        "Finished": moment(made.get("finished")),
        "Machine": str(made.get("machine", "unknown")),
        "Versions": named_values(made.get("versions")),
    }


def named_values(values: object) -> str:
    if not isinstance(values, dict):
        return "" if values is None else str(values)
    return ", ".join(f"{name} {value}" for name, value in values.items())


def speed(run: RunResult) -> str:
    """Environment steps per second of all seeds (and members) together, compilation included."""
    seconds = run.provenance.get("training_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return "unknown"
    return f"{run.config.total_steps / seconds:,.0f} steps/s"


def moment(value: object) -> str:
    """An ISO time as people write it."""
    return str(value).replace("T", " ").replace("+00:00", " UTC") if value else "unknown"


def duration(seconds: object) -> str:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return "unknown"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def hyper_table(runs: list[RunResult]) -> Table:
    """One column where all runs agree, else a column a run."""
    every = [
        {name.replace("_", " "): plain(value) for name, value in asdict(run.config.hyper).items()}
        for run in runs
    ]
    if len(runs) > 1 and all(values == every[0] for values in every):
        return facts_table("Setting", ["all runs"], every[:1])
    return facts_table("Setting", [run.folder for run in runs], every)


def plain(value: object) -> str:
    """A setting without Python's punctuation."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " × ".join(str(item) for item in value) or "none"
    return str(value)
