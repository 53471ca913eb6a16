"""What documents show: the fenced blocks of a Markdown text."""

from __future__ import annotations

import re


def blocks(text: str, language: str) -> list[str]:
    """The contents of the blocks in `language` ("python", "sh"), in order."""
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
