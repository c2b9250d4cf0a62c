"""The core reads no clock, does no I/O and takes no chances."""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source import PACKAGE, imported_modules, is_inside

VALUES_ONLY = (
    "__future__ abc bisect collections dataclasses enum fnmatch functools hashlib heapq itertools math msgspec re typing lifesigns.core lifesigns.errors"
).split()

# `hash` and `id` are chance: strings hash differently in every process, and a replay would differ.
IMPURE_CALLS = set("open print input exec eval compile breakpoint __import__ hash id".split())


def impurities(source: str) -> Iterator[str]:
    """What in this source could tell two runs with the same signals apart."""
    for line, module in imported_modules(source):
        if not any(is_inside(module, allowed) for allowed in VALUES_ONLY):
            yield f"line {line}: imports {module}"
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield f"line {node.lineno}: calls {name}()"


def test_the_core_imports_only_values_and_calls_nothing_impure() -> None:
    """Time comes in as `now`, everything else goes out as an effect."""
    files = sorted((PACKAGE / "core").rglob("*.py"))
    assert files
    found = [f"{file.relative_to(PACKAGE)} {what}" for file in files for what in impurities(file.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import collections, random",
        "from asyncio import Queue",
        "import os.path as p",
        "from lifesigns import ports",
        "from lifesigns.wire import decode",
        "from lifesigns.corex import y",
        "from . import policy",
        "def f():\n    import logging",
        "open('belief')",
        "x = [print(1)]",
        "key = hash('grep')",
    ],
)
def test_an_impure_line_is_found(source: str) -> None:
    assert list(impurities(source))


@pytest.mark.parametrize(
    "source",
    [
        "from collections.abc import Mapping",
        "from lifesigns.core.health import Health",
        "from lifesigns import errors",
        "from lifesigns.errors import Bug",
        "gate.open(now)",
    ],
)
def test_a_pure_line_is_left_in_peace(source: str) -> None:
    assert not list(impurities(source))
