"""What an event is called stands in the catalogue and nowhere else: others name its fact."""

import ast
from collections.abc import Iterator

from lifesigns.events import CATALOGUE
from tests.tidy.source import PACKAGE

HOME = PACKAGE / "events" / "catalogue.py"


def named(source: str) -> Iterator[str]:
    """Names of events in the strings of a module; docstrings may name them."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from (f"line {node.lineno}: {name}" for name in node.value.split() if name in CATALOGUE)


def test_no_module_but_the_catalogue_names_an_event() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file != HOME]
    found = [f"{file.relative_to(PACKAGE)}, {name}" for file in files for name in named(file.read_text())]
    assert found == []


def test_a_name_is_found() -> None:
    source = '"""NEEDS_HUMAN, in a docstring."""\nTYPES = ("NUDGE_SENT", "OTHER")\nMORE = "a HUB_BLIND b".split()\n'
    assert list(named(source)) == ["line 2: NUDGE_SENT", "line 3: HUB_BLIND"]
