"""The real Claude Code without hooks: watched by its own telemetry, and with the hub as its MCP server. `make integrations` runs this."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.scripted_model import Say, Step, Use, sh
from tests.integrations.traced_claude import traced_claude
from tests.integrations.watched_coder import needs_coders

pytestmark = needs_coders


def test_a_healthy_run_is_told_by_its_telemetry_alone(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"echo line {n}") for n in range(20)), Say("done")]
    with traced_claude(tmp_path, {"work": steps}) as claude:
        claude.protocol = "http/json"
        claude.run("work")
        claude.wait_for_calls(20)
        claude.hub.until(
            lambda: claude.session()["metrics"]["token_count"] == 21 * 1050,
            "the last answer of its model is heard",
        )
        session = claude.session()
        assert (session["state"], session["findings"]) == ("healthy", [])
        assert claude.findings() == []


def test_the_same_failing_call_eight_times_is_told_by_its_telemetry(tmp_path: Path) -> None:
    """What the command printed is not in it: so the failures are certain, and the loop is a suspicion."""
    with traced_claude(tmp_path, {"loop": [sh("cat /no/such/file")] * 8 + [Say("done")]}) as claude:
        claude.run("loop")
        claude.wait_for_calls(8)
        session = claude.session()
        found = {one["kind"]: one for one in session["findings"]}
        assert session["state"] == "failing"
        assert found["errors"]["text"].startswith("8 calls in a row failed")
        assert "8 times in a row with the same arguments, its results unknown" in found["looping"]["text"]
        assert not found["looping"]["conclusive"]


@pytest.mark.parametrize("way", ["a process", "http"])
def test_its_model_reports_through_mcp(tmp_path: Path, way: str) -> None:
    steps: list[Step] = [
        Use("mcp__lifesigns__report_progress", {"note": "half of it", "percent": 50, "task_id": "t-19"}),
        Use("mcp__lifesigns__report_blocker", {"question": "Which branch?"}),
        Say("done"),
    ]
    with traced_claude(tmp_path, {"report": steps}) as claude:
        claude.run("report", "--mcp-config", str(claude.mcp_config("coder-7", way)))
        agent = claude.hub.agent("coder-7")
        assert agent is not None
        assert (agent["task_id"], agent["doing"], agent["doing_note"]) == (
            "t-19",
            "waiting_for_human",
            "Which branch?",
        )
