"""Reading our own source: where it is, and what a piece of it imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lifesigns"


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Each import with its line, wherever it stands: at the top, in a function, under TYPE_CHECKING.

    `from lifesigns import errors` names the module `lifesigns.errors`, because the front door is not a room.
    A relative import keeps its dots.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module="lifesigns", level=0, names=names):
                yield from ((node.lineno, f"lifesigns.{alias.name}") for alias in names)
            case ast.ImportFrom(module=module, level=level):
                yield node.lineno, "." * level + (module or "")


def is_inside(module: str, package: str) -> bool:
    """Whether `module` is `package` or a part of it."""
    return module == package or module.startswith(package + ".")
