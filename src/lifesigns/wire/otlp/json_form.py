"""OTLP as JSON: ids are hex, 64-bit numbers are texts, enums are numbers. The same records as from protobuf."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from lifesigns.errors import WireError
from lifesigns.wire.codec import FAULTS, explain
from lifesigns.wire.otlp.records import DEPTH_MAX, NANO, RECORDS_MAX, Attributes, Batch, Kind, Record

Whole = int | str
"""A number of 64 bits; as a text, because JSON readers lose the last digits of large numbers."""

_ERROR: Final = (2, "2", "STATUS_CODE_ERROR")


class _Value(Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: Whole | None = None
    double_value: float | str | None = None
    array_value: _Values | None = None
    kvlist_value: _Pairs | None = None
    bytes_value: str | None = None


class _Values(Struct):
    values: list[_Value] = []


class _Pair(Struct):
    key: str = ""
    value: _Value | None = None


class _Pairs(Struct):
    values: list[_Pair] = []


class _Resource(Struct):
    attributes: list[_Pair] = []


class _Event(Struct):
    attributes: list[_Pair] = []


class _Status(Struct):
    code: Whole = 0
    message: str = ""


class _Span(Struct, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: Whole = 0
    end_time_unix_nano: Whole = 0
    attributes: list[_Pair] = []
    events: list[_Event] = []
    status: _Status | None = None


class _Log(Struct, rename="camel"):
    time_unix_nano: Whole = 0
    observed_time_unix_nano: Whole = 0
    event_name: str = ""
    body: _Value | None = None
    attributes: list[_Pair] = []
    trace_id: str = ""


class _ScopeSpans(Struct):
    spans: list[_Span] = []


class _ScopeLogs(Struct, rename="camel"):
    log_records: list[_Log] = []


class _ScopeMetrics(Struct):
    metrics: list[msgspec.Raw] = []


class _ResourceSpans(Struct, rename="camel"):
    resource: _Resource = field(default_factory=_Resource)
    scope_spans: list[_ScopeSpans] = []


class _ResourceLogs(Struct, rename="camel"):
    resource: _Resource = field(default_factory=_Resource)
    scope_logs: list[_ScopeLogs] = []


class _ResourceMetrics(Struct, rename="camel"):
    resource: _Resource = field(default_factory=_Resource)
    scope_metrics: list[_ScopeMetrics] = []


class _Traces(Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = []


class _Logs(Struct, rename="camel"):
    resource_logs: list[_ResourceLogs] = []


class _Metrics(Struct, rename="camel"):
    resource_metrics: list[_ResourceMetrics] = []


_traces: Final = msgspec.json.Decoder(_Traces, strict=False)
_logs: Final = msgspec.json.Decoder(_Logs, strict=False)
_metrics: Final = msgspec.json.Decoder(_Metrics, strict=False)


def read_json(raw: bytes, kind: Kind) -> Batch:
    """A request as JSON. Raises `WireError` and nothing else."""
    batch = Batch()
    try:
        if kind is Kind.TRACES:
            _read_traces(_traces.decode(raw), batch)
        elif kind is Kind.LOGS:
            _read_logs(_logs.decode(raw), batch)
        else:
            _read_metrics(_metrics.decode(raw), batch)
    except FAULTS as error:
        raise explain(error) from error
    return batch


def _read_traces(request: _Traces, batch: Batch) -> None:
    for source in request.resource_spans:
        resource = _attributes(source.resource.attributes)
        batch.resources.append(resource)
        for scope in source.scope_spans:
            _count(batch, len(scope.spans))
            batch.records += [_span(span, resource) for span in scope.spans]


def _read_logs(request: _Logs, batch: Batch) -> None:
    for source in request.resource_logs:
        resource = _attributes(source.resource.attributes)
        batch.resources.append(resource)
        for scope in source.scope_logs:
            _count(batch, len(scope.log_records))
            batch.records += [_log(log, resource) for log in scope.log_records]


def _read_metrics(request: _Metrics, batch: Batch) -> None:
    for source in request.resource_metrics:
        batch.resources.append(_attributes(source.resource.attributes))
        batch.count += sum(len(scope.metrics) for scope in source.scope_metrics)


def _count(batch: Batch, more: int) -> None:
    batch.count += more
    if batch.count > RECORDS_MAX:
        raise WireError("", f"over {RECORDS_MAX} records in one request")


def _span(span: _Span, resource: Attributes) -> Record:
    record = Record(
        span.name,
        _attributes(span.attributes),
        resource,
        int(span.start_time_unix_nano) * NANO,
        int(span.end_time_unix_nano) * NANO,
        span.trace_id.lower(),
        span.span_id.lower(),
        span.parent_span_id.lower(),
    )
    if span.status is not None:
        record.message, record.failed = span.status.message, span.status.code in _ERROR
    for event in span.events if record.failed else ():
        attributes = _attributes(event.attributes)
        if (error_type := attributes.get("exception.type")) is not None:
            record.error_type = str(error_type)
            record.message = record.message or str(attributes.get("exception.message", ""))
    return record


def _log(log: _Log, resource: Attributes) -> Record:
    body = None if log.body is None else _value(log.body, 0)
    return Record(
        log.event_name,
        _attributes(log.attributes),
        resource,
        ended=(int(log.time_unix_nano) or int(log.observed_time_unix_nano)) * NANO,
        trace_id=log.trace_id.lower(),
        message=body if isinstance(body, str) else "",
    )


def _attributes(pairs: list[_Pair]) -> dict[str, Any]:
    return {pair.key: None if pair.value is None else _value(pair.value, 0) for pair in pairs}


def _value(value: _Value, depth: int) -> Any:
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return int(value.int_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return float(value.double_value)
    if depth > DEPTH_MAX:
        raise WireError("", "an attribute is nested too deeply")
    if value.array_value is not None:
        return [_value(item, depth + 1) for item in value.array_value.values]
    if value.kvlist_value is not None:
        pairs = value.kvlist_value.values
        return {p.key: None if p.value is None else _value(p.value, depth + 1) for p in pairs}
    return None if value.bytes_value is None else b64decode(value.bytes_value)
