"""HTML from the templates beside this module. Jinja2 escapes every value that is not `Markup`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("slackline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return found


def fill(template: str, **values: Any) -> Markup:
    """A template with its names filled in."""
    return Markup(environment().get_template(template).render(values))


def asset(name: str) -> Markup:
    """A style sheet or script beside this module, to be inlined as it is."""
    return Markup(files("slackline.report").joinpath(name).read_text(encoding="utf-8"))
