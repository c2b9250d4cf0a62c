"""The example does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_an_agent_that_crashes_goes_on_where_it_was() -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "examples" / "supervise_any_command.sh")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "src")},
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["step 1", "step 2"]
    assert lines[2].startswith(
        "I go on after step 2. I was told: The life before this one (attempt 1) crashed: signal 11"
    )
    assert lines[3:] == ["step 3", "step 4", "done"]
    assert "stepper crashed: signal 11 (SIGSEGV) after" in done.stderr
