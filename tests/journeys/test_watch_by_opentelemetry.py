"""Agents that are traced, and nothing else: the real SDK and its exporter, in processes of their own, against a real hub."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.outside import Hub, free_port, serving

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


BY_GRPC = """
import os, grpc
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

class OTLPSpanExporter(SpanExporter):
    def __init__(self):
        self.stub = TraceServiceStub(grpc.insecure_channel(os.environ["GRPC_AT"], compression=grpc.Compression.Gzip))
    def export(self, spans):
        metadata = (("authorization", os.environ["GRPC_TOKEN"]),)
        self.stub.Export(encode_spans(spans), metadata=metadata, timeout=30)
        return SpanExportResult.SUCCESS
"""
"""What an exporter over gRPC consists of: the SDK's encoder and the stubs that OpenTelemetry generates."""


def test_an_agent_that_is_traced_over_grpc_is_watched_as_well(tmp_path: Path) -> None:
    port = free_port()
    http = "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter\n"
    assert http in AGENT
    with serving(tmp_path, POLICY, "--grpc", str(port)) as hub:
        process = hub.python(
            "traced.py",
            AGENT.replace(http, BY_GRPC),
            "sick",
            GRPC_AT=f"127.0.0.1:{port}",
            GRPC_TOKEN=f"Bearer {hub.token}",
            OTEL_SERVICE_NAME="coder-sick",
        )
        assert process.wait(60) == 0, hub.output(process)
        hub.until(lambda: hub.health("coder-sick") in ("stuck", "failing"), "the loop is found")
        found = hub.get("/api/v1/agents/coder-sick")["findings"]
        assert any("read failed 8 times in a row" in one["text"] for one in found)


ASKS = """
import sys, grpc

kind = "{0}".capitalize()

raw = bytes.fromhex(sys.argv[3])
call = grpc.insecure_channel(sys.argv[1]).unary_unary("/opentelemetry.proto.collector.{0}.v1." + kind + "Service/Export")
try:
    answer = call(raw, metadata=(("authorization", sys.argv[2]),), timeout=30)
    print("OK", len(answer))
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""


def test_who_may_not_report_is_refused_over_grpc_too(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, POLICY, "--grpc", str(port)) as hub:
        viewer = hub.post("/api/v1/tokens", {"role": "viewer", "name": "v"})["token"]
        agent = hub.post("/api/v1/tokens", {"role": "agent", "name": "a", "agents": "coder-7"})["token"]

        def asked(kind: str, authorization: str, raw: str = "") -> str:
            process = hub.python(
                f"{kind}.py", ASKS.replace("{0}", kind), f"127.0.0.1:{port}", authorization, raw
            )
            assert process.wait(60) == 0, hub.output(process)
            return hub.output(process).strip()

        assert [asked(kind, f"Bearer {agent}") for kind in ("trace", "logs", "metrics")] == ["OK 0"] * 3
        assert asked("trace", "").startswith("UNAUTHENTICATED metadata has to have authorization")
        assert asked("trace", "Bearer wrong").startswith("UNAUTHENTICATED the token is unknown")
        assert asked("trace", f"Bearer {viewer}").startswith("PERMISSION_DENIED 'v' is viewer")
        assert asked("trace", f"Bearer {agent}", "ffff").startswith("INVALID_ARGUMENT")
