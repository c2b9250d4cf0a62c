"""`docs/seeds.md` keeps its word: every test it names exists, and every requirement that works or differs names one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "seeds.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PLACE = re.compile(r"`(tests/[\w/]+(?:\.py)?)`")
STATES = ("works", "differs", "not built")
RUNBOOKS = ("manual-intervention", "reset-a-breaker", "recovery-troubleshooting", "storm", "blind-hub")


def rows() -> list[list[str]]:
    """Requirement, state, and what shows it."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "requirement"]


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def missing(page: str) -> list[str]:
    """Tests and folders of tests that a page names and that do not exist."""
    absent = [named for named in PLACE.findall(page) if not (ROOT / named).exists()]
    for file, name in NAMED.findall(page):
        path = ROOT / file
        if not path.exists() or name not in functions_in(path):
            absent.append(f"{file}::{name}")
    return absent


def test_every_test_that_is_named_exists() -> None:
    assert missing(PAGE.read_text()) == []
    assert len(NAMED.findall(PAGE.read_text())) > 100, "the page names none any more, or this test finds none"


def test_one_that_does_not_exist_is_found() -> None:
    here = "tests/docs/test_seeds.py"
    assert missing(f"`{here}::test_one_that_does_not_exist_is_found` · `tests/docs`") == []
    assert missing(f"`{here}::test_coffee`") == [f"{here}::test_coffee"]
    assert missing("`tests/coffee/test_it.py::test_it`") == ["tests/coffee/test_it.py::test_it"]
    assert missing("`tests/coffee`") == ["tests/coffee"]


def test_every_requirement_has_a_state_and_what_works_or_differs_names_what_shows_it() -> None:
    assert len(rows()) > 80
    assert [row for row in rows() if len(row) != 3 or row[1] not in STATES] == []
    assert [row for row in rows() if row[1] != "not built" and not NAMED.search(row[2])] == []
    assert [row for row in rows() if row[1] == "not built" and len(row[2]) < 15] == []


def test_every_runbook_that_was_asked_for_is_there() -> None:
    assert [name for name in RUNBOOKS if not (ROOT / "docs" / "runbooks" / f"{name}.md").exists()] == []
