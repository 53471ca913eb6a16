"""The MuJoCo models of HalfCheetah-v5 and Ant-v5 with other parts, gravity or friction, as files.

The stock file is edited as XML and every number written with all its digits, because MuJoCo's own
writer keeps six. Each change multiplies just what it names in the compiled model; the tests read
it there. MuJoCo itself is not needed: EnvPool and Gymnasium bring their own.
"""

from __future__ import annotations

import hashlib
import math
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from slackline.errors import SlacklineError, needed, require_number, unknown
from slackline.io.cache import cache_folder, keep

STOCK = {"halfcheetah": "half_cheetah.xml", "ant": "ant.xml"}
"""The robots' files among EnvPool's assets, which are Gymnasium's byte for byte."""

ASSETS = Path("mujoco", "assets_gym")
"""Where EnvPool looks for a model, below its `base_path`."""

PARTS = {
    "feet": ("bfoot", "ffoot"),
    "shins": ("bshin", "fshin"),
    "thighs": ("bthigh", "fthigh"),
    "torso": ("torso",),
}
"""The half-cheetah's bodies (Brax's links too) by the paper's names. The head is a capsule of the
torso's body."""


class Factors(NamedTuple):
    """What is multiplied in a robot's model, and by how much."""

    gravity: float = 1.0
    friction: float = 1.0
    """Every friction coefficient, the floor's too: a contact takes the larger of two."""
    feet: float = 1.0
    """Mass and radius, as of the other parts; lengths stay. Capsules stay uniform inside, so the
    centre of mass stays and the inertia is that of the new capsules."""
    shins: float = 1.0
    thighs: float = 1.0
    torso: float = 1.0


STOCK_FACTORS = Factors()


def envpool_options(robot: str, factors: Factors = STOCK_FACTORS) -> dict[str, str]:
    """What to give to `envpool.make` for this model; nothing for the stock one.

    EnvPool puts `xml_file` behind a folder below `base_path`, so an absolute path will not do.
    """
    check(robot, factors)
    if factors == STOCK_FACTORS:
        return {}
    path = model_file(robot, factors)
    return {"base_path": str(path.parents[len(ASSETS.parts)]), "xml_file": path.name}


def model_file(robot: str, factors: Factors = STOCK_FACTORS) -> Path:
    """A file with this model, for Gymnasium's `xml_file`; written if it is not there yet.

    The name is the content's hash, so files never change and processes may share them. It also
    keeps clear of EnvPool's habit to prefer `x_envpool.xml` where it is asked for `x.xml`.
    """
    content = model_xml(robot, factors).encode()
    name = f"{robot}-{hashlib.sha256(content).hexdigest()[:16]}.xml"
    path = cache_folder("models").absolute() / ASSETS / name
    keep(path, content)
    return path


def model_xml(robot: str, factors: Factors = STOCK_FACTORS) -> str:
    """The robot's model in MuJoCo's XML, with what `factors` names multiplied."""
    check(robot, factors)
    root = ElementTree.fromstring(stock_xml(robot))
    spell_out_masses(root)
    scale_gravity(root, factors.gravity)
    scale_friction(root, factors.friction)
    for part, bodies in PARTS.items():
        for body in bodies if robot == "halfcheetah" else ():
            scale_body(root, body, getattr(factors, part))
    return ElementTree.tostring(root, encoding="unicode")


def check(robot: str, factors: Factors) -> None:
    """Refuse what cannot be built."""
    if robot not in STOCK:
        raise unknown("robot", robot, STOCK)
    for what, factor in factors._asdict().items():
        require_number(f"factor of {what}", factor, above=0.0, high=100.0)
        if what in PARTS and factor != 1.0 and robot != "halfcheetah":
            raise SlacklineError(
                f"part is {what!r}; only the half-cheetah has the parts this changes"
            )


def stock_xml(robot: str) -> str:
    """The robot's file as EnvPool has it."""
    assets = files(needed("envpool_assets", f"{robot}-mujoco needs EnvPool", "envpool"))
    return assets.joinpath(*ASSETS.parts, STOCK[robot]).read_text(encoding="utf-8")


def spell_out_masses(root: Element) -> None:
    """Give every capsule the mass it has now, where the file only says what all weigh together.

    `settotalmass` scales the masses of the compiled model, so it would undo a part's change by
    making all parts lighter.
    """
    compiler = root.find("compiler")
    total = None if compiler is None else compiler.attrib.pop("settotalmass", None)
    if total is None:
        return
    geoms = root.findall(".//body/geom")
    volumes = [capsule_volume(geom) for geom in geoms]
    for geom, volume in zip(geoms, volumes, strict=True):
        geom.set("mass", _written([float(total) * volume / sum(volumes)]))


def capsule_volume(geom: Element) -> float:
    """A cylinder and a ball: π r² (l + 4/3 r), whichever way the length l is given."""
    radius, *half = _numbers(geom, "size")
    if "fromto" in geom.attrib:
        ends = _numbers(geom, "fromto")
        length = math.dist(ends[:3], ends[3:])
    else:
        length = 2.0 * half[0]
    return math.pi * radius**2 * (length + 4.0 / 3.0 * radius)


def scale_gravity(root: Element, factor: float) -> None:
    option = root.find("option")
    if option is None:
        option = ElementTree.SubElement(root, "option")
    option.attrib.setdefault("gravity", "0 0 -9.81")  # MuJoCo's own
    _scale(option, "gravity", factor)


def scale_friction(root: Element, factor: float) -> None:
    """Both files give friction in their defaults, so no geom has MuJoCo's own."""
    for geom in root.iter("geom"):
        if "friction" in geom.attrib:
            _scale(geom, "friction", factor)


def scale_body(root: Element, name: str, factor: float) -> None:
    """Mass and radius of a body's own capsules × factor."""
    for geom in root.findall(f".//body[@name='{name}']/geom"):
        _scale(geom, "mass", factor)
        radius, *half = _numbers(geom, "size")
        geom.set("size", _written([radius * factor, *half]))


def _scale(element: Element, attribute: str, factor: float) -> None:
    element.set(attribute, _written([x * factor for x in _numbers(element, attribute)]))


def _numbers(element: Element, attribute: str) -> list[float]:
    return [float(word) for word in element.attrib[attribute].split()]


def _written(numbers: list[float]) -> str:
    """With all digits, so that reading gives the same numbers."""
    return " ".join(repr(float(number)) for number in numbers)
