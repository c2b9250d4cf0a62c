"""OTLP as protobuf, read by hand: the few messages of a trace or log request, and of them the few fields that count.

A field that nobody reads is skipped by its length, as every reader of protobuf does with fields it does not know; so is an
attribute that nobody reads, and a span in which nothing stands that an agent would say. Most attributes of a batch are the same
few bytes again and again (`gen_ai.operation.name` = `execute_tool`): they are read once and remembered.

The law: whatever the bytes are, a `WireError` is all that leaves here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

from lifesigns.errors import WireError
from lifesigns.wire.otlp.records import DEPTH_MAX, NANO, RECORDS_MAX, Attributes, Batch, Kind, Record

_REMEMBERED_MAX: Final = 8192
_REMEMBERED_BYTES_MAX: Final = 48
"""Longer attributes are ids, arguments and results: they seldom come twice. Neither do numbers."""

_Attribute = tuple[str, Any]
_UNREAD: Final[_Attribute] = ("", None)

_ids: Final = struct.Struct("<H16sH8sH8s").unpack_from
_times: Final = struct.Struct("<BQBQ").unpack_from
_u64: Final = struct.Struct("<Q").unpack_from
_u32: Final = struct.Struct("<I").unpack_from
_double: Final = struct.Struct("<d").unpack_from

_ERROR: Final = 2
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class Wanted:
    """What is read of spans: those that have one of these texts anywhere in them, and of these the attributes with these names."""

    def __init__(self, marks: Iterable[str], names: Iterable[str]) -> None:
        self.marks = tuple(mark.encode() for mark in marks)
        self.names = {name.encode(): name for name in names}
        """None of them: all."""
        self.remembered: dict[bytes, _Attribute] = {}


EVERYTHING: Final = Wanted(("",), ())


def read_protobuf(raw: bytes, kind: Kind, wanted: Wanted = EVERYTHING) -> Batch:
    """An `ExportTraceServiceRequest`, or that of logs or metrics."""
    batch = Batch()
    try:
        for number, body in _messages(raw):
            if number == 1:
                _resource_records(body, kind, batch, wanted)
    except ValueError as error:
        raise WireError("", f"the body is no OTLP protobuf of {kind}: {error}") from None
    except (IndexError, struct.error):
        raise WireError("", f"the body is no OTLP protobuf of {kind}: it is cut off") from None
    return batch


# --- messages ----------------------------------------------------------------------------------------


def _resource_records(raw: bytes, kind: Kind, batch: Batch, wanted: Wanted) -> None:
    """ResourceSpans, ResourceLogs, ResourceMetrics: 1 is the resource, 2 are the scopes with what they made."""
    resource: Attributes = {}
    scopes: list[bytes] = []
    for number, body in _messages(raw):
        if number == 1:
            resource = _attributes_in(body, 1)
        elif number == 2:
            scopes.append(body)
    batch.resources.append(resource)
    for scope in scopes:
        bodies = [body for number, body in _messages(scope) if number == 2]
        if kind is not Kind.METRICS and len(bodies) + batch.count > RECORDS_MAX:
            raise WireError("", f"over {RECORDS_MAX} records in one request")
        if kind is Kind.TRACES:
            batch.records += [_span(body, resource, wanted) for body in bodies if _says(body, wanted.marks)]
        elif kind is Kind.LOGS:
            batch.records += [_log(body, resource) for body in bodies]
        batch.count += len(bodies)


def _says(raw: bytes, marks: tuple[bytes, ...]) -> bool:
    for mark in marks:  # noqa: SIM110 -- a generator would cost more than it finds
        if mark in raw:
            return True
    return False


def _span(raw: bytes, resource: Attributes, wanted: Wanted) -> Record:  # noqa: C901 -- calls would cost more than the fields they read
    """Span: 1 trace, 2 span, 4 parent, 5 name, 7 start, 8 end, 9 attributes, 11 events, 15 status."""
    attributes: dict[str, Any] = {}
    trace_id = span_id = parent_id = name = ""
    started = ended = 0.0
    events: list[bytes] = []
    status = b""
    pos, end, remembered = 0, len(raw), wanted.remembered
    if end >= 38:
        # Nearly all begin with their ids.
        first, trace, second, span, third, parent = _ids(raw)
        if first == 0x100A and second == 0x0812:
            trace_id, span_id, pos = trace.hex(), span.hex(), 28
            if third == 0x0822:
                parent_id, pos = parent.hex(), 38
    while pos < end:
        tag = raw[pos]
        if tag == 0x39 and pos + 18 <= end and raw[pos + 9] == 0x41:
            _, first, _, last = _times(raw, pos)
            started, ended = first * NANO, last * NANO
            pos += 18
        elif tag == 0x39:
            started = _u64(raw, pos + 1)[0] * NANO
            pos += 9
        elif tag == 0x41:
            ended = _u64(raw, pos + 1)[0] * NANO
            pos += 9
        elif tag & 7 == _LENGTH and tag < 0x80:
            size = raw[pos + 1]
            pos += 2
            if size >= 0x80:
                size, pos = _varint(raw, pos - 1)
            part = raw[pos : pos + size]
            pos += size
            if tag == 0x4A:
                pair = remembered.get(part) or _attribute(part, wanted)
                if pair is not _UNREAD:
                    attributes[pair[0]] = pair[1]
            elif tag == 0x2A:
                name = part.decode("utf-8", "replace")
            elif tag == 0x0A:
                trace_id = part.hex()
            elif tag == 0x12:
                span_id = part.hex()
            elif tag == 0x22:
                parent_id = part.hex()
            elif tag == 0x5A:
                events.append(part)
            elif tag == 0x7A:
                status = part
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
                key, said = _attribute(value, EVERYTHING)
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
    return dict(_attribute(body, EVERYTHING) for number, body in _messages(raw) if number == place)


def _attribute(raw: bytes, wanted: Wanted) -> _Attribute:
    """Its key and its value; `_UNREAD` if nobody wants it."""
    pair = None
    if (
        len(raw) > 6 and raw[0] == 0x0A and raw[1] < 0x80
    ):  # As nearly all are: first the key, and it is short.
        stop = 2 + raw[1]
        key = raw[2:stop]
        if key in wanted.names:
            pair = _plain(wanted.names[key], raw, stop)
        elif wanted.names:
            pair = _UNREAD
        else:
            pair = _plain(key.decode("utf-8", "replace"), raw, stop)
    if pair is None:
        pair = _key_value(raw, 0)
    if len(raw) <= _REMEMBERED_BYTES_MAX and type(pair[1]) is not int:
        if len(wanted.remembered) >= _REMEMBERED_MAX:
            wanted.remembered.clear()
        wanted.remembered[raw] = pair
    return pair


def _plain(key: str, raw: bytes, pos: int) -> tuple[str, str | int] | None:
    """An attribute that is a text or a number, written as nearly all are; its value begins here."""
    end = len(raw)
    if pos + 4 > end or raw[pos] != 0x12:
        return None
    size, pos = raw[pos + 1], pos + 2
    if size >= 0x80:
        size, pos = _varint(raw, pos - 1)
    if size < 2 or pos + size != end:
        return None
    tag, value, pos = raw[pos], raw[pos + 1], pos + 2
    if tag not in (0x0A, 0x18):
        return None  # What follows is no length and no number: a double may look like one without an end.
    if value >= 0x80:
        value, pos = _varint(raw, pos - 1)
    if tag == 0x0A and pos + value == end:
        return key, raw[pos:].decode("utf-8", "replace")
    return (key, value) if tag == 0x18 and pos == end and value < 1 << 63 else None


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
