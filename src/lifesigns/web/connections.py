"""Connections: how many there may be, how long each may take, and which are closed to protect the others.

    a head      must be complete some seconds after its first byte; and its size is limited
    a body      likewise, whether a handler reads it or not; trailers after it are bounded and ignored
    an answer   that its reader does not take is held for a while, and all such answers together up to a limit
    idle        connections stay open for a minute or so, for the next beat

One check a second of all connections enforces these times: a timer for each of ten thousand would cost more. The kernel
detects peers that vanished (`server.listen`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Any, Final, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from lifesigns.web.answers import Answer, Problem
from lifesigns.web.beat_fast_path import METHOD, PATH, BeatFastPath
from lifesigns.web.exchange import HttpExchange, written
from lifesigns.wire.addresses import is_loopback_host

NEVER: Final = inf
LOOK_EVERY: Final = 1.0

FULL_FOR: Final = 60.0
"""Seconds since the last refused connection for which the hub still counts as full: a refused client retries within
them."""

HEAD_MAX: Final = 64 * 1024
"""Bytes of an incomplete head, or of trailers. `access.py` limits the headers of a complete one."""

VERSIONS: Final = ("1.0", "1.1")

PIPELINE_MAX: Final = 64
"""Requests sent without waiting for an answer: more would only fill the memory."""

PROGRESS_MIN: Final = 16 * 1024
"""Bytes that a slow reader must take within `stalled_for`."""

log: Final = logging.getLogger("lifesigns.web")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long we wait for a peer, in seconds."""

    head_for: float = 10.0
    body_for: float = 30.0
    """Whether a handler reads it or not; a handler waits less, see `app.py`."""
    idle_for: float = 75.0
    """Longer than the beat interval of most: a sender that beats every 60 s keeps its connection."""
    stalled_for: float = 10.0
    linger_for: float = 2.0
    """For a peer that is still sending to receive our refusal."""


class Connections:
    """All connections of one server."""

    def __init__(
        self,
        most: int = 10_000,
        most_per_address: int = 1_000,
        patience: Patience | None = None,
        unsent_max: int = 64 * 1024 * 1024,
    ) -> None:
        self.most = most
        self.most_per_address = most_per_address
        self.patience = patience or Patience()
        self.unsent_max = unsent_max
        """Limit for the bytes of all answers that their readers do not take."""
        self.turned_away = 0
        self._turned_away_at = -NEVER
        self.cut_off = 0
        """Peers that took too long."""
        self.refused: Counter[int] = Counter()
        """Refused connections and malformed requests, by the status of the answer."""
        self._open: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._stalled: dict[Connection, None] = {}
        """Connections with a stalled reader, the longest first."""
        self._unsent = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def unsent(self) -> int:
        """Bytes of answers waiting for slow readers."""
        return self._unsent

    def why_full(self, _now: float) -> str:
        """Why new connections are refused; empty if none was for a minute."""
        if time.monotonic() - self._turned_away_at > FULL_FOR:
            return ""
        return (
            f"{len(self)} connections are open and there is no room for more (at most {self.most}, {self.most_per_address} from "
            "one address); raise limits.connections, and ulimit -n of the hub"
        )

    # --- what connections tell ------------------------------------------------------------------------

    def admit(self, connection: Connection) -> bool:
        """Add a new connection; False if there are too many already."""
        address = connection.address
        if len(self._open) >= self.most or self._by_address[address] >= self.most_per_address:
            self.turned_away += 1
            self._turned_away_at = time.monotonic()
            if (
                self.turned_away.bit_count() == 1
            ):  # Log the first, the second, the fourth: the log stays readable.
                log.warning(
                    "%d connections turned away so far; %d are open",
                    self.turned_away,
                    len(self._open),
                    extra={"action": "connections_full"},
                )
            return False
        self._open.add(connection)
        if address:
            self._by_address[address] += 1
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self.flows(connection)
        address = connection.address
        if address:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def stalls(self, connection: Connection) -> None:
        """Its reader is slower than its answer. If all of them hold too much, cut the one that has stalled longest."""
        if connection not in self._stalled:
            self._stalled[connection] = None
            self._unsent += connection.unsent
        while self._unsent > self.unsent_max and self._stalled:
            self.cut(next(iter(self._stalled)), "holds an answer that it does not read")

    def flows(self, connection: Connection) -> None:
        """Its reader has caught up, or is gone."""
        if connection in self._stalled:
            del self._stalled[connection]
            self._unsent -= connection.unsent

    def cut(self, connection: Connection, why: str) -> None:
        """End it at once, whatever is under way."""
        self.cut_off += 1
        log.debug("%s %s", connection.address or "a peer", why, extra={"action": "connection_cut"})
        self.flows(connection)
        connection.transport.abort()

    # --- looking after them ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Run `check` about once a second, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(LOOK_EVERY, self.patience.head_for / 4))
            self.check(loop.time())

    def check(self, now: float) -> None:
        """End the connections whose time is over."""
        for connection in [one for one in self._open if one.due_at <= now]:
            connection.overdue()
        for connection in [one for one in self._stalled if one.is_stalled(now)]:
            self.cut(connection, "does not read its answer")

    def cut_stalled(self) -> None:
        """The server is about to end: do not wait for stalled readers."""
        self.unsent_max = 0
        for connection in tuple(self._stalled):
            self.cut(connection, "does not read its answer, and we are leaving")

    def end(self) -> None:
        """The server has ended: abort all connections."""
        for connection in tuple(self._open):
            connection.transport.abort()


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
        super().__init__(config, server_state, app_state, _loop)
        self._others = others
        self._patience = others.patience
        self._newest: HttpExchange | None = None
        """The request being received, or the last one."""
        self._answering: HttpExchange
        self._at_once: BeatFastPath | None = getattr(self.app, "at_once", None)
        self._held: HttpExchange | None = None
        """A request for the fast path, if the rest of it has arrived as well; see `beat_fast_path.py`."""
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
        super().on_message_begin()
        self._in_head = True
        self.due_at = self.loop.time() + self._patience.head_for

    def on_headers_complete(self) -> None:
        """A head is complete: as `HttpToolsProtocol` does it, with our own exchange. From now on a header is a trailer:
        if it counted, it could add a token or another address to a request already judged without it."""
        parser, scope = self.parser, self.scope
        version = parser.get_http_version()
        if version not in VERSIONS or not _names_its_host(self.url, self.headers):
            raise ValueError(
                "another reader would understand another request"
            )  # The parser turns this into a bad request.
        self._in_head, self._unfinished, self.headers = False, 0, _NOWHERE
        self.due_at = self.loop.time() + self._patience.body_for
        url = httptools.parse_url(self.url)
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["raw_path"] = url.path
        scope["path"] = url.path.decode("ascii")
        scope["query_string"] = url.query or b""
        before = self._newest
        self.cycle = self._newest = HttpExchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            if self._at_once is not None and scope["raw_path"] == PATH and scope["method"] == METHOD:
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
        self._start_asgi_task(exchange, self.app)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._unfinished = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._unfinished = 0
        self.cycle.more_body = False
        if self._held is not None:
            self._take_at_once(self._held)
        self.due_at = (
            NEVER if not self.cycle.response_complete else self.loop.time() + self._patience.idle_for
        )

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
