"""Together: messages of one beat each, read as one batch.

Most senders put one beat in a message. What comes in one round of the loop is read together, which takes a third of the
time; and kept together, for as long as one of them is the last beat of its agent: few enough that it does not matter if
that agent is silent for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from lifesigns.errors import WireError
from lifesigns.wire.beats import WireBeat, decode_beats

TOGETHER_MAX: Final = 32
ALONE_MAX: Final = 2048
"""Bytes of one of them; all of them together are within what one beat may have."""


class Together(NamedTuple):
    """The beats, in their order, and the batch they were read from."""

    beats: list[WireBeat]
    raw: bytes


def fits_together(raw: bytes) -> bool:
    """Whether this message may be decoded in one batch with others. It must begin and end with a brace: the newline that
    joins two of them is no comma, so an unclosed bracket makes the whole batch unreadable and can swallow no other message."""
    return raw[:1] == b"{" and raw[-1:] == b"}" and len(raw) <= ALONE_MAX


def decode_together(raws: Sequence[bytes], source: str = "", now: float | None = None) -> Together | None:
    """Messages that fit together; None if they have to be read one by one, because one of them is no single beat."""
    raw = b"\n".join(raws)
    try:
        batch = decode_beats(raw, source, now)
    except WireError:
        return None
    if batch.rejected or len(batch.accepted) != len(raws):
        return None
    return Together(batch.accepted, raw)
