"""Answers to an exporter: everything counts, or so many did not and why. In the form in which it asked."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from lifesigns.wire.otlp.records import Kind

REASON_MAX: Final = 500

_REJECTED: Final = {
    Kind.TRACES: "rejectedSpans",
    Kind.LOGS: "rejectedLogRecords",
    Kind.METRICS: "rejectedDataPoints",
}


class Form(StrEnum):
    """How a request is written."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


def encode_answer(form: Form, kind: Kind, rejected: int = 0, reason: str = "") -> bytes:
    """An `Export...ServiceResponse`; with a partial success if some were rejected."""
    reason = reason[:REASON_MAX]
    if form is Form.JSON:
        if not rejected:
            return b"{}"
        return msgspec.json.encode(
            {"partialSuccess": {_REJECTED[kind]: str(rejected), "errorMessage": reason}}
        )
    if not rejected:
        return b""
    text = reason.encode()
    inside = b"\x08" + _varint(rejected) + b"\x12" + _varint(len(text)) + text
    return b"\x0a" + _varint(len(inside)) + inside


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
