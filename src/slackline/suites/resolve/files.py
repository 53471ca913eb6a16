"""Suite files (robot.toml): the training environment, its variations and the protocol."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from slackline.envs.host import HostEnv
from slackline.errors import SlacklineError, require_count, unknown
from slackline.io.decode import decode
from slackline.learn.hyper import Hyper
from slackline.suites.own import (
    HORIZON,
    PROTOCOL,
    another,
    changed_options,
    insist_on_names,
    suite_of,
)
from slackline.suites.resolve.words import environment, written
from slackline.suites.suite import Protocol, Suite, Variation

T = TypeVar("T")

MAX_BYTES = 2**20


@dataclass(frozen=True)
class _File:
    """What a suite file says, each value checked."""

    path: Path
    values: dict[str, Any]

    def take(self, table: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
        value = table.get(key, default)
        if value is None:
            raise SlacklineError(f"{self.path}: {key} is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SlacklineError(f"{self.path}: {key} is {value!r}; it must be a {kind.__name__}")
        return value

    def environment(self, table: Mapping[str, Any], options: Mapping[str, Any]) -> HostEnv:
        spec = self.take(table, "env", str)
        try:
            return environment(spec, options)
        except SlacklineError as error:
            raise SlacklineError(f"{self.path}: {error}") from error

    def decoded(self, kind: type[T], table: Mapping[str, Any], base: T) -> T:
        """`base` with the values of a table."""
        try:
            return decode(kind, table, base=base)
        except SlacklineError as error:
            raise SlacklineError(f"{self.path}: {error}") from None

    def only(self, table: Mapping[str, Any], known: set[str], where: str) -> None:
        for key in table:
            if key not in known:
                raise unknown(f"field of {where} in {self.path}", key, sorted(known))


def suite_file(path: Path) -> Suite:
    """A suite written by hand; see docs/your-environment.md."""
    values = _values(path)
    file = _File(path, values)
    counts = {f.name for f in fields(Protocol)}
    file.only(
        values, {"env", "options", "title", "horizon", "variation", "hyper"} | counts, "suite"
    )
    env = file.environment(values, file.take(values, "options", dict, default={}))
    suite = suite_of(env)
    given = {name: values[name] for name in counts & set(values)}
    horizon = values.get("horizon", HORIZON)
    require_count(f"horizon in {path}", horizon)
    tables = file.take(values, "variation", list, default=[])
    variations = tuple(_variation(file, table) for table in tables)
    try:
        insist_on_names([v.name for v in variations])
    except SlacklineError as error:
        raise SlacklineError(f"{path}: {error}") from None
    return replace(
        suite,
        name=str(path),
        title=file.take(values, "title", str, default=path.stem),
        horizon=horizon,
        variations=variations,
        hyper=_hyper(file, suite.hyper),
        protocol=file.decoded(Protocol, given, PROTOCOL),
    )


def _values(path: Path) -> dict[str, Any]:
    """What a file says. It may be a link, since the user names it, but nothing that never ends."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SlacklineError(f"{path}: is not an ordinary file")
        if status.st_size > MAX_BYTES:
            size = f"{status.st_size:,} bytes; a suite file must have at most {MAX_BYTES:,}"
            raise SlacklineError(f"{path}: has {size}")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SlacklineError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # no TOML, or numbers or nesting without end
        raise SlacklineError(f"{path}: is not a TOML file ({error})") from None


def _variation(file: _File, table: Any) -> Variation:
    if not isinstance(table, dict):
        raise SlacklineError(f"{file.path}: a variation is written [[variation]]")
    file.only(table, {"name", "env", "options"}, "a variation")
    name, options = file.take(table, "name", str), file.take(table, "options", dict, default={})
    if "env" in table:
        return another(file.environment(table, options), name)
    if not options:
        raise SlacklineError(f"{file.path}: variation {name!r} has neither options nor an env")
    written(f"{file.path}: variation {name!r}", options)
    return changed_options(name, options)


def _hyper(file: _File, default: Hyper) -> Hyper:
    given = file.take(file.values, "hyper", dict, default={})
    file.only(given, {f.name for f in fields(Hyper)}, "hyper")
    hyper = file.decoded(Hyper, given, default)
    try:
        hyper.check()
    except SlacklineError as error:
        raise SlacklineError(f"{file.path}: {error}") from None
    return hyper
