"""Forwarding: a hub that stands by passes every call on to the one that judges, and streams the answer back.

The client's own token and cookie go along, nothing is added to its rights. A call is repeated only if that is safe: a
GET, or one that was surely not sent. When the hub that judges is gone, or another one judges, all its calls end, so that
their clients ask again: here or elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any, Final

from lifesigns.errors import AdapterError
from lifesigns.hub.access import SYNC_EVERY
from lifesigns.hub.lease import LOOK_EVERY
from lifesigns.hub.service import Service
from lifesigns.web.access import SAFE, Headers
from lifesigns.web.answers import Problem
from lifesigns.web.app import Scope, Send, hang_up
from lifesigns.web.bodies import Receive
from lifesigns.web.forwarded import ANY_SLOT, FORWARDED, SLOT, ReachedHub, call_of
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.leader_connection import (
    AnswerLost,
    Head,
    LeaderConnection,
    LeaderConnections,
    NotReached,
)

PROVE_EVERY: Final = 1.0
HEAD_FOR: Final = 60.0
"""Seconds until an answer begins. A frozen hub is replaced sooner, which ends its calls."""
SILENT_FOR: Final = 120.0
"""Seconds between two pieces: a long poll takes a minute at most, and a stream of events sends something every 15 s."""

NOBODY: Final = "no hub judges right now"
RETRY_AFTER: Final = "1"

OF_A_HOP: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
"""Headers of one connection, not of the call."""
WRITTEN_ANEW: Final = OF_A_HOP | {b"host", b"content-length", b"expect", FORWARDED, SLOT}

log: Final = logging.getLogger("lifesigns.web")


class ReachedHubs:
    """Which hubs are there. Those of a process that stand by for several slots of another one ask it together."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[float, str]] = {}
        """By name and address: when it was asked, and why it is of no use; empty if it is there."""
        self._asking: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def why_away(self, hub: LeaderConnections) -> str:
        """Why this hub is not reached, as it was within the last second; empty if it is."""
        key = hub.name, hub.url
        async with self._asking[key]:
            now = asyncio.get_running_loop().time()
            asked_at, why = self._found.get(key, (-inf, ""))
            if now - asked_at < PROVE_EVERY * 0.9:
                return why
            try:
                await hub.prove()
                why = ""
            except NotReached as error:
                why = str(error)
            self._found[key] = now, why
            return why


