"""Single beats at a hub that stands by: those that come together are forwarded together.

While a batch is on its way to the hub that judges, the next one gathers; without others a beat leaves at once. Each beat
goes with the token that it came with, and that hub judges each by its own. It says of each beat what the answer is, or
that it has to come alone, as does every unusual request: by `forwarding.py`. Nothing is answered before that hub has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from lifesigns.hub.service import Service
from lifesigns.ports.request_ids import HEADER, request_id
from lifesigns.web.access import bearer_of, check_page, headers_of
from lifesigns.web.answers import Problem
from lifesigns.web.beat_fast_path import METHOD, Peer, Waiting, taken_answer, whole_answer
from lifesigns.web.exchange import HttpExchange, written
from lifesigns.web.forwarded import BEATS_OF_HUB, FORWARDED, ReachedHub
from lifesigns.web.forwarding import Forwarding, answer_lost, not_reached
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.leader_connection import AnswerLost, LeaderConnections, NotReached
from lifesigns.web.routes import SPEAKERS
from lifesigns.wire import fits_together

BATCH_MAX: Final = 256
UNDER_WAY_MAX: Final = 2
"""Batches on their way at once: one is answered while the next is heard."""
WAITING_MAX: Final = 10_000
ANSWER_FOR: Final = 5.0

Results = Sequence[bytes | None]
"""For each beat the body of its answer, empty for the usual one; None if it has to come alone."""

log: Final = logging.getLogger("lifesigns.web")

_results: Final = msgspec.msgpack.Decoder(list[bytes | None])


class BeatForwarding:
    """Forwards single beats, those of a moment together."""

    def __init__(self, service: Service, host_policy: HostPolicy, forwarding: Forwarding) -> None:
        self._service, self._host_policy, self._forwarding = service, host_policy, forwarding
        self._waiting: list[tuple[bytes, Waiting]] = []
        """With their tokens."""
        self._turn: asyncio.Handle | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    def take(self, peer: Peer, exchange: HttpExchange) -> bool:
        """Take a complete request for this path; False if it has to go the long way."""
        body = bytes(exchange.body)
        if not exchange.keep_alive or not fits_together(body) or len(self._waiting) >= WAITING_MAX:
            return False
        token = self._token(exchange)
        if token is None:
            return False
        self._waiting.append((token, Waiting(peer, exchange, body)))
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._hand_over)
        return True

    def _token(self, exchange: HttpExchange) -> bytes | None:
        """The token of a request that may go with others."""
        try:
            headers = headers_of(exchange.scope)
            self._host_policy.check_host(headers.get(b"host"))
            check_page(headers, self._host_policy)
        except Problem:
            return None
        token = bearer_of(headers)
        if token is None or b"content-encoding" in headers or FORWARDED in headers:
            return None
        exchange.given_id = headers.get(HEADER)
        who = self._service.access.principal(token, self._service.clock())
        return token if who is not None and who.role in SPEAKERS else None

    def _hand_over(self) -> None:
        self._turn = None
        while self._waiting and len(self._under_way) < UNDER_WAY_MAX:
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            task = asyncio.get_running_loop().create_task(self._carry(batch))
            self._under_way.add(task)
            task.add_done_callback(self._arrived)

    def _arrived(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._hand_over()

    async def _carry(self, batch: Sequence[tuple[bytes, Waiting]]) -> None:
        try:
            results = await self._ask([(token, one.body) for token, one in batch])
        except NotReached:
            self._refuse(batch, not_reached())
        except (AnswerLost, TimeoutError):
            self._refuse(batch, answer_lost())
        except Exception:  # a bug of ours must leave no client without an answer
            log.exception("beats were not forwarded", extra={"action": "request_failed"})
            self._refuse(batch, answer_lost())
        else:
            for (_, one), result in zip(batch, results, strict=True):
                if result is None:
                    one.peer.start(one.exchange)
                else:
                    given = one.exchange.given_id
                    whole = whole_answer(result, request_id(given)) if result else taken_answer(given)
                    one.peer.answer(one.exchange, whole)

    def _refuse(self, batch: Sequence[tuple[bytes, Waiting]], problem: Problem) -> None:
        """They have to come again; a hub in another zone may ask meanwhile whether they live."""
        answer, giver, now = problem.answer(), self._service.opinion_giver, self._service.clock()
        headers = ((b"content-type", answer.content_type), (b"content-length", b"%d" % len(answer.body)))
        for token, one in batch:
            called = request_id(one.exchange.given_id)
            whole = written(answer.status, (*headers, *answer.headers, (HEADER, called))) + answer.body
            one.peer.answer(one.exchange, whole)
            who = None if giver is None else self._service.access.principal(token, now)
            if giver is not None and who is not None:
                giver.note_post(one.body, who, beats=True)

    async def _ask(self, posts: Sequence[tuple[bytes, bytes]]) -> Results:
        """Raises `NotReached` if none was heard, `AnswerLost` if that is not known."""
        leader = self._forwarding.leader()
        connection = await leader.take()
        try:
            connection.begin(self._written(leader, msgspec.msgpack.encode(posts)))
            async with asyncio.timeout(ANSWER_FOR):
                head = await connection.head()
                body = b""
                while piece := await connection.piece():
                    body += piece
        finally:
            leader.give_back(connection)
        if head.status != 200:
            return [None] * len(posts)  # It takes none of them together, and says of each why.
        try:
            results = _results.decode(body)
        except msgspec.MsgspecError:
            raise AnswerLost from None
        if len(results) != len(posts):
            raise AnswerLost
        return results

    def _written(self, leader: LeaderConnections, body: bytes) -> bytes:
        macs = self._service.access.tokens.hub_macs
        assert macs is not None
        forwarded = ReachedHub("-", leader.authority, "-", 0, tls=False, behind_proxy=False).header(macs)
        head = b"%s %s HTTP/1.1\r\nhost: %s\r\n%s%s: %s\r\ncontent-length: %d\r\n\r\n"
        target, slot_line = BEATS_OF_HUB.encode(), leader.slot_line
        return head % (METHOD, target, leader.authority, slot_line, FORWARDED, forwarded, len(body)) + body
