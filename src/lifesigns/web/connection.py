"""One HTTP connection: reads requests with httptools, hands them to the app, and sends the answers.

`connections.py` decides how long each part may take and which connections are closed to protect the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from lifesigns.web.answers import Answer, Problem
from lifesigns.web.beat_fast_path import METHOD, PATH, BeatFastPath, CheckedHead
from lifesigns.web.connections import NEVER, Connections
from lifesigns.web.exchange import HttpExchange, written
from lifesigns.wire.addresses import is_loopback_host

if TYPE_CHECKING:
    from lifesigns.web.beat_forwarding import BeatForwarding

HEAD_MAX: Final = 64 * 1024
"""Bytes of an incomplete head, or of trailers. `access.py` limits the headers of a complete one."""

VERSIONS: Final = ("1.0", "1.1")

PIPELINE_MAX: Final = 64
"""Requests sent without waiting for an answer: more would only fill the memory."""

PROGRESS_MIN: Final = 16 * 1024
"""Bytes that a slow reader must take within `stalled_for`."""


class _Nowhere(list[tuple[bytes, bytes]]):
    """Drops trailers."""

    def append(self, _header: tuple[bytes, bytes]) -> None:
        pass


_NOWHERE: Final = _Nowhere()


class Connection(HttpToolsProtocol):
    """One connection. `due_at` is when it ends unless something happens before."""

    transport: asyncio.Transport

    def __init__(
        self,
        others: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self._others = others
        self._patience = others.patience
        self._newest: HttpExchange | None = None
        """The request being received, or the last one."""
        self._answering: HttpExchange
        self._at_once: BeatFastPath | BeatForwarding | None = getattr(self.app, "at_once", None)
        self._held: HttpExchange | None = None
        """A request for the fast path, if the rest of it has arrived as well; see `beat_fast_path.py`."""
        self.checked_head: CheckedHead | None = None
        self.address = ""
        """The address it counts for; empty for this machine."""
        self.due_at = NEVER
        self.unsent = 0
        """Bytes waiting for a slow reader, at the last check."""
        self._stalled_at = NEVER
        self._unfinished = 0
        """Bytes since the last complete head, body piece or request: the parser holds them."""
        self._in_head = False
        self._leaving = False
        """The last answer is sent; further input is ignored."""

    # --- beginning and end ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = _counted(self.client)
        self.due_at = self.loop.time() + self._patience.head_for
        if not self._others.admit(self):
            self._refuse(503, "there are too many connections already", {"Retry-After": "1"})

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.remove(self)
        self.due_at = NEVER
        super().connection_lost(exc)

    def overdue(self) -> None:
        """Its time is over. If it is in the middle of a request, it gets the reason."""
        self.due_at = self.loop.time() + self._patience.linger_for
        if self._leaving or self.transport.get_write_buffer_size():
            self._others.cut(self, "did not take its last answer")
        elif self._in_head or (self._awaits_body and not self.cycle.response_complete):
            self._others.cut_off += 1
            self._refuse(408, "the request did not arrive in time")
        else:
            self.transport.close()

    def count_for_no_address(self) -> None:
        """It is of another hub, and carries the calls of many clients."""
        if self.address:
            self._others.forget_address(self)
            self.address = ""

    def cut(self) -> None:
        """End it at once: the rest of the answer in progress will not come, and its reader shall know."""
        self.transport.abort()

    # --- hearing --------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        self._unfinished += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # There is nothing to upgrade to. What follows may be another protocol, so this answer is the last.
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self._refuse(400, "this is not HTTP/1.1 as we understand it")
        if self._held is not None:
            self.start(self._held)
        if self._unfinished > HEAD_MAX:
            part = "head" if self._in_head else "trailers"
            self._refuse(431, f"the {part} of the request: over the limit of {HEAD_MAX} bytes")

    def on_message_begin(self) -> None:
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._in_head = True
        self.due_at = self.loop.time() + self._patience.head_for

    def on_headers_complete(self) -> None:
        """A head is complete: as `HttpToolsProtocol` does it, with our own exchange. From now on a header is a trailer:
        if it counted, it could add a token or another address to a request already judged without it."""
        parser, headers = self.parser, self.headers
        version, method = parser.get_http_version(), parser.get_method()
        if version not in VERSIONS or not _names_its_host(self.url, headers):
            raise ValueError(
                "another reader would understand another request"
            )  # The parser turns this into a bad request.
        self._in_head, self._unfinished, self.headers = False, 0, _NOWHERE
        self.due_at = self.loop.time() + self._patience.body_for
        path, query = _path_and_query(self.url)
        scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "headers": headers,
            "state": self.app_state,
            "method": method.decode("ascii"),
            "raw_path": path,
            "path": path.decode("ascii"),
            "query_string": query,
        }
        before = self._newest
        self.cycle = self._newest = HttpExchange(
            scope,
            self.transport,
            self.flow,
            self.on_response_complete,
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
        )
        if before is None or before.response_complete:
            if self._at_once is not None and path == PATH and method == METHOD:
                self._held = self._newest
            else:
                self.start(self._newest)
        elif len(self.pipeline) >= PIPELINE_MAX:
            raise ValueError("too many requests at once")  # As above.
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def start(self, exchange: HttpExchange) -> None:
        """Have the app answer this request."""
        self._held, self._answering = None, exchange
        exchange.begin()
        self._start_asgi_task(exchange, self.app)

    def on_body(self, body: bytes) -> None:
        """As `HttpToolsProtocol` does it, without a look at an upgrade: there is none."""
        self._unfinished, exchange = 0, self.cycle
        if exchange.response_complete:
            return
        exchange.body += body
        if len(exchange.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        exchange.message_event.set()

    def on_message_complete(self) -> None:
        """As above."""
        self._unfinished, exchange = 0, self.cycle
        exchange.more_body = False
        if not exchange.response_complete:
            exchange.message_event.set()
        if self._held is not None:
            self._take_at_once(self._held)
        self.due_at = NEVER if not exchange.response_complete else self.loop.time() + self._patience.idle_for

    @property
    def _awaits_body(self) -> bool:
        return self._newest is not None and self._newest.more_body

    # --- answering ------------------------------------------------------------------------------------

    def _take_at_once(self, exchange: HttpExchange) -> None:
        self._held, self._answering = None, exchange
        if self.flow.write_paused or self._at_once is None or not self._at_once.take(self, exchange):
            self.start(exchange)

    def answer(self, exchange: HttpExchange, whole: bytes) -> None:
        """Answer this request with these bytes, head and body."""
        exchange.response_started = exchange.response_complete = True
        if not self.transport.is_closing():
            self.transport.write(whole)
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """An answer is sent: continue with the next request, or wait for it."""
        self.server_state.total_requests += 1
        if self.transport.is_closing() or self._leaving:
            return
        self.flow.resume_reading()
        answered = self._answering
        if not answered.keep_alive:
            self._leave(at_once=not answered.more_body)
        elif self.pipeline:
            self.start(cast("HttpExchange", self.pipeline.pop()[0]))
        else:
            patience = self._patience
            self.due_at = self.loop.time() + (
                patience.linger_for if answered.more_body else patience.idle_for
            )

    def _refuse(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        """Answer a malformed request, and close. Nothing can be added to an answer in progress."""
        self._in_head, self._unfinished = False, 0
        self._others.refused[status] += 1
        under_way = self._newest
        if under_way is None or under_way.response_complete or not under_way.response_started:
            self.transport.write(_last_words(Problem(status, detail, headers=headers).answer()))
        self._leave(at_once=False)

    def _leave(self, *, at_once: bool) -> None:
        """Close. A peer that is still sending must get our answer first: if no one read its data, the kernel would
        reset the connection, and the answer with it."""
        if at_once or not self.transport.can_write_eof():
            self.transport.close()
            return
        self._leaving = True
        self.flow.resume_reading()
        self.transport.write_eof()
        self.due_at = self.loop.time() + self._patience.linger_for

    # --- slow readers ---------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unsent = self.transport.get_write_buffer_size()
        self._stalled_at = self.loop.time()
        self._others.stalls(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._others.flows(self)
        self.unsent = 0

    def is_stalled(self, now: float) -> bool:
        """Whether its reader has taken next to nothing for too long."""
        if now - self._stalled_at < self._patience.stalled_for:
            return False
        left = self.transport.get_write_buffer_size()
        if self.unsent - left < PROGRESS_MIN:
            return True
        self._others.flows(self)
        self.unsent, self._stalled_at = left, now
        self._others.stalls(self)
        return False


def _names_its_host(target: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether an absolute target names the same host as the header: a proxy may go by one and we by the other."""
    if target.startswith(b"/"):
        return True
    authority = target.partition(b"://")[2].partition(b"/")[0]
    return [value for name, value in headers if name == b"host"] == [authority]


def _path_and_query(target: bytes) -> tuple[bytes, bytes]:
    if target == PATH:  # Nearly always.
        return PATH, b""
    url = httptools.parse_url(target)
    return url.path, url.query or b""


def _counted(client: tuple[str, int] | None) -> str:
    """The address to count by: this machine may have a proxy that all clients come through."""
    host = client[0] if client else ""
    return "" if is_loopback_host(host) else host


def _last_words(answer: Answer) -> bytes:
    headers: Iterable[tuple[bytes, bytes]] = (
        (b"content-type", answer.content_type),
        (b"content-length", b"%d" % len(answer.body)),
        (b"connection", b"close"),
        *answer.headers,
    )
    return written(HTTPStatus(answer.status), headers) + answer.body
