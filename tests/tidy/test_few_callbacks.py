"""Who is built with many callbacks stands for objects that are not there: two are enough."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Set
from functools import cache
from types import MappingProxyType

from tests.tidy.source import PACKAGE

CALLBACKS_MAX = 2

TABLES = {"events/catalogue.py::Row", "integrations/hooks/program.py::Program"}
"""Rows of a table of functions: each says what its own event, or its own program, means."""
OF_USERS = {
    "agent/bus_monitor.py::BusMonitor",
    "agent/sender/sender.py::Sender",
    "assembly/bus_monitors.py::BusMonitor",
}
"""A user's functions, each of which may be left out: `on_nudge`, `on_dead` and their kin."""
PORTS = {"Clock"}
"""A function and a port: whoever needs the time gets a clock."""


def callbacks(text: str, known: Mapping[str, Set[str]] = MappingProxyType({})) -> dict[str, list[str]]:
    """By class, the parameters of its constructor that are callables, by whatever name. Without an `__init__` its fields
    are these. `known` are the names of callables in the modules that this one imports from."""
    tree = _tree(text)
    names = {"Callable"} | names_of_callables(tree)
    classes: list[ast.ClassDef] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {one.name for one in node.names if one.name in known.get(node.module or "", ())}
        elif isinstance(node, ast.ClassDef):
            classes.append(node)
    return {
        owner.name: [
            name for name, kind in _given(owner) if kind is not None and _words(kind) & (names - PORTS)
        ]
        for owner in classes
    }


_tree = cache(ast.parse)


def names_of_callables(tree: ast.Module) -> set[str]:
    """What a module calls its callables: `Take = Callable[...]`, or a protocol with `__call__`."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                if ast.unparse(value).startswith("Callable["):
                    found.add(name)
            case ast.ClassDef(name=name, bases=bases, body=body) if "Protocol" in map(ast.unparse, bases):
                kinds = ast.FunctionDef | ast.AsyncFunctionDef
                if any(isinstance(part, kinds) and part.name == "__call__" for part in body):
                    found.add(name)
    return found


def _words(kind: ast.expr) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(kind)))


def _given(owner: ast.ClassDef) -> list[tuple[str, ast.expr | None]]:
    fields: list[tuple[str, ast.expr | None]] = []
    for part in owner.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            arguments = (*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs)
            return [(one.arg, one.annotation) for one in arguments]
        if isinstance(part, ast.AnnAssign):
            fields.append((ast.unparse(part.target), part.annotation))
    return fields


def test_no_constructor_takes_more_than_two_callbacks() -> None:
    texts = {path.relative_to(PACKAGE): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    known = {
        ".".join(("lifesigns", *path.with_suffix("").parts)): names_of_callables(_tree(text))
        for path, text in texts.items()
    }
    many = {
        f"{path}::{owner}": names
        for path, text in texts.items()
        for owner, names in callbacks(text, known).items()
        if len(names) > CALLBACKS_MAX
    }
    assert many.keys() == TABLES | OF_USERS, many


def test_callbacks_are_found() -> None:
    text = """
class A:
    def __init__(self, a: Callable[[], None], c: int, *, b: "Callable[[int], int] | None" = None): ...

@dataclass
class B:
    a: Callable[[], None]
    c: int
"""
    assert callbacks(text) == {"A": ["a", "b"], "B": ["a"]}


def test_callbacks_with_a_name_of_their_own_are_found() -> None:
    text = """
class Ask(Protocol):
    async def __call__(self, what: str) -> str: ...

from lifesigns.hub.clock import Clock
from lifesigns.there import Hear, Report
Take = Callable[[bytes], None]

class A:
    def __init__(self, take: Take, hear: "Hear | None", report: Report, clock: Clock, ask: Ask): ...
"""
    known = {"lifesigns.there": {"Hear"}, "lifesigns.hub.clock": {"Clock"}}
    assert callbacks(text, known) == {"Ask": [], "A": ["take", "hear", "ask"]}
