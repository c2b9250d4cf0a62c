"""Limits: how much of everything a peer may send, and the types that carry these limits.

msgspec checks the types while it reads, in C, and names the failing field. It counts characters, but we promise bytes
of UTF-8: `check_bytes` is for the few messages where the two can differ.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from string import ascii_letters, digits
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from lifesigns.errors import WireError

TEXT_MAX: Final = 1024
"""Bytes of one text: a phase, a host, a task id, a key or a value of the metadata."""
PROSE_MAX: Final = 10_000
"""Characters we keep of prose (an error, a note). We cut longer prose instead of refusing it: a long stack trace must
not hide that a call has ended."""
METADATA_MAX: Final = 64
TASKS_MAX: Final = 256
BEAT_MAX: Final = 64 * 1024
SIGNAL_MAX: Final = 1024 * 1024
"""More than a beat: `args` and `result` may be large; we hash them on arrival and do not keep them."""
BATCH_MAX: Final = 8 * 1024 * 1024
ITEMS_MAX: Final = 10_000

COUNT_MAX: Final = 2**63 - 1
_FLOAT_MAX: Final = sys.float_info.max

Text = Annotated[str, Meta(max_length=TEXT_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Integer = Annotated[int, Meta(ge=-(2**63), le=COUNT_MAX)]
Finite = Annotated[float, Meta(ge=-_FLOAT_MAX, le=_FLOAT_MAX)]
Amount = Annotated[float, Meta(ge=0, le=_FLOAT_MAX)]
Share = Annotated[float, Meta(ge=0, le=1)]
Calendar = Annotated[datetime, Meta(tz=True)]
Moment = Calendar | Annotated[float, Meta(ge=-1e300, le=1e300)]
"""However far away, since it is only data; but the difference of two must be a number too."""
Tasks = Annotated[tuple[Text, ...], Meta(max_length=TASKS_MAX)]

ID_MAX: Final = 128
ID_SIGNS: Final = f"{ascii_letters}{digits}._:@/-"
_is_id = re.compile(f"[{ID_SIGNS}]{{1,{ID_MAX}}}").fullmatch


def check_id(value: str, field: str) -> str:
    """The id of an agent, checked."""
    if _is_id(value) is None:
        shown = value if len(value) <= ID_MAX else f"{value[:ID_MAX]}…"
        raise WireError(field, f"is {shown!r}, but an id is 1 to 128 of A-Z a-z 0-9 . _ : @ / -")
    return value


def check_size(raw: bytes, limit: int) -> None:
    """Refuse an empty or too large message before reading it."""
    if not raw:
        raise WireError("", "the message is empty")
    if len(raw) > limit:
        raise WireError("", f"the message has {len(raw)} bytes, over the limit of {limit} bytes")


def may_hide_bytes(raw: bytes) -> bool:
    """Whether a text in this message can be within the limit in characters and over it in bytes."""
    # Searching one byte is much faster than two, and most messages have no backslash at all.
    return len(raw) > TEXT_MAX and (not raw.isascii() or (b"\\" in raw and b"\\u" in raw))


def check_bytes(message: Struct) -> None:
    """Check that every kept text of the message (except prose) is within `TEXT_MAX` bytes of UTF-8."""
    for field in message.__struct_fields__:
        if field in PROSE or field in HASHED or field in OURS:
            continue
        for text in _texts(getattr(message, field)):
            if len(text) * 4 > TEXT_MAX and len(text.encode()) > TEXT_MAX:
                raise WireError(field, f"has a text over the limit of {TEXT_MAX} bytes")


PROSE: Final = frozenset({"detail", "error", "handoff", "message", "note", "reason", "text"})
HASHED: Final = frozenset({"args", "result"})
"""Not kept, so not limited."""
OURS: Final = frozenset({"bounded", "source"})
"""We set these and never believe a peer's."""


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple():
            yield from (item for item in value if isinstance(item, str))
        case dict():
            yield from value
            yield from (item for item in value.values() if isinstance(item, str))
