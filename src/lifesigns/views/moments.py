"""Moments as people read them: RFC 3339, UTC, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Annotated

from msgspec import Meta

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


def moment(at: float) -> Moment:
    """Seconds since 1970 as text."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_or_none(at: float | None) -> Moment | None:
    """As `moment`; None for never."""
    return moment(at) if at is not None and isfinite(at) else None
