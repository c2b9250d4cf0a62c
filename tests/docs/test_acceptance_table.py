"""`docs/acceptance.md` keeps its word: every test it names exists, and every criterion names one or says that it is not met."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "acceptance.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
NOT_MET = "not met yet"
RUNBOOKS = ("manual-intervention", "reset-a-breaker", "recovery-troubleshooting", "storm", "blind-hub")


def rows() -> list[str]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("|---", "| criterion |", "| target |"))]


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE.read_text()))))
def test_every_test_that_is_named_exists(file: str, name: str) -> None:
    path = ROOT / file
    assert path.exists(), f"there is no {file}"
    assert name in functions_in(path), f"there is no {name} in {file}"


def test_every_criterion_names_a_test_or_says_that_it_is_not_met() -> None:
    assert len(rows()) > 30
    assert [row for row in rows() if not NAMED.search(row) and NOT_MET not in row] == []


def test_every_runbook_that_was_asked_for_is_there() -> None:
    assert [name for name in RUNBOOKS if not (ROOT / "docs" / "runbooks" / f"{name}.md").exists()] == []
