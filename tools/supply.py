"""What slackline is made of: `audit` checks it against constraints.txt, `sbom` lists it.

python tools/supply.py audit           every extra is pinned, and installed as pinned; no network
python tools/supply.py audit --files   also: every installed file has the hash its wheel said
python tools/supply.py sbom FILE       a CycloneDX list of all pinned packages
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
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
    asked = parser.parse_args()
    if asked.verb == "sbom":
        asked.out.write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")
        return
    found = list(problems())
    if asked.files:
        found += [text for name in pinned() for text in changed_files(distribution(name))]
    for problem in dict.fromkeys(found):
        print(problem, file=sys.stderr)
    if found:
        raise SystemExit(1)
    print(f"{len(pinned())} packages, of {len(asked_for()) - 1} extras and the base, as pinned")


if __name__ == "__main__":
    main()
