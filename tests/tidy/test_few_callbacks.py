"""Who is built with many callbacks stands for objects that are not there: two are enough."""

from __future__ import annotations

import ast

from tests.tidy.source import PACKAGE

CALLBACKS_MAX = 2


def callbacks(text: str) -> dict[str, list[str]]:
    """By class, the parameters of its constructor that are callables."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    given = (*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs)
                    found[node.name] = [
                        one.arg
                        for one in given
                        if one.annotation is not None and "Callable[" in ast.unparse(one.annotation)
                    ]
    return found


def test_no_constructor_takes_more_than_two_callbacks() -> None:
    many = {
        f"{path.relative_to(PACKAGE)}::{owner}": names
        for path in sorted(PACKAGE.rglob("*.py"))
        for owner, names in callbacks(path.read_text(encoding="utf-8")).items()
        if len(names) > CALLBACKS_MAX
    }
    assert many == {}


def test_callbacks_are_found() -> None:
    text = """
class A:
    def __init__(self, a: Callable[[], None], c: int, *, b: "Callable[[int], int] | None" = None): ...
"""
    assert callbacks(text) == {"A": ["a", "b"]}
