"""The example finds the crash and the freeze, names the line, and sees everybody come back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "watch_your_own_agents.py"


def test_the_example_tells_who_crashed_who_froze_and_where() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    told = [tuple(line.split(": ")[:2]) for line in done.stdout.splitlines() if line.startswith("agent-")]
    assert told.count(("agent-disconnected", "crash")) == 1
    assert "the model answered with a poem" in done.stdout
    assert {("agent-disconnected", "block"), ("agent-disconnected", "work")} <= set(told)
    assert "it stands at: time.sleep(5)" in done.stdout
    assert {("agent-reconnected", "work"), ("agent-left", "work"), ("agent-left", "block")} <= set(told)
