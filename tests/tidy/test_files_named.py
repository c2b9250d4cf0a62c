"""Files that a docstring or a comment names are there: a map with a street that is gone is worse than none."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "lifesigns").rglob("*.py"))
NAMES = {
    path.name for folder in ("src", "tests", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")
}
USERS_OWN = {"agent.py", "worker.py", "coder.py", "my_agent.py", "pipeline.py", "foo.py"}
"""Programs of users, in examples."""


def test_every_file_that_is_named_is_there() -> None:
    missing = {
        str(path.relative_to(ROOT)): unknown
        for path in SOURCES
        if (
            unknown := set(re.findall(r"(?<![\w/.*-])([a-z_0-9]+\.py)\b", path.read_text()))
            - NAMES
            - USERS_OWN
        )
    }
    assert missing == {}
