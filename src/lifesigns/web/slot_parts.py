"""A delivery with agents of several slots, taken apart: each hub gets and decodes what is its own, and nothing else.

A look at the ids is a fraction of what reading a message takes. Whose a message is, is read here as hubs read it. What names
nobody that can be read goes to any hub, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lifesigns.errors import WireError
from lifesigns.hub.slots import slot_of
from lifesigns.wire import batches, codec
from lifesigns.wire.beats import agents_of
from lifesigns.wire.limits import BATCH_MAX
from lifesigns.wire.signed import is_signed


@dataclass(slots=True)
class Messages:
    """Some of a delivery, still encoded, and their places there."""

    raws: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


class Part(NamedTuple):
    """Some messages of a delivery, as a delivery of their own."""

    body: bytes
    places: Sequence[int]

    def place_of(self, index: int) -> int:
        """The place in the whole. What was one broken line there may be read as two messages here."""
        return self.places[min(index, len(self.places) - 1)]


class Parts(NamedTuple):
    """The messages of a delivery. None at all if nobody can tell them apart: then any hub says what is wrong."""

    by_slot: Mapping[int, Messages]
    unread: Messages
    """Those that name nobody, or cannot be read."""
    is_signed: bool = False
    """It is one signed text: each hub has to get the whole, and takes what is its own."""
    in_lines: bool = False
    msgpack: bool = False

    def part_for(self, slots: Sequence[int]) -> Part:
        """What is for these slots."""
        chosen = [self.by_slot[slot] for slot in slots]
        raws = [raw for messages in chosen for raw in messages.raws]
        places = [place for messages in chosen for place in messages.places]
        return Part(batches.joined(raws, msgpack=self.msgpack), places)

    def unread_part(self) -> Part:
        """What no hub can read."""
        raws = self.unread.raws
        body = b"\n".join(raws) if self.in_lines else batches.as_array(raws, msgpack=self.msgpack)
        return Part(body, self.unread.places)


_NOTHING: Final = Parts({}, Messages())


def parts_of(body: bytes) -> Parts:
    """The messages of a delivery, by slot."""
    signed = is_signed(body)
    raw = body.partition(b"\n")[2] if signed else body
    try:
        raws = batches.split(raw) if raw and len(raw) <= BATCH_MAX else []
    except WireError:
        raws = []
    if not raws:
        return _NOTHING._replace(is_signed=signed)
    named = agents_of(raw, raws)
    by_slot: dict[int, Messages] = {}
    unread = Messages()
    for place, (message, agent_id) in enumerate(zip(raws, named, strict=True)):
        if agent_id is None:
            own = unread
        elif (known := by_slot.get(slot := slot_of(agent_id))) is None:
            own = by_slot[slot] = Messages()
        else:
            own = known
        own.raws.append(message)
        own.places.append(place)
    return Parts(by_slot, unread, signed, not codec.is_array(raw), codec.is_msgpack(raw))
