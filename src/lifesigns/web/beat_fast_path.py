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
from lifesigns.hub.tokens import TOKEN_MAX, digest_of
from lifesigns.ports.request_ids import HEADER, NEW, next_number, request_id
from lifesigns.web.access import bearer_of, check_page, headers_of
from lifesigns.web.answers import JSON, NOT_GUESSED, NOT_STORED, Problem, encoded
from lifesigns.web.exchange import HttpExchange, written
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.rates import Rate
from lifesigns.web.routes import SPEAKERS
from lifesigns.wire import TOGETHER_MAX, fits_together

METHOD: Final = b"POST"
PATH: Final = b"/api/v1/beats"
LENGTH: Final = b"content-length"
TAKEN_STATUS: Final = 202


class CheckedHead(NamedTuple):
    """A head that was read and found good. What a sender says next on the same connection has the same one, but for the length of
    the body, and is not read again: to compare takes a fifth of it. Whether its token is still good is asked each time."""

    headers: list[tuple[bytes, bytes]]
    length_at: int
    """The place of `Content-Length`."""
    digest: bytes
    """Of its token."""
    given_id: bytes | None
    """The id that the sender gave its request, as it came."""

    def is_same(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        """Whether this is the head of these headers too."""
        at, known = self.length_at, self.headers
        return (
            len(headers) == len(known)
            and headers[at][0] == LENGTH
            and headers[:at] == known[:at]
            and headers[at + 1 :] == known[at + 1 :]
        )


class Peer(Protocol):
    """A connection."""

    checked_head: CheckedHead | None
    """Of its last beat."""

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
            if (principal := self._principal(one.peer, one.exchange)) is None:
                one.peer.start(one.exchange)
            else:
                known.append(one)
                principals.append(principal)
        if known:
            bodies = [one.body for one in known]
            self._answer(known, self._results(bodies, principals, self._waits_since))
            self._charge(principals, began)

    def take_of_hub(self, posts: Sequence[tuple[bytes, bytes]]) -> list[bytes | None]:
        """Take beats that another hub forwards, each with the token it came with. For each the body of its answer, empty
        for the usual one; None if it was not taken, and has to come alone."""
        now = self._service.clock()
        answers: list[bytes | None] = []
        for first in range(0, len(posts), TOGETHER_MAX):
            answers += self._take_some(posts[first : first + TOGETHER_MAX], now)
        return answers

    def _take_some(self, posts: Sequence[tuple[bytes, bytes]], now: float) -> list[bytes | None]:
        began = self._shares.own_time()
        speakers = [self._speaker(token, now) if fits_together(body) else None for token, body in posts]
        principals = [one for one in speakers if one is not None]
        bodies = [body for (_, body), one in zip(posts, speakers, strict=True) if one is not None]
        results = self._results(bodies, principals, now) if bodies else None
        if results is None:
            return [None] * len(posts)
        self._charge(principals, began)
        self._answered[TAKEN_STATUS] = self._answered.get(TAKEN_STATUS, 0) + len(results)
        answers = iter(results)
        return [None if one is None else _body(next(answers)) for one in speakers]

    def _charge(self, principals: Sequence[Principal], began: float) -> None:
        each = self._head_costs + (self._shares.own_time() - began) / len(principals)
        for principal in principals:
            if principal.role is Role.AGENT:
                self._shares.charge(principal.token_id, each)

    def _principal(self, peer: Peer, exchange: HttpExchange) -> Principal | None:
        """The principal, if it may beat and shows a token."""
        head, now = peer.checked_head, self._waits_since
        scope: Mapping[str, Any] = exchange.scope
        if head is None or not head.is_same(scope["headers"]):
            head = peer.checked_head = self._check(scope)
            if head is None:
                return None
        exchange.given_id = head.given_id
        return self._may_beat(self._service.access.principal_of(head.digest, now), now)

    def _speaker(self, token: bytes, now: float) -> Principal | None:
        """The principal of a token, if it may beat now."""
        return self._may_beat(self._service.access.principal(token, now), now)

    def _may_beat(self, principal: Principal | None, now: float) -> Principal | None:
        if principal is None or principal.role not in SPEAKERS:
            return None
        if principal.role is Role.AGENT and (
            self._shares.owes(principal.token_id) > 0 or self._requests.wait_for(principal.token_id, now)
        ):
            return None
        return principal

    def _check(self, scope: Mapping[str, Any]) -> CheckedHead | None:
        """None if this head has to go the long way. What is asked here depends on nothing but the head."""
        try:
            headers = headers_of(scope)
            self._host_policy.check_host(headers.get(b"host"))
            check_page(headers, self._host_policy)
        except Problem:
            return None
        bearer = bearer_of(headers)
        if (
            bearer is None
            or len(bearer) > TOKEN_MAX
            or b"content-encoding" in headers
            or LENGTH not in headers
        ):
            return None
        said: list[tuple[bytes, bytes]] = scope["headers"]
        at = [name for name, _ in said].index(LENGTH)
        return CheckedHead(said, at, digest_of(bearer), headers.get(HEADER))

    def _results(
        self, bodies: Sequence[bytes], principals: Sequence[Principal], now: float
    ) -> Sequence[IngestResult] | None:
        try:
            return self._service.http_receiver.take_together(bodies, principals, now)
        except Exception:  # noqa: BLE001 -- a bug of ours: the long way meets it too, and says so
            return None

    def _answer(self, known: Sequence[Waiting], receptions: Sequence[IngestResult] | None) -> None:
        if receptions is None:
            for one in known:
                one.peer.start(one.exchange)
            return
        self._answered[TAKEN_STATUS] = self._answered.get(TAKEN_STATUS, 0) + len(known)
        for one, reception in zip(known, receptions, strict=True):
            given = one.exchange.given_id
            if reception.orders:
                one.peer.answer(one.exchange, whole_answer(encoded(reception), request_id(given)))
            elif given is None:
                one.peer.answer(one.exchange, _TAKEN % next_number())
            else:
                one.peer.answer(one.exchange, taken_answer(given))


def _body(reception: IngestResult) -> bytes:
    return encoded(reception) if reception.orders else b""


def whole_answer(body: bytes, called: bytes) -> bytes:
    """The answer to a beat with this id, head and body."""
    headers = (
        *((b"content-type", JSON), (b"content-length", b"%d" % len(body)), NOT_GUESSED, NOT_STORED),
        (HEADER, called),
    )
    return written(TAKEN_STATUS, headers) + body


_TAKEN: Final = whole_answer(encoded(TAKEN), NEW)
"""With room for the number of a request."""


def taken_answer(given: bytes | None) -> bytes:
    """The usual answer, to a request with this id or none."""
    return _TAKEN % next_number() if given is None else whole_answer(encoded(TAKEN), request_id(given))
