"""README, "Three ways in": what is copied from there works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.journeys.outside import serving

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_first_python_example_reports_to_the_hub_that_was_just_started(tmp_path: Path) -> None:
    """It reported to nobody: its agent never came to the dashboard."""
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    with serving(tmp_path) as hub:
        program = hub.python("example.py", example)
        program.wait(60)
        hub.until(lambda: hub.agent("coder-7"), "the example's agent is known")
        agent = hub.get("/api/v1/agents/coder-7")
        assert agent["state"] == "terminated"  # It has said good-bye.
        assert agent["metrics"]["tool_call_count"] == 1
        assert agent["last_checkpoint"] is not None
