"""A journey knows the command line, HTTP, files and the docs, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.journeys.outside import serving

HERE = Path(__file__).parent


def test_no_journey_imports_anything_of_ours() -> None:
    """What a user cannot import is no proof of what a user is promised. Programs in strings may: they are the
    user's. Servers that a user would run (NATS, PostgreSQL) come from `tests/servers`."""
    for path in HERE.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            for name in names:
                ours = name.split(".")[0] in ("lifesigns", "benchmarks", "tools")
                assert not ours, f"{path.name} imports {name}"
                assert not name.startswith("tests.") or name.startswith(
                    ("tests.journeys", "tests.servers")
                ), f"{path.name}: {name}"


def test_a_beat_by_hand_makes_a_healthy_agent_that_everybody_sees(tmp_path: Path) -> None:
    """README, "Three ways in": serve, beat, and look."""
    with serving(tmp_path) as hub:
        hub.cli("beat", "my-agent", "--status", "busy")
        hub.until(lambda: hub.health("my-agent") == "healthy", "my-agent is healthy")
        assert "my-agent" in hub.cli("agents").stdout
        assert any(event["agent_id"] == "my-agent" for event in hub.events())
