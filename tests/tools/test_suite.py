"""The suite looks at a test that failed beside others once more, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
BESIDE: Final = "'PYTEST_XDIST_WORKER' in os.environ"


@pytest.mark.parametrize(
    ("fails", "tests", "status", "named"),
    [
        ("False", 2, 0, False),
        (BESIDE, 2, 0, True),
        ("True", 2, 1, False),
        (BESIDE, 6, 1, False),
    ],
    ids=["none", "a flake", "a fault", "too many for an accident"],
)
def test_what_fails_alone_as_well_fails_the_suite(
    tmp_path: Path, fails: str, tests: int, status: int, named: bool
) -> None:
    written = "".join(f"def test_{n}():\n    assert not {fails}\n" for n in range(tests))
    (tmp_path / "test_it.py").write_text(f"import os\n{written}def test_well():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    ours = {
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p xdist.plugin",
    }
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | ours
    done = subprocess.run(
        [sys.executable, "-m", "tools.suite", "2"], cwd=tmp_path, env=env, capture_output=True, check=False
    )
    assert done.returncode == status, done.stdout
    assert (b"FLAKY" in done.stdout) is named
    assert (b"test_it.py::test_1\n" in done.stdout) is named
