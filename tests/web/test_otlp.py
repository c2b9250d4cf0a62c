"""OTLP over HTTP: what exporters send, in either form, and what they are answered."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from lifesigns.config.load import defaults
from lifesigns.config.values import Limits
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Kind as Found
from lifesigns.hub import otlp_receiver
from lifesigns.hub.principals import Patterns, Role
from tests.web.hub import RunningHub, running_hub
from tests.wire import otlp_requests as r

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json; charset=utf-8"}


def looping(count: int = 8, **more: Any) -> Any:
    now = time.time() - 60
    return r.traces([r.tool(n + 1, at=now + n, error="no such file", **more) for n in range(count)])


def heard(hub: RunningHub, agent_id: str = "coder-7") -> Agent:
    """The agent, when all that was sent has been heard."""
    hub.service.otlp_receiver.hear_all()
    while hub.service.hub.inbox.waiting:
        hub.service.hub._drain()
    agent = hub.service.engine.agent(agent_id)
    assert agent is not None
    return agent


@pytest.mark.parametrize("form", ["protobuf", "json", "gzip"])
async def test_spans_are_taken_in_every_form(hub: RunningHub, form: str) -> None:
    request = looping()
    raw, headers = (r.as_json(request), JSON) if form == "json" else (request.SerializeToString(), PROTOBUF)
    if form == "gzip":
        raw, headers = gzip.compress(raw), headers | {"content-encoding": "gzip"}
    answer = await hub.http.post("/v1/traces", content=raw, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (
        200,
        headers["content-type"].partition(";")[0],
    )
    assert answer.content == (b"{}" if form == "json" else b"")
    loop = heard(hub).finding(Found.LOOPING)
    assert loop is not None
    assert loop.conclusive


async def test_events_of_a_coding_agent_are_taken(hub: RunningHub) -> None:
    resource = {"service.name": "claude-code", "session.id": "s-1"}
    events = [
        {"event.name": "api_request", "input_tokens": "10", "output_tokens": "2", "event.sequence": n}
        for n in (1, 2)
    ]
    raw = r.logs(events, resource, at=time.time()).SerializeToString()
    answer = await hub.http.post("/v1/logs", content=raw, headers=PROTOBUF)
    assert answer.status_code == 200
    spent = heard(hub, "claude-code/s-1").spending
    assert spent is not None
    assert spent.tokens == 24


async def test_metrics_are_a_sign_of_life_of_known_agents_and_make_none(hub: RunningHub) -> None:
    request = ExportMetricsServiceRequest()
    source = request.resource_metrics.add()
    source.resource.attributes.extend(r.pairs({"service.name": "coder-7"}))
    source.scope_metrics.add().metrics.add(name="claude_code.token.usage")
    raw = request.SerializeToString()
    assert (await hub.http.post("/v1/metrics", content=raw, headers=PROTOBUF)).status_code == 200
    assert hub.service.engine.agent("coder-7") is None
    await hub.http.post("/v1/traces", content=looping(1).SerializeToString(), headers=PROTOBUF)
    heard_at = heard(hub).heard_at
    assert (await hub.http.post("/v1/metrics", content=raw, headers=PROTOBUF)).status_code == 200
    assert heard(hub).heard_at > heard_at


async def test_what_is_rejected_is_told_as_a_partial_success(hub: RunningHub) -> None:
    token = await hub.token_for(Role.AGENT, "coder-*")
    now = time.time()
    request = r.traces([r.tool(1, at=now), r.tool(2, at=now, agent="other-1")])
    async with hub.client(token) as coder:
        binary = await coder.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
        text = await coder.post("/v1/traces", content=r.as_json(request), headers=JSON)
    told = ExportTraceServiceResponse.FromString(binary.content).partial_success
    assert (told.rejected_spans, told.error_message) == (1, "is 'other-1', for which 'a agent' may not speak")
    assert text.json() == {"partialSuccess": {"rejectedSpans": "1", "errorMessage": told.error_message}}


async def test_the_partial_success_of_logs_is_read_by_the_official_class(hub: RunningHub) -> None:
    events = [{"event.name": "codex.tool_result", "conversation.id": f"c-{n}"} for n in range(3)]
    raw = r.logs(events, {"service.name": "codex-cli"}, at=time.time() - 86_401.5).SerializeToString()
    answer = await hub.http.post("/v1/logs", content=raw, headers=PROTOBUF)
    told = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert told.rejected_log_records == 2
    assert "more than a day away" in told.error_message


async def test_a_delivery_of_which_nothing_counts_is_an_error_that_says_why(hub: RunningHub) -> None:
    token = await hub.token_for(Role.AGENT, "coder-*")
    async with hub.client(token) as coder:
        foreign = await coder.post(
            "/v1/traces", content=looping(agent="x").SerializeToString(), headers=PROTOBUF
        )
    nameless = await hub.http.post(
        "/v1/traces", content=r.traces([r.tool(1)], {"host.name": "h"}).SerializeToString(), headers=PROTOBUF
    )
    assert (foreign.status_code, nameless.status_code) == (403, 400)
    assert "may not speak" in foreign.json()["detail"]
    assert "names no agent" in nameless.json()["detail"]


async def test_spans_of_other_programs_are_taken_and_mean_nothing(hub: RunningHub) -> None:
    request = r.traces([r.span({"http.request.method": "GET"}, at=time.time())])
    answer = await hub.http.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    assert hub.service.engine.agent("coder-7") is None


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (b"\x0a\xff", PROTOBUF, 400),
        (b"hello", PROTOBUF, 400),
        (b"\x0a\x05hello", PROTOBUF, 400),
        (b"{", JSON, 400),
        (b'{"resourceSpans": 7, "resourceLogs": 7, "resourceMetrics": 7}', JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"not gzip", PROTOBUF | {"content-encoding": "gzip"}, 400),
        (b"x", PROTOBUF | {"content-encoding": "zstd"}, 415),
    ],
)
async def test_garbage_is_refused(hub: RunningHub, raw: bytes, headers: dict[str, str], status: int) -> None:
    for path in ("/v1/traces", "/v1/logs", "/v1/metrics"):
        answer = await hub.http.post(path, content=raw, headers=headers)
        assert answer.status_code == status, (path, answer.text)
        assert answer.json()["detail"]


async def test_a_bomb_is_not_unpacked(hub: RunningHub) -> None:
    bomb = gzip.compress(b"\0" * (64 * 1024 * 1024))
    answer = await hub.http.post("/v1/traces", content=bomb, headers=PROTOBUF | {"content-encoding": "gzip"})
    assert answer.status_code == 413


async def test_a_token_that_stands_percent_encoded_in_the_header_is_read(hub: RunningHub) -> None:
    """As OTEL_EXPORTER_OTLP_HEADERS has it; the exporter of Claude Code sends it as it stands there."""
    async with hub.client(None, {"authorization": f"Bearer%20{hub.token}"}) as exporter:
        answer = await exporter.post("/v1/traces", content=looping().SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200


async def test_nobody_gets_in_without_a_token_and_viewers_say_nothing(hub: RunningHub) -> None:
    raw = looping().SerializeToString()
    async with hub.client(None) as nobody, hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        assert (await nobody.post("/v1/traces", content=raw, headers=PROTOBUF)).status_code == 401
        assert (await viewer.post("/v1/traces", content=raw, headers=PROTOBUF)).status_code == 403


async def test_spans_are_counted_against_the_limit_of_a_token() -> None:
    async with running_hub(limits=Limits(signals_per_second=10)) as hub:
        async with hub.client(await hub.token_for(Role.AGENT, "coder-*")) as coder:
            first = await coder.post("/v1/traces", content=looping(100).SerializeToString(), headers=PROTOBUF)
            second = await coder.post("/v1/traces", content=looping(1).SerializeToString(), headers=PROTOBUF)
        assert (first.status_code, second.status_code) == (200, 429)
        assert int(second.headers["retry-after"]) >= 1


async def test_an_agent_must_sign_if_the_hub_says_so() -> None:
    async with running_hub(must_sign=Patterns.of("coder-*"), verifies=lambda *_: False) as hub:
        answer = await hub.http.post("/v1/traces", content=looping().SerializeToString(), headers=PROTOBUF)
        assert answer.status_code == 403
        assert "has to sign" in answer.json()["detail"]


def test_a_hub_without_a_file_names_agents_as_the_configuration_says() -> None:
    """The hub may not import the configuration, so the defaults stand twice."""
    otlp = defaults().otlp
    assert (otlp.agent_id, otlp.task_id, otlp.role, otlp.reorder_for) == (
        otlp_receiver.AGENT_ID,
        otlp_receiver.TASK_ID,
        otlp_receiver.ROLE,
        otlp_receiver.REORDER_FOR,
    )


async def test_a_request_as_json_by_hand(hub: RunningHub) -> None:
    """As somebody with curl would write it: numbers as numbers, and little else."""
    span = {
        "spanId": "00f067aa0ba902b7",
        "endTimeUnixNano": int(time.time() * 1e9),
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "coder-7"}}]}
    body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}
    answer = await hub.http.post("/v1/traces", content=json.dumps(body).encode(), headers=JSON)
    assert answer.status_code == 200
    work = heard(hub).work
    assert work is not None
    assert work.tool_calls == 1
