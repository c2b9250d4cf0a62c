"""OTLP as protobuf, read by hand: the few messages of a trace or log request, and of them the few fields that count.

A field that nobody reads is skipped by its length, as every reader of protobuf does with fields it does not know. Most
attributes of a batch are the same few bytes again and again (`gen_ai.operation.name` = `execute_tool`): they are read
once and remembered, which makes this as fast as the generated reader in C, whose values have to be asked for one by one.

The law: whatever the bytes are, a `WireError` is all that leaves here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from lifesigns.errors import WireError
from lifesigns.wire.otlp.records import DEPTH_MAX, NANO, RECORDS_MAX, Attributes, Batch, Kind, Record

_REMEMBERED_MAX: Final = 8192
_REMEMBERED_BYTES_MAX: Final = 96
"""Longer attributes are arguments and results: they seldom come twice."""

_u64: Final = struct.Struct("<Q").unpack_from
_u32: Final = struct.Struct("<I").unpack_from
_double: Final = struct.Struct("<d").unpack_from

_remembered: dict[bytes, tuple[str, Any]] = {}

_ERROR: Final = 2
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def read_protobuf(raw: bytes, kind: Kind) -> Batch:
    """An `ExportTraceServiceRequest`, or that of logs or metrics."""
    batch = Batch()
    try:
        for number, body in _messages(raw):
            if number == 1:
                _resource_records(body, kind, batch)
    except ValueError as error:
        raise WireError("", f"the body is no OTLP protobuf of {kind}: {error}") from None
    except (IndexError, struct.error):
        raise WireError("", f"the body is no OTLP protobuf of {kind}: it is cut off") from None
    return batch


# --- messages ----------------------------------------------------------------------------------------


def _resource_records(raw: bytes, kind: Kind, batch: Batch) -> None:
    """ResourceSpans, ResourceLogs, ResourceMetrics: 1 is the resource, 2 are the scopes with what they made."""
    resource: Attributes = {}
    scopes: list[bytes] = []
    for number, body in _messages(raw):
        if number == 1:
            resource = _attributes_in(body, 1)
        elif number == 2:
            scopes.append(body)
    batch.resources.append(resource)
    read, records = _span if kind is Kind.TRACES else _log, batch.records
    for scope in scopes:
        for number, body in _messages(scope):
            if number != 2:
                continue
            if kind is Kind.METRICS:
                batch.points += 1
                continue
            if len(records) >= RECORDS_MAX:
                raise WireError("", f"over {RECORDS_MAX} records in one request")
            records.append(read(body, resource))


def _span(raw: bytes, resource: Attributes) -> Record:  # noqa: C901 -- calls would cost more than the fields they read
    """Span: 1 trace, 2 span, 4 parent, 5 name, 7 start, 8 end, 9 attributes, 11 events, 15 status."""
    attributes: dict[str, Any] = {}
    trace_id = span_id = parent_id = name = ""
    started = ended = 0.0
    events: list[bytes] = []
    status = b""
    pos, end, remembered = 0, len(raw), _remembered
    while pos < end:
        tag = raw[pos]
        if tag & 7 == _LENGTH and tag < 0x80:
            size = raw[pos + 1]
            if size < 0x80:
                pos += 2
            else:
                size, pos = _varint(raw, pos + 1)
            part = raw[pos : pos + size]
            pos += size
            if tag == 0x4A:
                key, value = remembered.get(part) or _attribute(part)
                attributes[key] = value
            elif tag == 0x0A:
                trace_id = part.hex()
            elif tag == 0x12:
                span_id = part.hex()
            elif tag == 0x22:
                parent_id = part.hex()
            elif tag == 0x2A:
                name = part.decode("utf-8", "replace")
            elif tag == 0x5A:
                events.append(part)
            elif tag == 0x7A:
                status = part
        elif tag == 0x39:
            started = _u64(raw, pos + 1)[0] * NANO
            pos += 9
        elif tag == 0x41:
            ended = _u64(raw, pos + 1)[0] * NANO
            pos += 9
        else:
            pos = _skip(raw, pos)
    if pos > end:
        raise IndexError  # The last part is not whole.
    record = Record(name, attributes, resource, started, ended, trace_id, span_id, parent_id)
    if status:
        _status(status, record)
        if record.failed:
            _exception(events, record)
    return record


def _status(raw: bytes, record: Record) -> None:
    for number, value in _fields(raw):
        if number == 2 and isinstance(value, bytes):
            record.message = value.decode("utf-8", "replace")
        elif number == 3:
            record.failed = value == _ERROR


def _exception(events: list[bytes], record: Record) -> None:
    """What a span says of the last exception it recorded."""
    for event in events:
        attributes = _attributes_in(event, 3)
        if (error_type := attributes.get("exception.type")) is not None:
            record.error_type = str(error_type)
            record.message = record.message or str(attributes.get("exception.message", ""))


def _log(raw: bytes, resource: Attributes) -> Record:
    """LogRecord: 1 time, 11 observed time, 5 body, 6 attributes, 9 trace, 10 span, 12 event name."""
    attributes: dict[str, Any] = {}
    record = Record("", attributes, resource)
    observed = 0.0
    for number, value in _fields(raw):
        if isinstance(value, bytes):
            if number == 6:
                key, said = _attribute(value)
                attributes[key] = said
            elif number == 5:
                body = _value(value, 0)
                record.message = body if isinstance(body, str) else ""
            elif number == 9:
                record.trace_id = value.hex()
            elif number == 12:
                record.name = value.decode("utf-8", "replace")
        elif number == 1:
            record.ended = value * NANO
        elif number == 11:
            observed = value * NANO
    record.ended = record.ended or observed
    return record


# --- attributes --------------------------------------------------------------------------------------


def _attributes_in(raw: bytes, place: int) -> dict[str, Any]:
    return dict(_attribute(body) for number, body in _messages(raw) if number == place)


def _attribute(raw: bytes) -> tuple[str, Any]:
    """Its key and its value."""
    known = _remembered.get(raw)
    if known is None:
        known = _short(raw) or _key_value(raw, 0)
        if len(raw) <= _REMEMBERED_BYTES_MAX:
            if len(_remembered) >= _REMEMBERED_MAX:
                _remembered.clear()
            _remembered[raw] = known
    return known


def _short(raw: bytes) -> tuple[str, str | int] | None:
    """An attribute that is a text of less than 128 bytes or a number, as most are: key, value and the text in it have lengths of
    one byte each."""
    if len(raw) < 4 or raw[0] != 0x0A or (place := 2 + raw[1]) + 4 > len(raw) or raw[1] >= 0x80:
        return None
    if raw[place] != 0x12 or place + 2 + raw[place + 1] != len(raw) or raw[place + 1] >= 0x80:
        return None
    if raw[place + 2] == 0x0A and raw[place + 3] + 2 == raw[place + 1]:
        return raw[2:place].decode("utf-8", "replace"), raw[place + 4 :].decode("utf-8", "replace")
    if raw[place + 2] == 0x18:
        number, stop = _varint(raw, place + 3)
        if stop == len(raw) and number < 1 << 63:
            return raw[2:place].decode("utf-8", "replace"), number
    return None


def _key_value(raw: bytes, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, body in _messages(raw):
        if number == 1:
            key = body.decode("utf-8", "replace")
        elif number == 2:
            value = _value(body, depth)
    return key, value


def _value(raw: bytes, depth: int) -> Any:
    """AnyValue: 1 string, 2 bool, 3 int, 4 double, 5 array, 6 key-value list, 7 bytes."""
    if depth > DEPTH_MAX:
        raise ValueError("an attribute is nested too deeply")
    value: Any = None
    for number, part in _fields(raw):
        if isinstance(part, bytes):
            if number == 1:
                value = part.decode("utf-8", "replace")
            elif number == 5:
                value = [_value(item, depth + 1) for place, item in _messages(part) if place == 1]
            elif number == 6:
                pairs = (item for place, item in _messages(part) if place == 1)
                value = dict(_key_value(item, depth + 1) for item in pairs)
            elif number == 7:
                value = part
        elif number == 2:
            value = bool(part)
        elif number == 3:
            value = part - (1 << 64) if part >= 1 << 63 else part
        elif number == 4:
            value = _double(part.to_bytes(8, "little"))[0]
    return value


# --- the encoding ------------------------------------------------------------------------------------


def _messages(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that have a length: messages, texts and bytes."""
    pos, end = 0, len(raw)
    while pos < end:
        tag = raw[pos]
        if tag & 7 != _LENGTH:
            pos = _skip(raw, pos)
            continue
        tag, pos = (tag, pos + 1) if tag < 0x80 else _varint(raw, pos)
        size, pos = (raw[pos], pos + 1) if raw[pos] < 0x80 else _varint(raw, pos)
        stop = pos + size
        if stop > end:
            raise IndexError
        yield tag >> 3, raw[pos:stop]
        pos = stop


