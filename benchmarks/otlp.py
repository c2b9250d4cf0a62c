"""What reading spans costs: from the bytes of a request to what agents did, all digests made.

Beside it what another would write: the official messages (`opentelemetry-proto`, parsed in C), their attributes asked for one by
one, and the same steps from there. A turn of an agent is three spans: a model call, a tool call with other arguments and another
result each time, and the request that the model's client makes.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import httpx2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from benchmarks.real_hub import RealHub, served
from lifesigns.hub.otlp_receiver import AGENT_ID, REORDER_FOR, ROLE, TASK_ID
from lifesigns.wire.otlp import Batch, Identities, Kind, Record, calls_of, read_json, read_protobuf

TURNS = 200
"""In one request: 600 spans, as a batch processor sends at most 512."""
REQUESTS = 20
ROUNDS = 5
SENT = 280
"""Requests to a real hub: more calls than it remembers to know a second telling, and fewer than may wait to be heard."""
IDLE = 0.03
"""Processor seconds of a hub in one second in which it has nothing to do, at most."""


def spans_per_second(form: str) -> dict[str, float]:
    """Spans a second of CPU time, ours and the alternative's, by turns; the median of some rounds."""
    requests = [request(n) for n in range(REQUESTS)]
    binary = [one.SerializeToString() for one in requests]
    read: Any = read_protobuf
    raw = binary
    if form == "json":
        read, raw = read_json, [as_json(one) for one in requests]
    identities = Identities(AGENT_ID, TASK_ID, ROLE)
    ours, official = [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        for one in raw:
            calls_of(read(one, Kind.TRACES), Kind.TRACES, identities)
        ours.append(time.process_time() - began)
        began = time.process_time()
        for one in binary:
            calls_of(read_official(one), Kind.TRACES, identities)
        official.append(time.process_time() - began)
    spans = 3 * TURNS * REQUESTS
    mine, other = sorted(ours)[ROUNDS // 2], sorted(official)[ROUNDS // 2]
    return {"ours": spans / mine, "official": spans / other, "ratio": other / mine}


def hub_spans_per_second(way: str) -> dict[str, float]:
    """Spans a second of a real hub's processor time, sent by one exporter: "taken" until it has answered, "judged" until the calls in
    them have waited to be put in order, were judged and are in the store."""
    since = time.time_ns() - 6 * 3_600_000_000_000  # A hub takes nothing that is more than a day away.
    raw = [request(n, since).SerializeToString() for n in range(SENT)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), "--grpc", str(port)) as hub:
        send = _by_http(hub) if way == "http" else _by_grpc(hub, port)
        send(raw[0])
        _rest(hub)
        before = hub.cpu()
        for one in raw[1:]:
            send(one)
        taken = hub.cpu() - before
        _rest(hub)
        spans = 3 * TURNS * (SENT - 1)
        return {"taken": spans / taken, "judged": spans / (hub.cpu() - before)}


def _rest(hub: RealHub) -> None:
    """Until it has heard what waits, and does nothing any more."""
    time.sleep(REORDER_FOR + 1)
    used = IDLE
    while used >= IDLE:
        before = hub.cpu()
        time.sleep(1)
        used = hub.cpu() - before


def _by_http(hub: RealHub) -> Callable[[bytes], object]:
    headers = {"Authorization": f"Bearer {hub.token}", "Content-Type": "application/x-protobuf"}
    client = httpx2.Client(base_url=hub.url, headers=headers, timeout=60)

    def send(raw: bytes) -> None:
        answer = client.post("/v1/traces", content=raw)
        assert answer.is_success, answer.text

    return send


def _by_grpc(hub: RealHub, port: int) -> Callable[[bytes], object]:
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
    token = (("authorization", f"Bearer {hub.token}"),)
    return lambda raw: export(raw, metadata=token, timeout=60, wait_for_ready=True)


def read_official(raw: bytes) -> Batch:
    """The same records by the official messages."""
    batch = Batch()
    for source in ExportTraceServiceRequest.FromString(raw).resource_spans:
        resource = {pair.key: plain(pair.value) for pair in source.resource.attributes}
        for scope in source.scope_spans:
            for span in scope.spans:
                batch.records.append(
                    Record(
                        span.name,
                        {pair.key: plain(pair.value) for pair in span.attributes},
                        resource,
                        span.start_time_unix_nano * 1e-9,
                        span.end_time_unix_nano * 1e-9,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.status.code == 2,
                        span.status.message,
                    )
                )
    return batch


def plain(value: AnyValue) -> Any:
    """The value of an attribute."""
    which = value.WhichOneof("value")
    return None if which is None else getattr(value, which)


def request(number: int, since: int = 1_790_000_000_000_000_000) -> ExportTraceServiceRequest:
    """What one agent did since this moment, in nanoseconds."""
    made = ExportTraceServiceRequest()
    source = made.resource_spans.add()
    named = {"service.name": f"coder-{number}", "telemetry.sdk.name": "opentelemetry", "host.name": "ws-1"}
    source.resource.attributes.extend(pairs(named))
    spans = source.scope_spans.add().spans
    for turn in range(TURNS):
        n = number * TURNS + turn
        for kind, attributes in enumerate(turn_of(n)):
            began = since + turn * 3_000_000_000 + kind * 1_000_000_000
            spans.add(
                name=str(next(iter(attributes.values()))),
                trace_id=number.to_bytes(16),
                span_id=(3 * n + kind + 1).to_bytes(8),
                parent_span_id=(7).to_bytes(8),
                start_time_unix_nano=began,
                end_time_unix_nano=began + 900_000_000,
                attributes=pairs(attributes),
            )
    return made


def turn_of(n: int) -> tuple[dict[str, str | int], ...]:
    """The attributes of the spans of one turn."""
    model: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1",
        "gen_ai.response.id": f"resp_{n:024d}",
        "gen_ai.usage.input_tokens": 9000 + n,
        "gen_ai.usage.output_tokens": n % 900,
        "server.address": "api.example.com",
        "server.port": 443,
    }
    tool: dict[str, str | int] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"call_{n:024d}",
        "gen_ai.tool.call.arguments": json.dumps({"path": f"/src/module_{n}.py", "lines": 200}),
        "gen_ai.tool.call.result": f"def module_{n}():\n    return {n}\n",
    }
    post: dict[str, str | int] = {
        "http.request.method": "POST",
        "url.full": "https://api.example.com/v1/chat/completions",
        "server.address": "api.example.com",
        "server.port": 443,
        "http.response.status_code": 200,
        "network.protocol.version": "1.1",
    }
    return model, tool, post


def pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    """As they are sent."""
    return [KeyValue(key=key, value=value_of(value)) for key, value in attributes.items()]


def value_of(value: str | int) -> AnyValue:
    """As it is sent."""
    return AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)


def as_json(made: ExportTraceServiceRequest) -> bytes:
    """The request as JSON."""
    from google.protobuf.json_format import MessageToJson  # type: ignore[import-untyped]

    return str(MessageToJson(made, indent=None)).encode()  # Its ids are no hex, and as long to read.
