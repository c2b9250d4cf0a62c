"""The codec: bytes to checked structs and back, in JSON or MessagePack.

The law: whatever the bytes are, only a `WireError` leaves here, and it names the field if there is one. Of a repeated
key the last counts, as in nearly every JSON reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from lifesigns.errors import WireError

FAULTS: Final = (msgspec.DecodeError, ValueError, TypeError, ArithmeticError, RecursionError)
"""What msgspec raises on hostile bytes: mostly its own error; Python's for invalid UTF-8, numbers with thousands of
digits and endless nesting."""

DETAIL_MAX: Final = 200
"""Characters of a detail: some quote the peer, which may have sent 64 KiB."""

MILLISECONDS_FROM: Final = 1e11
"""A number above this is in milliseconds: as seconds it would be the year 5138, as milliseconds 1973."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_begins_array: Final = re.compile(rb"[ \t\r\n]*\[").match
_PLACE = re.compile(r" - at (?:`key` in )?`\$([^`]*)`$")
_MISSING = re.compile(r"Object missing required field `([^`]*)`$")


class Codec:
    """Reads one type from either format."""

    __slots__ = ("from_json", "from_lines", "from_msgpack")

    def __init__(self, shape: Any) -> None:
        decoder = msgspec.json.Decoder(shape)
        self.from_json: Callable[[bytes], Any] = decoder.decode
        self.from_lines: Callable[[bytes], list[Any]] = decoder.decode_lines
        self.from_msgpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder(shape).decode

    def read(self, raw: bytes) -> Any:
        """The message as its type, or a `WireError`."""
        try:
            return self.from_msgpack(raw) if is_msgpack(raw) else self.from_json(raw)
        except FAULTS as error:
            raise explain(error) from error


def is_msgpack(raw: bytes) -> bool:
    """Whether the first byte begins a MessagePack map or array; no JSON begins like that."""
    first = raw[0]
    return 0x80 <= first <= 0x9F or 0xDC <= first <= 0xDF


def is_array(raw: bytes) -> bool:
    """Whether the message is a batch: an array in its format."""
    if is_msgpack(raw):
        return 0x90 <= raw[0] <= 0x9F or raw[0] in (0xDC, 0xDD)
    return _begins_array(raw) is not None


def write(value: Any, *, msgpack: bool) -> bytes:
    """The value in the wanted format."""
    return msgspec.msgpack.encode(value) if msgpack else msgspec.json.encode(value)


def explain(error: Exception) -> WireError:
    """The msgspec error as what was wrong, and in which field."""
    if isinstance(error, RecursionError):
        return WireError("", "the message is nested too deeply")
    if isinstance(error, UnicodeError):
        return WireError("", "a text in the message is not valid UTF-8")
    detail, field = str(error), ""
    if place := _PLACE.search(detail):
        detail = detail[: place.start()]
        field = place[1].replace("[...]", "").lstrip(".")
    if missing := _MISSING.match(detail):
        field = f"{field}.{missing[1]}" if field else missing[1]
        detail = "is missing"
    first = (
        detail[:1] if detail[1:2].isupper() else detail[:1].lower()
    )  # "JSON is malformed" begins with a name.
    return WireError(field, f"{first}{detail[1:DETAIL_MAX]}")


def seconds(moment: datetime | float) -> float:
    """A moment as seconds since the epoch, from RFC 3339, epoch seconds or epoch milliseconds."""
    if isinstance(moment, float):
        return moment / 1000 if moment > MILLISECONDS_FROM else moment
    return moment.timestamp()


def written(moment: float) -> str | float:
    """A moment as RFC 3339 with milliseconds; as a number if it is beyond the calendar."""
    try:
        at = _EPOCH + timedelta(milliseconds=round(moment * 1000))
    except OverflowError:
        return moment * 1000 if moment > 0 else moment
    return f"{at.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def on_our_clock(until: float | None, sent_at: float | None, now: float | None) -> float | None:
    """A moment of the agent's clock on ours: as far from our `now` as it was from the agent's."""
    if until is None or sent_at is None or now is None:
        return until
    return now + (until - sent_at)
