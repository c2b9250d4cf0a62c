"""No test waits for an event that there is not, and finds nothing wrong because it never comes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lifesigns.events import CATALOGUE
from tests.tidy.source import PACKAGE

TESTS = PACKAGE.parents[1] / "tests"
OTHERS = {
    "COFFEE_MADE": "an older or newer hub's, which nobody knows here",
    "PROCESS_EXITED": "what `lifesigns run --json` prints at the end",
}
NAME = re.compile("[A-Z]+(_[A-Z]+)+")


def compared(source: str) -> Iterator[tuple[int, str]]:
    """Lines, and names in capitals that the type of something is compared with."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(map(_is_type, (node.left, *node.comparators))):
            texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            yield from (
                (node.lineno, text) for text in texts if isinstance(text, str) and NAME.fullmatch(text)
            )


def _is_type(node: ast.expr) -> bool:
    """Whether it is `event.type` or `event["type"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "type"
    return isinstance(node, ast.Attribute) and node.attr == "type"


def test_every_event_that_a_test_looks_for_is_in_the_catalogue() -> None:
    found = [
        (file.relative_to(TESTS), *one)
        for file in sorted(TESTS.rglob("*.py"))
        for one in compared(file.read_text())
    ]
    assert len(found) > 5
    assert [one for one in found if one[2] not in CATALOGUE and one[2] not in OTHERS] == []


def test_a_name_is_found() -> None:
    source = 'a = [e for e in es if e["type"] == "AGENT_GONE"]\nb = e.type in ("NUDGE_SENT", "NO_MORE")\nc = "A_B" == d\n'
    assert sorted(compared(source)) == [(1, "AGENT_GONE"), (2, "NO_MORE"), (2, "NUDGE_SENT")]
