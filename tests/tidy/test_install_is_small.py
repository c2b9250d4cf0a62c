"""The base install stays small: what talks to a server is an extra."""

from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

MEGABYTES_MAX = 60


def with_its_needs(name: str, seen: set[str]) -> Iterator[str]:
    """The name of a distribution and of all it needs here, without any extra."""
    seen.add(name)
    yield name
    for need in map(Requirement, distribution(name).requires or []):
        if need.name not in seen and (need.marker is None or need.marker.evaluate({"extra": ""})):
            yield from with_its_needs(need.name, seen)


def megabytes(name: str) -> float:
    files = (file.locate() for file in distribution(name).files or [])
    return sum(file.stat().st_size for file in map(Path, files) if file.exists()) / 1e6


def test_lifesigns_and_all_it_needs_fit_in_60_mb() -> None:
    sizes = {name: megabytes(name) for name in with_its_needs("lifesigns", set())}
    assert {"lifesigns", "msgspec", "click"} <= set(sizes)
    assert sizes["msgspec"] > 0.1
    assert sum(sizes.values()) < MEGABYTES_MAX, sizes
