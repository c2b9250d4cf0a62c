"""The fast path of beats: answers the usual beat without a task of its own.

A complete request with one beat waits for the end of this round of the loop. All that have arrived by then are read,
heard and answered together: each step runs for all of them before the next, which takes half the time. Every unusual
request goes the long way, through `app.py`, which can say what is wrong. The fast path refuses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from lifesigns.hub.http_receiver import TAKEN, IngestResult
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.web.access import bearer_of, check_page, headers_of
from lifesigns.web.answers import JSON, NOT_GUESSED, NOT_STORED, Problem, encoded
from lifesigns.web.exchange import HttpExchange, written
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.rates import Rate
from lifesigns.web.routes import SPEAKERS
from lifesigns.wire import TOGETHER_MAX, fits_together

METHOD: Final = "POST"
PATH: Final = b"/api/v1/beats"
TAKEN_STATUS: Final = 202


class Peer(Protocol):
    """A connection."""

    def answer(self, exchange: HttpExchange, whole: bytes) -> None:
        """Answer it with these bytes, head and body."""

    def start(self, exchange: HttpExchange) -> None:
        """Have the app answer it."""


class Waiting(NamedTuple):
    """A request waiting for the end of this round."""

    peer: Peer
    exchange: HttpExchange
    body: bytes


class BeatFastPath:
    """Answers single beats, all of one round together."""

    def __init__(
        self,
        service: Service,
        host_policy: HostPolicy,
        requests: Rate,
        answered: dict[int, int],
        head_costs: float,
    ) -> None:
        self._service, self._host_policy, self._answered = service, host_policy, answered
        self._requests = requests
        """By token of role agent."""
        self._shares, self._head_costs = service.hub.shares, head_costs
        self._waiting: list[Waiting] = []
        self._waits_since = 0.0

    def take(self, peer: Peer, exchange: HttpExchange) -> bool:
        """Take a complete request for this path; False if it has to go the long way."""
        body = bytes(exchange.body)
        if not exchange.keep_alive or not fits_together(body):
            return False
        if not self._waiting:
            self._waits_since = self._service.clock()
            self._service.hub.begin_gathering()
            asyncio.get_running_loop().call_soon(self.hand_over)
        self._waiting.append(Waiting(peer, exchange, body))
        if len(self._waiting) >= TOGETHER_MAX:
            self.hand_over()
        return True

    def hand_over(self) -> None:
        """Pass the waiting beats to the hub, and answer them."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._service.hub.end_gathering()
        began = self._shares.own_time()
        known: list[Waiting] = []
        principals: list[Principal] = []
        for one in waiting:
            if (principal := self._principal(one.exchange.scope)) is None:
                one.peer.start(one.exchange)
            else:
                known.append(one)
                principals.append(principal)
        if known:
            self._answer(known, self._results(known, principals))
            each = self._head_costs + (self._shares.own_time() - began) / len(known)
            for principal in principals:
                if principal.role is Role.AGENT:
                    self._shares.charge(principal.token_id, each)

    def _principal(self, scope: Mapping[str, Any]) -> Principal | None:
        """The principal, if it may beat and shows a token."""
        now = self._waits_since
        try:
            headers = headers_of(scope)
            self._host_policy.check_host(headers.get(b"host"))
            check_page(headers, self._host_policy)
        except Problem:
            return None
        bearer = bearer_of(headers)
        principal = None if bearer is None else self._service.access.principal(bearer, now)
        if principal is None or principal.role not in SPEAKERS or b"content-encoding" in headers:
            return None
        if principal.role is Role.AGENT and (
            self._shares.owes(principal.token_id) > 0 or self._requests.wait_for(principal.token_id, now)
        ):
            return None
        return principal

    def _results(
        self, known: Sequence[Waiting], principals: Sequence[Principal]
    ) -> Sequence[IngestResult] | None:
        try:
            return self._service.http_receiver.take_together(
                [one.body for one in known], principals, self._waits_since
            )
        except Exception:  # noqa: BLE001 -- a bug of ours: the long way meets it too, and says so
            return None

    def _answer(self, known: Sequence[Waiting], receptions: Sequence[IngestResult] | None) -> None:
        if receptions is None:
            for one in known:
                one.peer.start(one.exchange)
            return
        self._answered[TAKEN_STATUS] = self._answered.get(TAKEN_STATUS, 0) + len(known)
        for one, reception in zip(known, receptions, strict=True):
            one.peer.answer(one.exchange, _whole(encoded(reception)) if reception.orders else _TAKEN)


def _whole(body: bytes) -> bytes:
    headers = ((b"content-type", JSON), (b"content-length", b"%d" % len(body)), NOT_GUESSED, NOT_STORED)
    return written(TAKEN_STATUS, headers) + body


_TAKEN: Final = _whole(encoded(TAKEN))
