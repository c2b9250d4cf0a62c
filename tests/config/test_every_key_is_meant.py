"""No key of the configuration is read, checked, shown, and then used by nobody.

A coarse net: it looks for the name of each value outside of the settings. What a key does is shown by the tests of the part that
uses it, and by `tests/journeys/test_configuration_holds.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import getsource
from pathlib import Path

import pytest

from lifesigns.config.values import Config, Limits, Listen
from lifesigns.core.policy import FleetPolicy, Policy

SRC = Path(__file__).parents[2] / "src" / "lifesigns"
SETTINGS = (
    *(SRC / "config").glob("**/*.py"),
    *(SRC / "core").glob("policy*.py"),
    SRC / "core" / "profiles.py",
)
"""Where values are read, checked and shown, which is no use of them."""

SHOWN_ONLY = {"effective", "sources", "path", "profile"}
"""Of `Config`: how it came about, for `lifesigns config check`."""


@cache
def used() -> frozenset[str]:
    """Names of attributes that are read anywhere but among the settings."""
    names: set[str] = set()
    for path in SRC.glob("**/*.py"):
        if path not in SETTINGS:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    names.add(node.attr)
    return frozenset(names)


def leaves(value: object, path: str = "") -> Iterator[str]:
    """Dotted names of everything that can be set."""
    for one in fields(value):  # type: ignore[arg-type]
        inner = getattr(value, one.name)
        where = f"{path}.{one.name}" if path else one.name
        if is_dataclass(inner):
            yield from leaves(inner, where)
        else:
            yield where


def derived(kind: type) -> dict[str, frozenset[str]]:
    """Which fields each property of a class is made of: who reads the property uses the fields. What `__post_init__` reads
    becomes `suspect_after` there."""
    found: dict[str, frozenset[str]] = {}
    for method in ast.parse(getsource(kind)).body[0].body:  # type: ignore[attr-defined]
        if isinstance(method, ast.FunctionDef):
            read = {n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute)}
            found["suspect_after" if method.name == "__post_init__" else method.name] = frozenset(read)
    return found


def is_used(kind: type, name: str) -> bool:
    if name in used():
        return True
    return any(name in made_of and reader in used() for reader, made_of in derived(kind).items())


def kinds(value: object) -> Iterator[tuple[str, type, str]]:
    for path in leaves(value):
        owner = value
        *sections, name = path.split(".")
        for section in sections:
            owner = getattr(owner, section)
        yield path, type(owner), name


KEYS = [
    *kinds(Policy()),
    *((f"fleet.{path}", kind, name) for path, kind, name in kinds(FleetPolicy())),
    *((f"limits.{path}", kind, name) for path, kind, name in kinds(Limits())),
    *((f"listen.{path}", kind, name) for path, kind, name in kinds(Listen())),
    *((one.name, Config, one.name) for one in fields(Config) if one.name not in SHOWN_ONLY),
]

BY_NAME = {f"message.{priority}" for priority in ("urgent", "high", "normal", "low")} | {"enabled"}
"""Read by their names (`core/messages.py`), or handed on as another value: `enabled` is `fleet.judging`."""


@pytest.mark.parametrize(("path", "kind", "name"), KEYS, ids=[key[0] for key in KEYS])
def test_what_can_be_set_is_used(path: str, kind: type, name: str) -> None:
    assert path in BY_NAME or is_used(kind, name), f"{path} is read and used by nobody"


def test_the_net_bites() -> None:
    assert not is_used(Policy, "a_key_nobody_uses")
