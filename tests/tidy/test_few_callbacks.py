"""Who is built with many callbacks stands for objects that are not there: two are enough."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.source import PACKAGE

CALLBACKS_MAX = 2


def callbacks(text: str) -> dict[str, list[str]]:
    """By class, the parameters of its constructor that are callables: in `__init__`, or as fields of a dataclass."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            given: list[tuple[str, ast.expr | None]] = []
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    of = part.args
                    given += [
                        (one.arg, one.annotation) for one in (*of.posonlyargs, *of.args, *of.kwonlyargs)
                    ]
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    given.append((part.target.id, part.annotation))
            found[node.name] = [
                name
                for name, annotation in given
                if annotation is not None and "Callable[" in ast.unparse(annotation)
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


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n def __init__(self, a: Callable[[], None], *, b: 'Callable[[int], int] | None' = None, c: int = 1): ...",
        "@dataclass\nclass A:\n a: Callable[..., None]\n b: list[Callable[[], None]]\n c: int",
    ],
    ids=["in its constructor", "as fields"],
)
def test_callbacks_are_found(text: str) -> None:
    assert callbacks(text) == {"A": ["a", "b"]}
