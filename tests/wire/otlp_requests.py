"""Requests as exporters make them: the official messages, as protobuf and as OTLP/JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

EPOCH = 1_790_000_000
"""When everything happened, unless the test says otherwise."""

Request = ExportTraceServiceRequest | ExportLogsServiceRequest


def any_value(value: Any) -> AnyValue:
    made = AnyValue()
    match value:
        case bool():
            made.bool_value = value
        case int():
            made.int_value = value
        case float():
            made.double_value = value
        case str():
            made.string_value = value
        case bytes():
            made.bytes_value = value
        case dict():
            made.kvlist_value.values.extend(pairs(value))
        case list():
            made.array_value.values.extend([any_value(item) for item in value])
    return made


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def nano(seconds: float) -> int:
    return round(seconds * 1000) * 1_000_000


def span(
    attributes: Mapping[str, Any],
    *,
    name: str = "a span",
    at: float = EPOCH,
    took: float = 0.5,
    number: int = 1,
    trace: int = 1,
    parent: int = 0,
    error: str | None = None,
    exception: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A span that ended at that moment, as fields of the official message."""
    made: dict[str, Any] = {
        "name": name,
        "trace_id": trace.to_bytes(16),
        "span_id": number.to_bytes(8),
        "parent_span_id": parent.to_bytes(8) if parent else b"",
        "start_time_unix_nano": nano(at - took),
        "end_time_unix_nano": nano(at),
        "attributes": pairs(attributes),
    }
    if error is not None:
        made["status"] = {"code": 2, "message": error}
    if exception is not None:
        made["events"] = [{"name": "exception", "attributes": pairs(exception)}]
    return made


def tool(n: int, *, agent: str | None = None, error: str | None = None, **more: Any) -> dict[str, Any]:
    """The span of a call of the tool `look`, always with the same arguments and the same result."""
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.arguments": '{"path": "/a"}',
        "gen_ai.tool.call.result": "nothing new",
    }
    attributes = said | ({} if agent is None else {"lifesigns.agent.id": agent}) | more.pop("attributes", {})
    return span(attributes, number=n, error=error, **more)


def traces(
    spans: Sequence[Mapping[str, Any]], resource: Mapping[str, Any] | None = None
) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    source = request.resource_spans.add()
    source.resource.attributes.extend(pairs(resource or {"service.name": "coder-7"}))
    scope = source.scope_spans.add()
    scope.scope.name = "tests"
    for fields in spans:
        scope.spans.add(**fields)
    return request


def logs(
    events: Sequence[Mapping[str, Any]],
    resource: Mapping[str, Any],
    *,
    at: float = EPOCH,
    body: str | None = None,
) -> ExportLogsServiceRequest:
    """Log records with these attributes, a second apart."""
    request = ExportLogsServiceRequest()
    source = request.resource_logs.add()
    source.resource.attributes.extend(pairs(resource))
    scope = source.scope_logs.add()
    for n, attributes in enumerate(events):
        record = scope.log_records.add(time_unix_nano=nano(at + n), attributes=pairs(attributes))
        if body is not None:
            record.body.string_value = body
    return request


def as_json(request: Request) -> bytes:
    """OTLP/JSON: as protobuf's JSON, but ids are hex."""
    return json.dumps(_with_hex_ids(MessageToDict(request, use_integers_for_enums=True))).encode()


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex()
        if key in ("traceId", "spanId", "parentSpanId")
        else _with_hex_ids(item)
        for key, item in value.items()
    }
