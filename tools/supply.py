"""What slackline is made of: `audit` checks it against constraints.txt, `sbom` lists it, `lock`
writes the hashes of all its files.

python tools/supply.py audit           every extra is pinned, and installed as pinned; no network
python tools/supply.py audit --files   also: every installed file has the hash its wheel said
python tools/supply.py sbom FILE       a CycloneDX list of all pinned packages
python tools/supply.py lock            requirements.lock anew, from the package index (a network)

Hashes have a file of their own, since pip takes none from a file of constraints when it installs
a folder. `make locked` installs by them.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.request import urlopen

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
LOCK = ROOT / "requirements.lock"
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
LINK = re.compile(r"""href=["'][^"'#]*/([^"'#/]+)#sha256=([0-9a-f]{64})["']""")
EXACT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!]+)")


def pinned() -> dict[str, str]:
    """{name: version} of constraints.txt, in which every line must be exact."""
    found: dict[str, str] = {}
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if (match := EXACT.fullmatch(line)) is None:
            raise SystemExit(f"constraints.txt: {line!r} is not NAME==VERSION")
        found[canonicalize_name(match[1])] = match[2]
    return found


def locked() -> dict[str, tuple[str, list[str]]]:
    """{name: (version, hashes)} of requirements.lock."""
    text = LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, tuple[str, list[str]]] = {}
    for line in filter(None, text.splitlines()):
        if line.startswith("#"):
            continue
        pin, *hashes = line.split()
        if (match := EXACT.fullmatch(pin)) is None:
            raise SystemExit(f"requirements.lock: {pin!r} is not NAME==VERSION")
        found[canonicalize_name(match[1])] = match[2], hashes
    return found


def unlocked() -> Iterator[str]:
    """Pins whose files have no hashes, and hashes of what is not pinned."""
    versions, known = pinned(), locked()
    for name in versions.keys() | known.keys():
        version, hashes = known.get(name, ("", []))
        if version != versions.get(name):
            yield f"{name}: requirements.lock has {version or 'nothing'}, constraints.txt " + (
                versions.get(name, "nothing")
            )
        elif not hashes or not all(map(HASH.fullmatch, hashes)):
            yield f"{name}: has no sha256 in requirements.lock"


def files_of(page: str, version: str) -> list[str]:
    """The hashes of all files of one version, as a package index lists them; of wheels, if any."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for file, digest in LINK.findall(page):
        name = unquote(file)
        try:
            parsed = parse_wheel_filename(name) if name.endswith(".whl") else _sdist(name)
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
        if parsed[1] == Version(version):
            found[name.endswith(".whl")].append(f"--hash=sha256:{digest}")
    return sorted(found[True] or found[False])


def _sdist(name: str) -> tuple[str, Version]:
    return parse_sdist_filename(name)


def lock() -> str:
    """requirements.lock; what it lacks is asked of the package index."""
    lines = [
        "# constraints.txt with the hashes of every file; `python tools/supply.py lock` writes it.",
        "# pip install --require-hashes -r requirements.lock && pip install --no-deps .",
    ]
    known = locked() if LOCK.exists() else {}
    for name, version in pinned().items():
        before, hashes = known.get(name, ("", []))
        if before != version:
            with urlopen(f"{INDEX.rstrip('/')}/{name}/", timeout=60) as answer:
                hashes = files_of(answer.read().decode(), version)
        if not hashes:
            raise SystemExit(f"{name}: {INDEX} has no files of {version}")
        lines.append(" \\\n    ".join([f"{name}=={version}", *hashes]))
    return "\n".join(lines) + "\n"


def asked_for() -> dict[str, list[Requirement]]:
    """What the base and each extra of pyproject.toml name themselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {"base": project["dependencies"], **project["optional-dependencies"]}
    return {extra: list(map(Requirement, lines)) for extra, lines in named.items()}


def needed(requirements: list[Requirement]) -> Iterator[Requirement]:
    """Those, and whatever the installed ones need in turn, on this machine."""
    queue, seen = list(requirements), set()
    while queue:
        requirement = queue.pop()
        if requirement.marker is not None and not _applies(requirement):
            continue
        yield requirement
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            below = distribution(requirement.name).requires or []
        except PackageNotFoundError:
            continue
        for text in below:
            child = Requirement(text)
            if child.marker is None or any(
                child.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
            ):
                child.marker = None
                queue.append(child)


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def problems() -> Iterator[str]:
    """Whatever is not pinned, or not installed as pinned."""
    versions = pinned()
    for extra, requirements in asked_for().items():
        for requirement in needed(requirements):
            name = canonicalize_name(requirement.name)
            if name not in versions:
                yield f"{extra}: {name} is not in constraints.txt"
            elif not requirement.specifier.contains(versions[name], prereleases=True):
                yield f"{extra}: {requirement} does not allow the pinned {versions[name]}"
    for name, version in versions.items():
        try:
            found = distribution(name).version
        except PackageNotFoundError:
            yield f"{name}: is not installed"
            continue
        if found != version:
            yield f"{name}: is installed as {found}, pinned as {version}"


def changed_files(installed: Distribution) -> Iterator[str]:
    """Files of a package that are not what its wheel brought."""
    for file in installed.files or []:
        if file.hash is None or file.hash.mode != "sha256":
            continue
        path = Path(str(file.locate()))
        digest = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            yield f"{installed.name}: {file} is missing or was changed"


def bill() -> dict[str, Any]:
    """A CycloneDX 1.5 list; the same constraints always give the same."""
    versions = pinned()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = {"type": "library", "name": project["name"], "version": project["version"]}
    parts = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        for name, version in sorted(versions.items())
    ]
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([about, parts]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": about},
        "components": parts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("audit").add_argument("--files", action="store_true")
    verbs.add_parser("sbom").add_argument("out", type=Path)
    verbs.add_parser("lock")
    asked = parser.parse_args()
    if asked.verb == "lock":
        LOCK.write_text(lock(), encoding="utf-8")
        return
    if asked.verb == "sbom":
        asked.out.write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")
        return
    found = [*problems(), *unlocked()]
    if asked.files:
        found += [text for name in pinned() for text in changed_files(distribution(name))]
    for problem in dict.fromkeys(found):
        print(problem, file=sys.stderr)
    if found:
        raise SystemExit(1)
    print(f"{len(pinned())} packages, of {len(asked_for()) - 1} extras and the base, as pinned")


if __name__ == "__main__":
    main()
