"""What to do about the errors that environments and their libraries are known for.

Only the errors themselves are looked at; no library is imported for it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

PACKAGES = {
    "Box2D": "gymnasium[box2d]",
    "mujoco": "gymnasium[mujoco]",
    "imageio": "gymnasium[mujoco]",
    "pygame": "gymnasium[classic-control]",
    "ale_py": "ale-py",
    "minigrid": "minigrid",
    "cv2": "opencv-python",
}
"""What pip calls modules that environments need, where a library's error does not say."""

NAMESPACES = {"ALE": "ale-py"}
"""What pip calls the packages that register environments."""

OLD_API = (
    "follows the old Gym API: {sign}. Gymnasium's reset(seed=…, options=…) returns (observation, "
    "info) and its step(action) returns (observation, reward, terminated, truncated, info); change "
    "the environment, or wrap it in shimmy.GymV21CompatibilityV0 (pip install 'shimmy[gym-v21]')"
)

OLD_SIGNS = (
    (r"not enough values to unpack \(expected 5, got 4\)", "its step() returns 4 values"),
    (r"reset\(\) got an unexpected keyword argument", "its reset() takes no seed"),
    (r"too many values to unpack \(expected 2", "its reset() returns no info"),
)
"""What an environment of the old API makes a library of the new one say, and why."""


def advice(error: BaseException) -> str:
    """What the error means and what to do, to be read after the environment's name; "" if that is
    not known."""
    for each in _chain(error):
        found = _missing(each) or _old_api(each) or _no_display(each)
        if found:
            return found
    return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from, or in the handling of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _missing(error: BaseException) -> str:
    """A package that is not installed, with pip's command for it."""
    said = re.findall(r"pip install ['\"]?([\w.-]+(?:\[[\w,.-]+\])?)", str(error))
    if said:
        commands = " && ".join(f"pip install {_quoted(package)}" for package in said)
        return f"needs a package that is not installed: {commands}"
    namespace = re.match(r"Namespace (\w+) not found", str(error))
    if namespace and namespace[1] in NAMESPACES:
        package = NAMESPACES[namespace[1]]
        module = package.replace("-", "_")
        return (
            f"needs the package that registers {namespace[1]}: pip install {package}, and name the "
            f"environment as gym:{module}:{namespace[1]}/…"
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        module = error.name.partition(".")[0]
        package = PACKAGES.get(module)
        how = f": pip install {_quoted(package)}" if package else ""
        return f"needs the Python module {module}, which is not installed{how}"
    return ""


def _quoted(package: str) -> str:
    """Shells read brackets."""
    return f"'{package}'" if "[" in package else package


def _old_api(error: BaseException) -> str:
    if not isinstance(error, TypeError | ValueError) or not _raised_by_a_caller(error):
        return ""
    for pattern, sign in OLD_SIGNS:
        if re.search(pattern, str(error)):
            return OLD_API.format(sign=sign)
    return ""


def _raised_by_a_caller(error: BaseException) -> bool:
    """Whether it was raised by those who call environments, not within one; an error from another
    process does not say."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return True
    module = frames[-1][0].f_globals.get("__name__", "")
    return module.partition(".")[0] in ("gymnasium", "slackline")


def _no_display(error: BaseException) -> str:
    """MuJoCo's rendering where there is no screen."""
    if re.search(r"OpenGL|GLFW|gladLoadGL|MUJOCO_GL", str(error)):
        return (
            "cannot draw without a display; set the variable MUJOCO_GL=egl, or MUJOCO_GL=osmesa "
            "where there is no GPU"
        )
    return ""
