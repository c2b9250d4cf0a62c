"""The real Claude Code without hooks: watched by its own telemetry, and with the hub as its MCP server. `make integrations` runs this."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integrations.coders import CLAUDE
from tests.integrations.scripted_model import Say, Step, Use, sh
from tests.integrations.watched_coder import Watched, beside_a_hub, needs_coders
from tests.journeys.outside import Json

pytestmark = needs_coders

CONFIG = {"profile": "swift", "otlp": {"reorder_for": "1s"}}
"""An agent that should beat is lost after three seconds here; one that is known by telemetry alone is not."""


class TracedClaude(Watched):
    """Claude Code with the variables of docs/howto/watch-by-opentelemetry.md."""

    protocol = "http/protobuf"

    @property
    def environ(self) -> dict[str, str]:
        return super().environ | {
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "otlp",
            "OTEL_LOGS_EXPORT_INTERVAL": "500",
            "OTEL_LOG_TOOL_DETAILS": "1",
            "OTEL_EXPORTER_OTLP_PROTOCOL": self.protocol,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.hub.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{self.hub.token}",
        }

    def session(self) -> Json:
        """The only session, when it is known."""
        sessions = self._sessions()
        assert len(sessions) == 1, sessions
        return sessions[0]

    def wait_for_calls(self, count: int) -> None:
        self.hub.until(
            lambda: any(one["metrics"]["tool_call_count"] == count for one in self._sessions()),
            f"{count} calls were heard",
        )

    def _sessions(self) -> list[Json]:
        found = self.hub.get("/api/v1/agents")["agents"]
        return [one for one in found if one["agent_id"].startswith("claude-code/")]


@contextmanager
def traced_claude(folder: Path, scripts: Mapping[str, Sequence[Step]]) -> Iterator[TracedClaude]:
    with beside_a_hub(TracedClaude, CLAUDE, folder, scripts, CONFIG) as claude:
        yield claude


def test_a_healthy_run_is_told_by_its_telemetry_alone(tmp_path: Path) -> None:
    steps: list[Step] = [*(sh(f"echo line {n}") for n in range(20)), Say("done")]
    with traced_claude(tmp_path, {"work": steps}) as claude:
        claude.protocol = "http/json"
        claude.run("work")
        claude.wait_for_calls(20)
        session = claude.session()
        assert (session["state"], session["findings"]) == ("healthy", [])
        assert session["metrics"]["token_count"] == 21 * 1050
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
        args = ["-m", "lifesigns", "mcp", "--agent", "coder-7"]
        server: dict[str, object] = {"command": sys.executable, "args": args, "env": claude.hub.environ}
        if way == "http":
            headers = {"Authorization": f"Bearer {claude.hub.token}"}
            server = {"type": "http", "url": f"{claude.hub.url}/mcp?agent=coder-7", "headers": headers}
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"lifesigns": server}}))
        claude.run("report", "--mcp-config", str(config))
        agent = claude.hub.agent("coder-7")
        assert agent is not None
        assert (agent["task_id"], agent["doing"], agent["doing_note"]) == (
            "t-19",
            "waiting_for_human",
            "Which branch?",
        )
