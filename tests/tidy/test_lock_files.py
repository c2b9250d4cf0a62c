"""A lock file names public registries only, so that everybody can install from it."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.tidy.source import ROOT

PUBLIC = {"pypi.org", "files.pythonhosted.org", "registry.npmjs.org"}


def private_sources(places: Iterator[str]) -> list[str]:
    """Those of these places that are not an https address of a public registry: other hosts, files, folders."""
    return [place for place in places if urlsplit(place)[:2] not in {("https", host) for host in PUBLIC}]


def uv_sources(lock: str) -> Iterator[str]:
    return (value for key, value in re.findall(r'\b(registry|url|path|git) = "([^"]*)"', lock))


def npm_sources(lock: str) -> Iterator[str]:
    packages = json.loads(lock).get("packages", {})
    return (package["resolved"] for package in packages.values() if "resolved" in package)


def test_uv_lock_names_only_public_hosts() -> None:
    sources = list(uv_sources((ROOT / "uv.lock").read_text()))
    assert len(sources) > 100
    assert private_sources(iter(sources)) == []


def test_every_npm_lock_names_only_public_hosts() -> None:
    locks = [lock for lock in ROOT.rglob("package-lock.json") if "node_modules" not in lock.parts]
    assert {lock: bad for lock in locks if (bad := private_sources(npm_sources(lock.read_text())))} == {}


@pytest.mark.parametrize(
    "line",
    [
        'source = { registry = "https://mirror.example/simple" }',
        'source = { registry = "/srv/wheels" }',
        'sdist = { url = "http://files.pythonhosted.org/a.tar.gz", hash = "sha256:0" }',
        '    { url = "https://pypi.org.example/a.whl", hash = "sha256:0" },',
        '    { path = "a.whl" },',
    ],
)
def test_a_private_source_in_uv_lock_is_found(line: str) -> None:
    assert private_sources(uv_sources(line))


def test_a_private_source_in_an_npm_lock_is_found() -> None:
    lock = {
        "packages": {"": {"name": "dashboard"}, "node_modules/a": {"resolved": "https://npm.example/a.tgz"}}
    }
    assert private_sources(npm_sources(json.dumps(lock))) == ["https://npm.example/a.tgz"]
