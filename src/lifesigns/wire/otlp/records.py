"""Records: a span or a log record, as far as anybody here reads it, and the limits of what is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

DEPTH_MAX: Final = 32
"""How deep the value of an attribute may be nested."""

RECORDS_MAX: Final = 100_000
"""Records of one delivery: 8 MiB of empty ones would be four million."""

NANO: Final = 1e-9

Attributes = Mapping[str, Any]


class Kind(StrEnum):
    """What an exporter sends to which address."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class Record(Struct, gc=False):
    """A span that ended, or an event of a log. No part of a cycle, and there are thousands: the collector need not visit them."""

    name: str
    """Of a span; of an event that says its name apart from its attributes."""
    attributes: Attributes
    resource: Attributes
    """Shared by all records of one source."""
    started: float = 0.0
    """Seconds since the epoch by the clock of who made it, as is the next; 0 if it does not say."""
    ended: float = 0.0
    trace_id: str = ""
    span_id: str = ""
    parent_id: str = ""
    failed: bool = False
    message: str = ""
    """Of the status of a span; the body of a log record, if that is a text."""
    error_type: str = ""
    """From the exception that a span recorded."""


@dataclass(slots=True)
class Batch:
    """What one delivery holds."""

    records: list[Record] = field(default_factory=list)
    resources: list[Attributes] = field(default_factory=list)
    """Of metrics, whose points nobody reads: whose they are."""
    count: int = 0
    """Records and points that were sent, with those that nobody reads."""