def _fields(raw: bytes) -> Iterator[tuple[int, bytes | int]]:
    """All fields: number, and the bytes, or the number that a field without a length is."""
    pos, end = 0, len(raw)
    while pos < end:
        tag = raw[pos]
        pos += 1
        if tag >= 0x80:
            tag, pos = _varint(raw, pos - 1)
        wire_type = tag & 7
        if wire_type == _LENGTH:
            size = raw[pos]
            pos += 1
            if size >= 0x80:
                size, pos = _varint(raw, pos - 1)
            stop = pos + size
            if stop > end:
                raise IndexError
            yield tag >> 3, raw[pos:stop]
            pos = stop
        elif wire_type == _VARINT:
            value, pos = _varint(raw, pos)
            yield tag >> 3, value
        elif wire_type == _FIXED64:
            yield tag >> 3, _u64(raw, pos)[0]
            pos += 8
        elif wire_type == _FIXED32:
            yield tag >> 3, _u32(raw, pos)[0]
            pos += 4
        else:
            raise ValueError(f"there is no wire type {wire_type}")


def _skip(raw: bytes, pos: int) -> int:
    """Past the field that begins here."""
    tag, pos = _varint(raw, pos)
    wire_type = tag & 7
    if wire_type == _VARINT:
        return _varint(raw, pos)[1]
    if wire_type == _LENGTH:
        size, pos = _varint(raw, pos)
    elif wire_type in (_FIXED64, _FIXED32):
        size = 8 if wire_type == _FIXED64 else 4
    else:
        raise ValueError(f"there is no wire type {wire_type}")
    if pos + size > len(raw):
        raise IndexError
    return pos + size


def _varint(raw: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        part = raw[pos]
        pos += 1
        value |= (part & 0x7F) << shift
        if part < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, pos
        shift += 7
        if shift >= 70:
            raise ValueError("a number is too long")
