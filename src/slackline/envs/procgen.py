"""The libraries that EnvPool's Procgen games want from the machine: Qt 5, with which they draw.

EnvPool expects them installed system-wide. The pip package PyQt5-Qt5 has the same libraries, and
the loader takes what the process has loaded already, so no administrator is needed.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from slackline.errors import SlacklineError, needed

LIBRARIES = ("libQt5Core.so.5", "libQt5Gui.so.5")
"""In this order: the second needs the first. The rest of the package they find by themselves."""

HINT = "pip install 'slackline-rl[envpool]' brings Qt 5 for Linux on x86_64"


def load_procgen() -> ModuleType:
    """EnvPool's `procgen` module, ready to make games; needed once before `envpool.make`."""
    games = needed("envpool.procgen", "Procgen's games need EnvPool", "envpool")
    if is_ready(games):
        return games
    load_qt()
    # Importing EnvPool imports its games, and a failure for want of Qt is remembered.
    games = importlib.reload(games)
    if not is_ready(games):
        raise SlacklineError(f"EnvPool's Procgen games cannot be loaded on this machine; {HINT}")
    return games


def is_ready(games: ModuleType) -> bool:
    """Whether the module found its libraries; if not, it has no classes."""
    return "ProcgenEnvSpec" in vars(games)


def load_qt() -> None:
    """Load Qt into this process; where the platform has no such libraries, nothing happens."""
    if not sys.platform.startswith("linux"):
        return
    folder = qt_folder()
    for name in LIBRARIES:
        try:
            ctypes.CDLL(str(folder / name))
        except OSError as error:
            # Of its own, Qt wants OpenGL and GLib, which desktops have and bare containers lack.
            raise SlacklineError(
                f"Procgen's games need Qt 5, and {name} cannot be loaded ({error}); "
                "on Debian: apt install libgl1 libglib2.0-0"
            ) from None


def qt_folder() -> Path:
    """Where PyQt5-Qt5 keeps its libraries. PyQt5 itself need not be installed."""
    spec = importlib.util.find_spec("PyQt5")
    roots = spec.submodule_search_locations if spec else None
    for root in roots or ():
        folder = Path(root) / "Qt5" / "lib"
        if (folder / LIBRARIES[0]).is_file():
            return folder
    raise SlacklineError(f"Procgen's games need Qt 5, and PyQt5-Qt5 is not installed; {HINT}")
