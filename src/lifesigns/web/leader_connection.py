"""Connections of a hub that stands by to the one that judges: kept, proved, and one call at a time on each.

An answer comes piece by piece, as it is sent; while its reader is slow, nothing more is read. A connection that was left
in the middle of a call is not used again. Everything is bounded: the time to connect, the head of an answer, what waits
for a slow reader, and how long a connection is kept: shorter than the other hub keeps it, so that no call is written to
one that is just being closed.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import deque
from functools import cache
from hmac import compare_digest
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from lifesigns.hub.token_macs import HubMacs
from lifesigns.web.connections import Patience
from lifesigns.web.forwarded import CHALLENGE, PROOF, SLOT, proof
from lifesigns.wire.addresses import exposure, is_loopback

CONNECT_FOR: Final = 3.0
PROVE_FOR: Final = 3.0
HEAD_MAX: Final = 64 * 1024
KEPT_FOR: Final = Patience().idle_for / 2
KEPT_MAX: Final = 256
WAITING_MAX: Final = 256 * 1024
"""Bytes of an answer that wait for its reader."""


class NotReached(Exception):
    """The hub that judges cannot be asked: nothing was sent to it. The text says why."""


class AnswerLost(Exception):
    """The connection ended before the answer did: the call may have been heard."""


class Head(NamedTuple):
    """The beginning of an answer."""

    status: int
    headers: list[tuple[bytes, bytes]]


class LeaderConnection(asyncio.Protocol):
    """One connection. `begin` a call, then take its `head`, then its pieces."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._head: Head | None = None
        self._head_bytes = 0
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._bodiless = False
        self.answered = False
        """Whether the call has its whole answer."""
        self.begun = False
        """Whether any of its answer has come."""
        self._lost = False
        self._news: asyncio.Future[None] | None = None
        self.kept_until = 0.0
        self.fresh = True
        """Whether it has carried no call yet: then it cannot have been closed for being idle."""
        self._goes_on = False
        """Whether the other side keeps it open after this answer."""

    # --- a call ---------------------------------------------------------------------------------------

    def begin(self, request: bytes, *, bodiless: bool = False) -> None:
        """Send a call. The answer to a HEAD is `bodiless`."""
        self._head, self._headers, self._head_bytes = None, [], 0
        self.answered = self.begun = False
        self._bodiless = bodiless
        self.transport.write(request)

    async def head(self) -> Head:
        """The head of the answer, when it is there. Raises `AnswerLost`."""
        while self._head is None:
            if self._lost:
                raise AnswerLost
            await self._wait()
        return self._head

    async def piece(self) -> bytes:
        """What has come of the body; empty at its end. Raises `AnswerLost` if it has been cut off."""
        while not self._pieces:
            if self.answered:
                return b""
            if self._lost:
                raise AnswerLost
            await self._wait()
        piece = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting_bytes = 0
        if self._paused and not self._lost:
            self._paused = False
            self.transport.resume_reading()
        return piece

    @property
    def is_reusable(self) -> bool:
        """Whether it can carry another call."""
        return self.answered and self._goes_on and not self.is_lost

    @property
    def is_lost(self) -> bool:
        return self._lost or self.transport.is_closing()

    def close(self) -> None:
        """End it at once."""
        self._lose()
        self.transport.abort()

    async def _wait(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _lose(self) -> None:
        self._lost = True
        self._wake()

    # --- what the loop tells --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    def data_received(self, data: bytes) -> None:
        self.begun = True
        if self._head is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.close()
        if self._head is None and self._head_bytes > HEAD_MAX:
            self.close()

    # --- what the parser tells ------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:  # Else it is a trailer.
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        self._head = Head(status, self._headers)
        self._goes_on = not self._bodiless and self._parser.should_keep_alive()
        if self._bodiless:
            self.answered = True  # The parser does not know, and waits for a body.
        self._wake()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._waiting_bytes += len(body)
        if self._waiting_bytes > WAITING_MAX and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if self._head is None:  # 1xx: the answer is still to come.
            self._headers = []
            return
        self.answered = True
        self._wake()


class LeaderConnections:
    """All connections to one hub, by its name and address."""

    def __init__(self, name: str, url: str, macs: HubMacs, slot: int | None = None) -> None:
        self.name, self.url = name, url
        self.slot_line = b"" if slot is None else b"%s: %d\r\n" % (SLOT, slot)
        """Goes with each call: which of the hubs in that process is meant, if it has one for each slot."""
        self._macs = macs
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self.authority = parts.netloc.encode()
        self._kept: list[LeaderConnection] = []
        self._busy: set[LeaderConnection] = set()
        self._ended = False

    async def take(self, *, fresh: bool = False) -> LeaderConnection:
        """A connection for one call: a kept one, or a new one. Raises `NotReached`."""
        now = asyncio.get_running_loop().time()
        while self._kept and not fresh:
            connection = self._kept.pop()
            if now < connection.kept_until and not connection.is_lost:
                connection.fresh = False
                self._busy.add(connection)
                return connection
            connection.close()
        connection = await self._connect()
        self._busy.add(connection)
        return connection

    def give_back(self, connection: LeaderConnection) -> None:
        """The call is over."""
        self._busy.discard(connection)
        if self._ended or not connection.is_reusable or len(self._kept) >= KEPT_MAX:
            connection.close()
            return
        connection.kept_until = asyncio.get_running_loop().time() + KEPT_FOR
        self._kept.append(connection)

    async def prove(self) -> None:
        """Raises `NotReached` if the hub is not there, or is another one."""
        connection = await self.take()
        try:
            if not connection.fresh:
                await self._prove(connection)
        finally:
            self.give_back(connection)

    def close(self) -> None:
        """End everything: this hub judges no more."""
        self._ended = True
        for connection in (*self._kept, *self._busy):
            connection.close()
        self._kept.clear()

    async def _connect(self) -> LeaderConnection:
        if self._ended:
            raise NotReached("it judges no more")
        if why := exposure(self.url):
            raise NotReached(why)
        try:
            async with asyncio.timeout(CONNECT_FOR):
                _, connection = await asyncio.get_running_loop().create_connection(
                    LeaderConnection, self._host, self._port, ssl=trust() if self._tls else None
                )
        except TimeoutError:
            raise NotReached(f"{self.url}: no connection within {CONNECT_FOR:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise NotReached(
                f"{self.url}: {error.verify_message}; SSL_CERT_FILE names the authority"
            ) from error
        except (OSError, UnicodeError) as error:
            raise NotReached(self._of_no_use(str(error) or type(error).__name__)) from error
        try:
            await self._prove(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _prove(self, connection: LeaderConnection) -> None:
        """Have it prove that it is the hub we take it for, before it gets anybody's token."""
        challenge = secrets.token_hex(16).encode()
        connection.begin(
            b"GET /healthz HTTP/1.1\r\nhost: %s\r\n%s%s: %s\r\n\r\n"
            % (self.authority, self.slot_line, CHALLENGE, challenge)
        )
        try:
            async with asyncio.timeout(PROVE_FOR):
                head = await connection.head()
                while await connection.piece():
                    pass
        except TimeoutError:
            raise NotReached(f"{self.url}: no answer within {PROVE_FOR:g} s") from None
        except AnswerLost:
            raise NotReached(f"{self.url}: it closed the connection") from None
        shown = dict(head.headers).get(PROOF, b"")
        if not compare_digest(shown, proof(self._macs, challenge, self.name, self.url)):
            raise NotReached(self._of_no_use(f"who answers there does not prove to be {self.name}"))

    def _of_no_use(self, why: str) -> str:
        if is_loopback(self.url):
            why += (
                "; that is an address of its own machine: if it runs on another one than this hub, start it with --host "
                "and an address that this hub reaches"
            )
        return f"{self.url}: {why}"


@cache
def trust() -> ssl.SSLContext:
    """Trusts the system's authorities, or those of `SSL_CERT_FILE`, as senders and clients do."""
    return ssl.create_default_context()
