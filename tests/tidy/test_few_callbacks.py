"""Who is built with many callbacks stands for objects that are not there: two are enough."""

from __future__ import annotations

import ast

from tests.tidy.source import PACKAGE

CALLBACKS_MAX = 2

TABLES = {"events/catalogue.py::Row"}
"""Rows of a table of functions: each says what its own event means."""


def callbacks(text: str) -> dict[str, list[str]]:
    """By class, the parameters of its constructor that are callables. Without an `__init__` its fields are these."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            found[node.name] = [
                name for name, kind in _given(node) if kind is not None and "Callable[" in ast.unparse(kind)
            ]
    return found


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
    many = {
        f"{path.relative_to(PACKAGE)}::{owner}": names
        for path in sorted(PACKAGE.rglob("*.py"))
        for owner, names in callbacks(path.read_text(encoding="utf-8")).items()
        if len(names) > CALLBACKS_MAX
    }
    assert many.keys() == TABLES, many


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
