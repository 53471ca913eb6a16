"""Methods are told apart by colour-blind readers, too."""

from __future__ import annotations

import re

import numpy as np
import pytest

from slackline.drawing.sheet import COLOURS
from slackline.report.markup import asset

SEEN_BY = {
    "all": np.eye(3),
    "protanopes": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopes": [
        [0.3673, 0.8606, -0.2280],
        [0.2801, 0.6725, 0.0474],
        [-0.0118, 0.0429, 0.9689],
    ],
    "tritanopes": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
"""Linear RGB as they see it (Machado et al., 2009)."""
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
WHITE = TO_XYZ.sum(axis=1)


def in_lab(colours: tuple[str, ...], seen: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of hexadecimal colours, (n, 3)."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x = np.clip(linear @ seen.T, 0.0, 1.0) @ TO_XYZ.T / WHITE
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def palettes() -> list[tuple[str, ...]]:
    """The figures', the page's, and the dark page's."""
    found = re.findall(r"--c\d+: (#[0-9a-f]{6})", asset("page.css"))
    return [COLOURS, tuple(found[: len(COLOURS)]), tuple(found[len(COLOURS) :])]


def test_the_page_and_the_figures_have_the_same_colours() -> None:
    figures, page, dark = palettes()
    assert figures == page
    assert len(dark) == len(page)


@pytest.mark.parametrize("who", SEEN_BY)
@pytest.mark.parametrize("palette", palettes(), ids=["figures", "page", "dark"])
def test_no_two_methods_look_alike(palette: tuple[str, ...], who: str) -> None:
    """A difference of 2 is just seen; single policy and lines are further apart still."""
    lab = in_lab(palette, np.array(SEEN_BY[who]))
    far = np.linalg.norm(lab[:, None] - lab[None], axis=-1) + 1000.0 * np.eye(len(lab))
    assert far.min() > 13.0
    assert far[0, [2, 8]].min() > 13.0
