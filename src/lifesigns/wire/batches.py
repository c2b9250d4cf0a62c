"""Batches: many messages in one, of which one bad one does not spoil the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from lifesigns.errors import LifesignsError, WireError
from lifesigns.wire import codec
from lifesigns.wire.codec import Codec
from lifesigns.wire.limits import ITEMS_MAX

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
    """The messages of an array, of NDJSON, or the only one, still encoded."""
    if codec.is_array(raw):
        return [bytes(item) for item in _ITEMS.read(raw)]
    if codec.is_msgpack(raw):
        return [raw]
    try:
        lines = [bytes(item) for item in _ITEM.from_lines(raw)]
    except codec.FAULTS:
        # Not JSON after JSON: then one message a line, and the lines that are broken are rejected.
        lines = [line for line in raw.splitlines() if line.strip()]
    if len(lines) > ITEMS_MAX:
        raise WireError("", f"the batch has {len(lines)} messages, over the limit of {ITEMS_MAX}")
    return lines
