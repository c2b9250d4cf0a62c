"""Somebody who listens to a hub's events, as a browser would: by hand, over a socket of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

WAIT_FOR = 20.0
"""A bound, not a wait: the machine may be busy."""


@dataclass
class Told:
    """One event of the stream."""

    id: int | None
    type: str
    event: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.event["data"]
        return data


@dataclass
class Ear:
    """Reads a stream of events. Only as it is asked to: who does not ask is a slow listener."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    retry_after_ms: int | None = None
    comments: int = 0

    async def begin(self) -> None:
        """Until the stream has begun: from here on nothing is missed."""
        async with asyncio.timeout(WAIT_FOR):
            self.status = int((await self.reader.readline()).split()[1])
            while line := (await self.reader.readline()).strip():
                name, _, value = line.decode().partition(":")
                self.headers[name.lower()] = value.strip()
            if self.status == 200:
                (block,) = [await self._block()]
                assert block is not None
                self.retry_after_ms = int(block[0].removeprefix("retry: "))

    async def next(self) -> Told | None:
        """The next event; None if the stream has ended."""
        async with asyncio.timeout(WAIT_FOR):
            while (block := await self._block()) is not None:
                fields = dict(line.split(": ", 1) for line in block if not line.startswith(":"))
                if not fields:
                    self.comments += 1
                    continue
                told_id = fields.get("id")
                return Told(
                    None if told_id is None else int(told_id), fields["event"], json.loads(fields["data"])
                )
            return None

    async def _block(self) -> list[str] | None:
        """The lines up to the next empty one. Every piece the hub sends is a chunk; an event may be in one with others."""
        while "\n\n" not in self._text:
            size = int((await self.reader.readline()).strip() or b"0", 16)
            if not size:
                return None
            self._text += (await self.reader.readexactly(size)).decode()
            await self.reader.readexactly(2)
        block, _, self._text = self._text.partition("\n\n")
        return block.splitlines()

    _text: str = ""

    async def hang_up(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def listening(
    url: str, token: str, query: str = "", last: str | int | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[Ear]:
    """A listener whose stream has begun."""
    place = urlsplit(url)
    assert place.hostname is not None
    reader, writer = await asyncio.open_connection(place.hostname, place.port, local_addr=(address, 0))
    ear = Ear(reader, writer)
    try:
        resume = "" if last is None else f"Last-Event-ID: {last}\r\n"
        writer.write(
            f"GET /api/v1/events{query} HTTP/1.1\r\nHost: {place.netloc}\r\n"
            f"Authorization: Bearer {token}\r\n{resume}\r\n".encode()
        )
        await ear.begin()
        yield ear
    finally:
        await ear.hang_up()


async def until(holds: Any, wait_for: float = WAIT_FOR) -> None:
    """Return when something holds; fails after a while."""
    async with asyncio.timeout(wait_for):
        while not holds():  # noqa: ASYNC110 -- what is waited for is in another thread, or tells nobody
            await asyncio.sleep(0.01)
