"""Moments for people: RFC 3339, UTC, milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Final

from msgspec import Meta

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


FIRST: Final = datetime(1, 1, 2, tzinfo=UTC).timestamp()
LAST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The ends of the calendar. An agent may say that it needs a million years: we show later moments as the last day."""


def moment(at: float) -> Moment:
    """Seconds since 1970 as text."""
    return (
        datetime.fromtimestamp(round(min(max(at, FIRST), LAST), 3), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def moment_or_none(at: float | None) -> Moment | None:
    """Like `moment`; None for never."""
    return moment(at) if at is not None and isfinite(at) else None
