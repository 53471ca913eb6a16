"""HTML from Python: everything is escaped unless it is `Html` already."""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from string import Template
from typing import Any


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(value: object) -> Html:
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def join(*parts: object) -> Html:
    return Html("".join(escape(part) for part in parts))


def element(tag: str, *children: object, **attributes: object) -> Html:
    """`element("td", "1 < 2", class_="best")`; attributes that are None are left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{written}>{join(*children)}</{tag}>")


def scroll_box(content: Html, label: str) -> Html:
    """A box that scrolls sideways by itself, so that the page never does."""
    return element("div", content, class_="scroll", role="region", aria_label=label, tabindex="0")


def fill(template: str, **values: object) -> Html:
    """A template file beside this module with its $names replaced."""
    text = files("slackline.report").joinpath(template).read_text(encoding="utf-8")
    return Html(Template(text).substitute({name: escape(v) for name, v in values.items()}))


def asset(name: str) -> Html:
    """A style sheet or script beside this module, to be inlined as it is."""
    return Html(files("slackline.report").joinpath(name).read_text(encoding="utf-8"))


def script_json(value: Any) -> Html:
    """JSON that may stand inside a script element; numbers that are not finite become null."""
    text = json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):  # NumPy's float64 included
        return float(value) if math.isfinite(value) else None
    return value
