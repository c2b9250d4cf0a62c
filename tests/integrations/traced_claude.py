"""The real Claude Code without hooks, watched by its own telemetry."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integrations.coders import CLAUDE
from tests.integrations.scripted_model import Step
from tests.integrations.watched_coder import Watched, beside_a_hub
from tests.journeys.outside import Json

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
            # Its model has the tools of a server that is slow to start on a busy machine from its first call on.
            "MCP_CONNECTION_NONBLOCKING": "false",
            "MCP_CONNECT_TIMEOUT_MS": "180000",
            "MCP_TIMEOUT": "180000",
        }

    def mcp_config(self, agent_id: str, way: str) -> Path:
        """A file of MCP servers, with ours for this agent: by `a process` or by `http`."""
        args = ["-m", "lifesigns", "mcp", "--agent", agent_id]
        server: dict[str, object] = {"command": sys.executable, "args": args, "env": self.hub.environ}
        if way == "http":
            headers = {"Authorization": f"Bearer {self.hub.token}"}
            server = {"type": "http", "url": f"{self.hub.url}/mcp?agent={agent_id}", "headers": headers}
        path = self.hub.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"lifesigns": server}}))
        return path

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
