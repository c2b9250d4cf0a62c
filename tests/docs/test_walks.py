"""The walks of ARCHITECTURE.md name functions that exist, and count the files they cross."""

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
WALK = re.compile(r"crosses (\d+) files.*?\n```text\n(.*?)```", re.DOTALL)
STEP = re.compile(r"([\w/]+\.py)::([\w.]+(?:, [\w.]+)*)")
WALKS = [(int(count), STEP.findall(steps)) for count, steps in WALK.findall(PAGE)]


@cache
def functions(path: str) -> set[str]:
    """What a file defines: functions by their name, methods as `Class.method`."""
    found = set[str]()
    for node in ast.parse((ROOT / "src/lifesigns" / path).read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=owner, body=body):
                methods = (one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
                found |= {f"{owner}.{method.name}" for method in methods}
            case _:
                pass
    return found


def test_there_are_three_walks() -> None:
    assert len(WALKS) == 3
    assert all(len(steps) > 10 for _, steps in WALKS)


@pytest.mark.parametrize(("count", "steps"), WALKS, ids=range(len(WALKS)))
def test_every_step_of_a_walk_exists(count: int, steps: list[tuple[str, str]]) -> None:
    missing = [
        f"{path}::{name}"
        for path, names in steps
        for name in names.split(", ")
        if name not in functions(path)
    ]
    assert missing == []


@pytest.mark.parametrize(("count", "steps"), WALKS, ids=range(len(WALKS)))
def test_a_walk_says_how_many_files_it_crosses(count: int, steps: list[tuple[str, str]]) -> None:
    assert len({path for path, _ in steps}) == count
