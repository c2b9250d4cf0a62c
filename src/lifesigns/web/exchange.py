"""An exchange: one request and its answer on a connection.

It is uvicorn's, except that head and body of an answer go out together, in one call to the kernel, which is a good part
of the cost of a small request; and that it is made with as little as the fast path of beats needs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from lifesigns.errors import Bug

Headers = Iterable[tuple[bytes, bytes]]

BODILESS: Final = (204, 304)

_is_unfit: Final = HEADER_VALUE_RE.search


_NOBODY_WAITS: Final = asyncio.Event()
"""Instead of one for each exchange that no app ever sees."""


class HttpExchange(RequestResponseCycle):
    """One request and its answer."""

    _head: bytes = b""
    """Sent with the beginning of the body."""
    given_id: bytes | None = None
    """The id that the caller gave its request, if the fast path has read it."""

    # What an exchange begins with, and most of those on the fast path end with.
    logger = logging.getLogger("uvicorn.error")
    message_event = _NOBODY_WAITS
    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding = None

    def __init__(
        self,
        scope: dict[str, Any],
        transport: asyncio.Transport,
        flow: FlowControl,
        on_response: Callable[[], None],
        *,
        expect_100_continue: bool,
        keep_alive: bool,
    ) -> None:
        self.scope = scope  # type: ignore[assignment]
        self.transport, self.flow, self.on_response = transport, flow, on_response
        self.waiting_for_100_continue, self.keep_alive = expect_100_continue, keep_alive
        self.body = bytearray()

    def begin(self) -> None:
        """The app will ask for the body: what has arrived, it gets at once."""
        self.message_event = asyncio.Event()
        if self.body or not self.more_body:
            self.message_event.set()

    async def send(self, message: Any) -> None:
        """Send the next piece of the answer. Waits while its reader is slow; sends nothing to a client that is gone."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected or self.transport.is_closing():
            self.disconnected = True
            return
        if not self.response_started:
            self._begin(message["status"], message["headers"])
        else:
            self._go_on(message.get("body", b""), message.get("more_body", False))

    def _begin(self, status: int, headers: Headers) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        self.chunked_encoding = status not in BODILESS and self.scope["method"] != "HEAD"
        said = [*headers]
        for name, value in said:
            if name == b"content-length":
                self.chunked_encoding = False
            elif name == b"connection" and value.lower() == b"close":
                self.keep_alive = False
        if not self.keep_alive:
            said = [
                *((name, value) for name, value in said if name != b"connection"),
                (b"connection", b"close"),
            ]
        if self.chunked_encoding:
            # A stream: its first piece may take a while, and its reader wants to know that it is open.
            self.transport.write(written(status, [*said, (b"transfer-encoding", b"chunked")]))
        else:
            self._head = written(status, said)

    def _go_on(self, body: bytes, more: bool) -> None:
        if self.chunked_encoding:
            piece = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            self.transport.write(piece if more else piece + b"0\r\n\r\n")
        else:
            head, self._head = self._head, b""
            self.transport.write(head + body)
        if not more:
            self.response_complete = True
            self.message_event.set()
            self.on_response()


def written(status: int, headers: Headers) -> bytes:
    """A head as bytes. A value that would end a header early is a bug of ours, and must not reach a client."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        if _is_unfit(value):
            raise Bug(f"the header {name.decode()} cannot be {value!r}")
        lines += (name, b": ", value, b"\r\n")
    lines.append(b"\r\n")
    return b"".join(lines)
