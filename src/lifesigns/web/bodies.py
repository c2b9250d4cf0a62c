"""Bodies: read whole and decompressed, within limits of size and time.

A compressed body is decompressed up to the limit and no further; a large one in another thread.
"""

from __future__ import annotations

import asyncio
import zlib
from asyncio import Semaphore
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final
from weakref import WeakValueDictionary

from lifesigns.web.access import Headers
from lifesigns.web.answers import Problem

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
CountBytes = Callable[[int], None]
"""Called with the size of every piece; raises a `Problem` if it is too much."""

BODY_FOR: Final = 20.0
"""Seconds a body may take to arrive, whatever its size: a slower client is gone, or means harm."""

UNPACK_BESIDE_FROM: Final = 128 * 1024
"""Bytes decompressed at once; that takes less than a millisecond."""


LARGE_FROM: Final = 64 * 1024
LARGE_AT_ONCE: Final = 8


class ClientGone(Exception):
    """The client hung up in the middle of its request."""


async def read_body(
    headers: Headers, receive: Receive, size_max: int, count: CountBytes | None = None
) -> bytes:
    """The body, decompressed. Raises if it is too large, too slow or cut off."""
    length, packing = headers.get(b"content-length", b""), headers.get(b"content-encoding", b"identity")
    if length and len(length) < 20 and int(length) > size_max:
        raise _too_large(size_max)
    if packing not in (b"gzip", b"identity"):
        raise Problem(415, f"content-encoding is {packing.decode('latin-1')!r}, but gzip is all we read")
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    raw: bytes = message.get("body", b"")
    if count is not None:
        count(len(raw))
    if message.get("more_body"):
        raw = await _rest(raw, receive, size_max, count)
    if packing == b"identity":
        return raw
    body = await _unpacked(raw, size_max)
    if count is not None:
        count(max(0, len(body) - len(raw)))
    return body


class LargeBodies:
    """Bodies that are held until others have answered: those that are large are held a few at a time for each token, and for
    all without one. The next one is not read before."""

    def __init__(self) -> None:
        self._large: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()
        """By token, while somebody sends large bodies with it."""

    def room(self, headers: Headers, token_id: str) -> AbstractAsyncContextManager[None]:
        """Holds room for the body of a request."""
        length = headers.get(b"content-length", b"0")
        if b"transfer-encoding" not in headers and len(length) < 20 and int(length) <= LARGE_FROM:
            return nullcontext()
        return self._large.setdefault(token_id, Semaphore(LARGE_AT_ONCE))


async def _rest(first: bytes, receive: Receive, size_max: int, count: CountBytes | None) -> bytes:
    parts, size = [first], len(first)
    try:
        async with asyncio.timeout(BODY_FOR):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                if count is not None:
                    count(len(part))
                if size > size_max:
                    raise _too_large(size_max)
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise Problem(
            408, f"the body did not arrive within {BODY_FOR:g} s", headers={"Connection": "close"}
        ) from None


async def _unpacked(raw: bytes, size_max: int) -> bytes:
    """Decompress up to the limit, however large the whole would be."""
    unpacking = zlib.decompressobj(31)
    try:
        body = unpacking.decompress(raw, min(UNPACK_BESIDE_FROM, size_max + 1))
        if unpacking.unconsumed_tail and len(body) <= size_max:
            left = size_max + 1 - len(body)
            body += await asyncio.to_thread(unpacking.decompress, unpacking.unconsumed_tail, left)
    except zlib.error as error:
        raise Problem(400, f"the body is no gzip: {error}") from None
    if len(body) > size_max:
        raise _too_large(size_max)
    if not unpacking.eof:
        raise Problem(400, "the gzip of the body is cut off")
    return body


def _too_large(size_max: int) -> Problem:
    return Problem(413, f"the body is over the limit of {size_max} bytes", headers={"Connection": "close"})
