"""Agents that are traced, and nothing else: the real SDK and its exporter, in processes of their own, against a real hub."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.outside import Hub, serving

AGENT = """
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=200))
tracer = provider.get_tracer("agent")
sick = sys.argv[1] == "sick"

def chat():
    with tracer.start_as_current_span("chat m-1") as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10})

def tool(n):
    with tracer.start_as_current_span("execute_tool read") as span:
        path = "/same" if sick else f"/file-{n}"
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read"})
        span.set_attribute("gen_ai.tool.call.arguments", '{"path": "%s"}' % path)
        if sick:
            raise FileNotFoundError(path)
        span.set_attribute("gen_ai.tool.call.result", f"the content of {path}")

with tracer.start_as_current_span("invoke_agent coder") as run:
    run.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder"})
    for n in range(8 if sick else 20):
        chat()
        try:
            tool(n)
        except FileNotFoundError:
            pass
provider.shutdown()
print("done")
"""
POLICY = {"profile": "swift", "otlp": {"reorder_for": "500 ms"}}


def traced(hub: Hub, name: str, how: str, token: str) -> None:
    """One run of an agent; it ends when everything is exported."""
    process = hub.python(
        f"{name}.py",
        AGENT,
        how,
        OTEL_EXPORTER_OTLP_ENDPOINT=hub.url,
        OTEL_EXPORTER_OTLP_HEADERS=f"Authorization=Bearer%20{token}",
        OTEL_SERVICE_NAME=name,
    )
    assert process.wait(60) == 0, hub.output(process)


def test_a_traced_agent_that_loops_is_found_and_a_healthy_one_is_left_in_peace(tmp_path: Path) -> None:
    with serving(tmp_path, POLICY) as hub:
        made = hub.cli(
            "token", "create", "--role", "agent", "--name", "traces", "--agents", "coder-*", "--json"
        )
        token = json.loads(made.stdout)["token"]
        traced(hub, "coder-sick", "sick", token)
        traced(hub, "coder-well", "well", token)
        hub.until(lambda: hub.health("coder-sick") in ("stuck", "failing"), "the loop is found")
        hub.until(lambda: hub.health("coder-well") == "healthy", "the healthy one is known")
        sick, well = hub.get("/api/v1/agents/coder-sick"), hub.get("/api/v1/agents/coder-well")
        (loop,) = [found for found in sick["findings"] if found["kind"] == "looping"]
        assert "read failed 8 times in a row" in loop["text"]
        assert loop["conclusive"]
        assert well["findings"] == []
        assert well["metrics"]["token_count"] == 2200
        # Neither process lives any more, and nobody is accused of it: the silence of spans means nothing.
        assert well["state"] == "healthy"


def test_a_token_for_other_agents_is_refused_and_the_exporter_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, POLICY) as hub:
        made = hub.cli(
            "token", "create", "--role", "agent", "--name", "traces", "--agents", "other-*", "--json"
        )
        process = hub.python(
            "agent.py",
            AGENT,
            "well",
            OTEL_EXPORTER_OTLP_ENDPOINT=hub.url,
            OTEL_EXPORTER_OTLP_HEADERS=f"Authorization=Bearer%20{json.loads(made.stdout)['token']}",
            OTEL_SERVICE_NAME="coder-7",
        )
        process.wait(60)
        assert "403" in hub.output(process)
        assert hub.get("/api/v1/agents")["agents"] == []
