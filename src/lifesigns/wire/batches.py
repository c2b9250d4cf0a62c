"""Batches: many messages in one. A bad message does not spoil the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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
    """A message of a batch that we could not read: its place, the field, and why."""

    index: int
    field: str
    detail: str


@dataclass(slots=True)
class Batch(Generic[T]):
    """The readable and the unreadable messages of a batch. `index` counts both, from 0."""

    accepted: list[T] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


_ITEM: Final = Codec(msgspec.Raw)
_ITEMS: Final = Codec(Annotated[list[msgspec.Raw], msgspec.Meta(max_length=ITEMS_MAX)])


@cache
def _counted_items() -> Codec:
    """Like `_ITEMS`, but stops at the first item over the limit: msgspec reads a JSON list to its end before it counts,
    and four million items take a second and 400 MB."""
    fields = [(f"item_{number}", msgspec.Raw, msgspec.Raw()) for number in range(ITEMS_MAX)]
    return Codec(msgspec.defstruct("Items", fields, array_like=True, forbid_unknown_fields=True, gc=False))


Decoding = Generator[None, None, Batch[T]]
"""Decodes a batch and returns it; pauses on the way, so that its caller can let others go first."""

PAUSE_EVERY: Final = 64
"""Readable messages between two pauses: a fraction of a millisecond. To find out what is wrong with an unreadable one
takes twenty times as long, so each of those is followed by a pause."""

LARGE: Final = 16 * 1024
"""So many bytes are followed by a pause, too: a call with a large result takes as long as a thousand beats."""


def decoding_each(raw: bytes, decode: Callable[[bytes], T]) -> Decoding[T]:
    """Decode each message of a batch on its own."""
    batch, read = Batch[T](), 0
    items = split(raw)
    if len(raw) >= LARGE:
        yield
    for index, item in enumerate(items):
        try:
            batch.accepted.append(decode(item))
        except WireError as error:
            batch.rejected.append(Rejected(index, error.field, error.detail))
            yield
        else:
            read += len(item)
            if read >= LARGE or not index % PAUSE_EVERY:
                read = 0
                yield
    return batch


def without_pauses(decoding: Decoding[T]) -> Batch[T]:
    """The batch, decoded in one go."""
    while True:
        try:
            next(decoding)
        except StopIteration as done:
            batch: Batch[T] = done.value
            return batch


def write_each(messages: Iterable[T], encode: Callable[[T], bytes]) -> Iterator[bytes]:
    """Encode the messages, and skip those that cannot be encoded: they must not block the others for ever."""
    for message in messages:
        try:
            yield encode(message)
        except (LifesignsError, ValueError, TypeError) as error:
            log.error("%s cannot be written and is left out: %s", type(message).__name__, error)


def pack(parts: Iterable[bytes], size_max: int) -> Iterator[bytes]:
    """Join encoded messages into few larger ones: a single one stays as it is, several become arrays."""
    batch: list[bytes] = []
    size = 2
    for part in parts:
        if len(part) + 2 > size_max:
            log.error("a message of %d bytes is left out: the limit is %d", len(part), size_max)
            continue
        if batch and (size + len(part) + 1 > size_max or len(batch) >= ITEMS_MAX):
            yield joined(batch)
            batch, size = [], 2
        batch.append(part)
        size += len(part) + 1
    if batch:
        yield joined(batch)


def joined(parts: Sequence[bytes], *, msgpack: bool = False) -> bytes:
    """Encoded messages as one: a single one stays as it is, several become an array."""
    return parts[0] if len(parts) == 1 else as_array(parts, msgpack=msgpack)


def as_array(parts: Sequence[bytes], *, msgpack: bool = False) -> bytes:
    """An array of encoded values, up to `ITEMS_MAX`."""
    if msgpack:
        return b"\xdc%b%b" % (len(parts).to_bytes(2, "big"), b"".join(parts))
    return b"[" + b",".join(parts) + b"]"


def split(raw: bytes) -> list[bytes]:
    """The messages of an array, of NDJSON, or the only one, still encoded. Counts them before reading them."""
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
    """Short input: any sequence of JSON values. Long input: one message, or one a line; broken lines are rejected one
    by one later."""
    with suppress(*codec.FAULTS):
        if len(raw) <= BEAT_MAX:
            return [bytes(item) for item in _ITEM.from_lines(raw)]
        return [bytes(_ITEM.from_json(raw))]
    if raw.count(b"\n") > ITEMS_MAX:
        raise _too_many(raw.count(b"\n"))
    return [line for line in raw.split(b"\n") if line.strip()]


def _too_many(count: int | None = None) -> WireError:
    amount = f"{count} messages" if count is not None else "too many messages"
    return WireError("", f"the batch has {amount}, over the limit of {ITEMS_MAX}")
