"""requirements.lock pins every package by version and hash, and names no place to fetch it from."""

import re
import tomllib

from tests.architecture.tree import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PACKAGE = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)(?: ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def locked() -> dict[str, int]:
    """Package -> number of hashes, over all its versions."""
    counts: dict[str, int] = {}
    name = ""
    for line in LOCK.splitlines():
        if match := PACKAGE.match(line):
            name = match[1]
            counts.setdefault(name, 0)
        else:
            assert HASH.match(line), f"neither a pinned package nor a hash: {line}"
            counts[name] += 1
    return counts


def normalized(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_package_has_a_hash():
    assert all(count > 0 for count in locked().values())


def test_no_host_is_named():
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host|@ ", LOCK)


def test_every_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(one for group in project["optional-dependencies"].values() for one in group)]
    assert {normalized(one) for one in asked} - {project["name"]} <= set(locked())  # dev takes in infra by our own name
