"""slackline list"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from slackline.cli.options import Switch
from slackline.cli.parsing import parse_as
from slackline.shown import counted


@dataclass
class List:
    """List the suites with their variations, and the methods with their options."""

    pretrained: Switch = False
    """The trained lines that come with the package instead: `sl.load("pretrained:NAME")`."""
    json: Switch = False
    """Print JSON for programs instead of text for people."""

    def run(self) -> None:
        if self.pretrained:
            lines = trained_lines()
            print(json.dumps(lines, indent=2) if self.json else trained_as_text(lines))
            return
        found = catalogue()
        print(json.dumps(found, indent=2) if self.json else as_text(found))


def catalogue() -> dict[str, Any]:
    """Everything that can be named on the command line."""
    from slackline.envs.brax import BACKENDS
    from slackline.methods.catalogue import CATALOGUE
    from slackline.suites import FURTHER, MUJOCO, NAMES, ROBOTS, builtin

    engines = (*BACKENDS[1:], MUJOCO)
    names = [n for name in NAMES for n in (name, *(f for f in FURTHER if f.startswith(f"{name}-")))]
    return {
        "suites": [
            {
                "name": s.name,
                "title": s.title,
                "horizon": s.horizon,
                "variations": [{"name": v.name, "change": v.description} for v in s.variations],
                "extras": [{"name": v.name, "change": v.description} for v in s.extras],
                "trained_as": s.name.rpartition("-")[0] if s.name in FURTHER else s.name,
                "engines": [f"{s.name}-{e}" for e in engines if s.name in ROBOTS],
                "protocol": asdict(s.protocol),
                "hyper": asdict(s.hyper),
                "exceptions": s.exceptions,
                "presets": ["paper", *s.presets],
            }
            for s in map(builtin, names)
        ],
        "methods": [
            {"name": m.name, "title": m.title, "options": m.options} for m in CATALOGUE.values()
        ],
    }


def as_text(found: dict[str, Any]) -> str:
    lines = ["suites"]
    for suite in found["suites"]:
        lines.append(f"  {suite['name']}: {headline(suite)}")
        width = max(14, *(2 + len(v["name"]) for v in suite["variations"] + suite["extras"]))
        lines += [f"    {v['name']:{width}}{v['change']}" for v in suite["variations"]]
        lines += [
            f"    {v['name']:{width}}{v['change']} (not in averages)" for v in suite["extras"]
        ]
        if suite["engines"]:
            lines.append(f"    on other physics engines: {', '.join(suite['engines'])}")
        if len(suite["presets"]) > 1 and suite["trained_as"] == suite["name"]:
            lines.append(f"    presets: {', '.join(suite['presets'])}")
    lines.append("  your own: gym:ID, envpool:ID, module:function, or a suite file (.toml)")
    lines += ["", "methods"]
    for method in found["methods"]:
        options = ", ".join(f"{name} = {value}" for name, value in method["options"].items())
        settings = f" ({options})" if options else ""
        lines.append(f"  {method['name']:12}{method['title']}{settings}")
    return "\n".join(lines)


def trained_lines() -> list[dict[str, Any]]:
    """The pretrained lines, with everything the index says of them."""
    from slackline.store.pretrained import pretrained

    return [asdict(line) | {"size": line.size} for line in pretrained().values()]


def trained_as_text(lines: list[dict[str, Any]]) -> str:
    """Three lines each: what it is, what it shows, and how well that works on all trained seeds."""
    return "\n".join(
        f"pretrained:{line['name']}: {line['method']} on {line['suite']}, seed {line['seed']}, "
        f"{line['size'] / 1000:.0f} kB\n"
        f"  {line['change']}: {line['shows']}\n"
        f"  adapting helped {line['helped']} of {line['seeds']} seeds and hurt {line['hurt']}: "
        f"{line['default']:.4g} without, {line['adapted']:.4g} with, on average"
        for line in lines
    )


def headline(suite: dict[str, Any]) -> str:
    """How it is trained and adapted, or whose training it shares."""
    if suite["trained_as"] != suite["name"]:
        home = suite["trained_as"]
        return f"other changes of {home}; adapt RUN --suite {suite['name']} for a run on {home}"
    protocol = suite["protocol"]
    return (
        f"{suite['hyper']['algorithm']}, {protocol['steps']:,} steps/seed, "
        f"{counted(protocol['shots'], 'shot')} × {counted(protocol['episodes'], 'episode')}"
    )


def parse(argv: list[str]) -> List:
    return parse_as("list", List, argv)