class Forwarding:
    """The way to the hub that judges."""

    def __init__(self, service: Service, host_policy: HostPolicy, reached: ReachedHubs | None = None) -> None:
        self._service = service
        self._reached = reached or ReachedHubs()
        self._host_policy = host_policy
        self._leader: LeaderConnections | None = None
        self.why_away = NOBODY
        """Why the hub that judges is not reached; empty if it is."""

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow whoever judges, until the block is left; then all forwarded calls end."""
        tasks = [asyncio.create_task(work) for work in self._works()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._follow(None)

    def _works(self) -> Iterable[Coroutine[Any, Any, None]]:
        return (
            _repeat(self._look, LOOK_EVERY),
            _repeat(self._prove, PROVE_EVERY),
            _repeat(self._read_tokens, SYNC_EVERY),
        )

    # --- who judges -----------------------------------------------------------------------------------

    @property
    def judge(self) -> str | None:
        """The address of the hub that judged when it was last looked for."""
        return None if self._leader is None else self._leader.url

    def leader(self) -> LeaderConnections:
        """The way to whoever judges now. Raises `NotReached` if nobody does."""
        lease, macs = self._service.lease, self._service.access.tokens.hub_macs
        row = None if lease is None else lease.leader
        if row is None or lease is None or row.name == lease.name or macs is None:
            self._follow(None)
            raise NotReached(NOBODY)
        if self._leader is None or (self._leader.name, self._leader.url) != (row.name, row.url):
            self._follow(LeaderConnections(row.name, row.url, macs, self._service.hub.slot))
        assert self._leader is not None
        return self._leader

    def _follow(self, leader: LeaderConnections | None) -> None:
        before, self._leader = self._leader, leader
        if before is not None:
            before.close()

    async def _look(self) -> None:
        with suppress(NotReached):
            self.leader()

    async def _prove(self) -> None:
        try:
            why = await self._reached.why_away(self.leader())
        except NotReached as error:
            why = str(error)
        if why != self.why_away:
            self.why_away = why
            if why:
                text = "calls are refused: the hub that judges is not reached: %s"
                log.warning(text, why, extra={"action": "leader_away"})
            else:
                log.info("calls are forwarded to the hub that judges", extra={"action": "leader_reached"})

    async def _read_tokens(self) -> None:
        """Know the tokens that other hubs made. The hub that judges records their uses: if this one did, it might bring
        back one that is just being revoked."""
        access = self._service.access
        if self._service.shares_access:
            return
        try:
            if access.tokens.hub_macs is None:
                await self._service.open_access()
            else:
                await access.tokens.load()
        except AdapterError as error:
            log.debug("tokens are as they were: %s", error)

    # --- a call ---------------------------------------------------------------------------------------

    async def forward(
        self, scope: Scope, headers: Headers, body: bytes, receive: Receive, send: Send
    ) -> None:
        """Have the hub that judges answer this call. Raises a `Problem` if it cannot; not after the answer has begun."""
        relay = asyncio.ensure_future(self._relay(scope, headers, body, send))
        gone = asyncio.ensure_future(hang_up(receive))
        try:
            await asyncio.wait((relay, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not relay.done():
                relay.cancel()
            await asyncio.gather(relay, gone, return_exceptions=True)
        if not relay.cancelled():
            relay.result()

    async def _relay(self, scope: Scope, headers: Headers, body: bytes, send: Send) -> None:
        leader, connection = None, None
        try:
            leader = self.leader()
            connection, head = await self._ask(leader, scope, headers, body)
            said = [(name, value) for name, value in head.headers if name not in OF_A_HOP]
            await send({"type": "http.response.start", "status": head.status, "headers": said})
            await _pass_on(connection, scope, send)
        except NotReached as error:
            log.debug("%s %s: %s", scope["method"], scope["path"], error)
            raise not_reached() from error
        finally:
            if leader is not None and connection is not None:
                leader.give_back(connection)

    async def _ask(
        self, leader: LeaderConnections, scope: Scope, headers: Headers, body: bytes
    ) -> tuple[LeaderConnection, Head]:
        request = self._written(leader, scope, headers, body)
        method = scope["method"]
        connection = await leader.take()
        for again in (method in SAFE and not connection.fresh, False):
            connection.begin(request, bodiless=method == "HEAD")
            try:
                async with asyncio.timeout(HEAD_FOR):
                    return connection, await connection.head()
            except TimeoutError:
                leader.give_back(connection)
                raise Problem(504, f"the hub that judges did not answer within {HEAD_FOR:g} s") from None
            except AnswerLost:
                leader.give_back(connection)
                if not again:
                    break
                connection = await leader.take(fresh=True)
            except BaseException:
                leader.give_back(connection)
                raise
        raise not_reached() if method in SAFE else answer_lost()

    def _written(self, leader: LeaderConnections, scope: Scope, headers: Headers, body: bytes) -> bytes:
        """The call as bytes."""
        macs, lease = self._service.access.tokens.hub_macs, self._service.lease
        assert macs is not None
        assert lease is not None
        reached = ReachedHub.of(lease.name, scope, headers[b"host"], self._host_policy)
        lines = [
            b"%s HTTP/1.1\r\n" % call_of(scope),
            b"host: %s\r\n%s: %s\r\n" % (leader.authority, FORWARDED, reached.header(macs, call_of(scope))),
            b"" if ANY_SLOT in scope else leader.slot_line,
        ]
        dropped = WRITTEN_ANEW | _named(headers.get(b"connection", b""))
        lines += [b"%s: %s\r\n" % header for header in scope["headers"] if header[0] not in dropped]
        if body or b"content-length" in headers or b"transfer-encoding" in headers:
            lines.append(b"content-length: %d\r\n" % len(body))
        return b"".join((*lines, b"\r\n", body))


async def _pass_on(connection: LeaderConnection, scope: Scope, send: Send) -> None:
    """Send the body as it comes. If it is cut off, so is the client: it must not take a part for the whole."""
    try:
        while True:
            async with asyncio.timeout(SILENT_FOR):
                piece = await connection.piece()
            more = not connection.answered
            await send({"type": "http.response.body", "body": piece, "more_body": more})
            if not more:
                return
    except (AnswerLost, TimeoutError):
        scope["state"]["connection"].cut()
        await send({"type": "http.response.body"})  # To nobody: the server learns that it is over.


def not_reached() -> Problem:
    """Nobody heard the call. To whom it names the hub that judges is not for all to know."""
    detail = (
        "this hub stands by and does not reach the hub that judges; when that one is gone, another one takes over "
        "within seconds"
    )
    return Problem(503, detail, headers={"Retry-After": RETRY_AFTER})


def answer_lost() -> Problem:
    """Nobody knows whether the call was heard."""
    return Problem(
        502, "the hub that judges went away before it answered; whether it heard this is not known"
    )


def _named(connection: bytes) -> frozenset[bytes]:
    """The headers that a `Connection` header keeps to itself."""
    return frozenset(name.strip().lower() for name in connection.split(b","))


async def _repeat(work: Callable[[], Awaitable[None]], every: float) -> None:
    while True:
        try:
            await work()
        except Exception:  # a bug of ours must not end it
            log.exception("what follows the hub that judges failed", extra={"action": "request_failed"})
        await asyncio.sleep(every)
