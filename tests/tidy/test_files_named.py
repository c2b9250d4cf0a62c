"""Files that a docstring or a comment names are there: a map with a street that is gone is worse than none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "lifesigns").rglob("*.py"))
NAMES = {
    path.name for folder in ("src", "tests", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")
}
USERS_OWN = {"agent.py", "worker.py", "coder.py", "my_agent.py", "pipeline.py", "foo.py"}
"""Programs of users, in examples."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src" / "lifesigns")))
def test_every_file_it_names_is_there(path: Path) -> None:
    named = set(re.findall(r"(?<![\w/.*-])([a-z_0-9]+\.py)\b", path.read_text()))
    assert named <= NAMES | USERS_OWN, named - NAMES
