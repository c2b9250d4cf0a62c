"""Batches: many messages in one, of which one bad one does not spoil the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from lifesigns.errors import LifesignsError, WireError
from lifesigns.wire import codec
from lifesigns.wire.codec import Codec
from lifesigns.wire.limits import BEAT_MAX, ITEMS_MAX

T = TypeVar("T")

log: Final = logging.getLogger("lifesigns.wire")


@dataclass(slots=True)
class Rejected:
    """One message of a batch that could not be read: which, what about it, and why."""

    index: int
    field: str
    detail: str


@dataclass(slots=True)
class Batch(Generic[T]):
    """What could be read of a batch, and what not. `index` counts both, from 0."""

    accepted: list[T] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


_ITEM: Final = Codec(msgspec.Raw)
_ITEMS: Final = Codec(Annotated[list[msgspec.Raw], msgspec.Meta(max_length=ITEMS_MAX)])


@cache
def _counted_items() -> Codec:
    """As `_ITEMS`, but stops at the first item that is too many: a list of JSON is read to its end before it is counted,
    and four million items take a second and 400 MB."""
    fields = [(f"item_{number}", msgspec.Raw, msgspec.Raw()) for number in range(ITEMS_MAX)]
    return Codec(msgspec.defstruct("Items", fields, array_like=True, forbid_unknown_fields=True, gc=False))


def decode_each(raw: bytes, decode: Callable[[bytes], T]) -> Batch[T]:
    """Every message of a batch by itself."""
    batch = Batch[T]()
    for index, item in enumerate(split(raw)):
        try:
            batch.accepted.append(decode(item))
        except WireError as error:
            batch.rejected.append(Rejected(index, error.field, error.detail))
    return batch


def write_each(messages: Iterable[T], encode: Callable[[T], bytes]) -> Iterator[bytes]:
    """Every message that can be written; one that cannot must not hold up the others for ever."""
    for message in messages:
        try:
            yield encode(message)
        except (LifesignsError, ValueError, TypeError) as error:
            log.error("%s cannot be written and is left out: %s", type(message).__name__, error)


def pack(parts: Iterable[bytes], size_max: int) -> Iterator[bytes]:
    """Encoded messages as few larger ones: a single one as it is, several as arrays that are read at once."""
    parcel: list[bytes] = []
    size = 2
    for part in parts:
        if len(part) + 2 > size_max:
            log.error("a message of %d bytes is left out: the limit is %d", len(part), size_max)
            continue
        if parcel and (size + len(part) + 1 > size_max or len(parcel) >= ITEMS_MAX):
            yield _joined(parcel)
            parcel, size = [], 2
        parcel.append(part)
        size += len(part) + 1
    if parcel:
        yield _joined(parcel)


def _joined(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"[" + b",".join(parts) + b"]"


def split(raw: bytes) -> list[bytes]:
    """The messages of an array, of NDJSON, or the only one, still encoded. They are counted before they are read."""
    if codec.is_array(raw):
        return [bytes(item) for item in _array(raw)]
    if codec.is_msgpack(raw):
        return [raw]
    messages = _messages(raw)
    if len(messages) > ITEMS_MAX:
        raise _too_many(len(messages))
    return messages


def _array(raw: bytes) -> Sequence[msgspec.Raw]:
    if codec.is_msgpack(raw) or raw.count(b",") < ITEMS_MAX:
        items: Sequence[msgspec.Raw] = _ITEMS.read(raw)
        return items
    try:
        counted = _counted_items().from_json(raw)
    except msgspec.ValidationError:
        raise _too_many() from None
    except codec.FAULTS as error:
        raise codec.explain(error) from error
    return [item for item in msgspec.structs.astuple(counted) if item]


def _messages(raw: bytes) -> list[bytes]:
    """JSON after JSON, however it is laid out, if it is short; if it is long, one message, or one a line. Lines that are
    broken are rejected one by one."""
    with suppress(*codec.FAULTS):
        if len(raw) <= BEAT_MAX:
            return [bytes(item) for item in _ITEM.from_lines(raw)]
        return [bytes(_ITEM.from_json(raw))]
    if raw.count(b"\n") > ITEMS_MAX:
        raise _too_many(raw.count(b"\n"))
    return [line for line in raw.split(b"\n") if line.strip()]


def _too_many(count: int | None = None) -> WireError:
    found = f"{count} messages" if count is not None else "too many messages"
    return WireError("", f"the batch has {found}, over the limit of {ITEMS_MAX}")
