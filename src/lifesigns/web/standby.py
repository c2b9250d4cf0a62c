"""Standby: what a hub answers while another hub on the same store judges.

It passes every call on (`forwarding.py`), so that every address is as good as that of the hub that judges. By itself it
says only how it is, and which hubs there are. Of many wrong tokens it passes on a few, so that the hub that judges learns
of them, and lets whoever sends them wait.

A call that was forwarded already is not forwarded again: two hubs that each take the other for the one that judges would
pass it to and fro. What only hubs may ask is not forwarded either: the hub that judges would take it for this one's own.

A body is held here until its answer has come; of those that are large, only a few at a time (`bodies.py`).
"""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from typing import Final

from lifesigns.config.values import Limits
from lifesigns.hub.principals import Principal
from lifesigns.hub.service import Service
from lifesigns.ports.correlation import correlation_id
from lifesigns.ports.request_ids import HEADER, request_id
from lifesigns.views import Alive, Ready
from lifesigns.web import second_opinion
from lifesigns.web.access import SAFE, Headers, check_page, headers_of, refused, token_shown
from lifesigns.web.answers import Answer, Problem, answer, guarded
from lifesigns.web.app import Scope, Send, send_answer
from lifesigns.web.beat_forwarding import BeatForwarding
from lifesigns.web.bodies import ClientGone, LargeBodies, Receive, read_body
from lifesigns.web.forwarded import BEATS_OF_HUB, is_forwarded
from lifesigns.web.forwarding import RETRY_AFTER, Forwarding, ReachedHubs, not_reached
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.hubs import HUBS, hubs
from lifesigns.web.routes import READERS, Request

PAGE: Final = """<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>lifesigns: standing by</title>
<p>{}.</p>
"""
BEATS: Final = "/api/v1/beats"
SIGNALS: Final = "/api/v1/signals"
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503

log: Final = logging.getLogger("lifesigns.web")


class StandbySite:
    """The application of a hub that stands by."""

    def __init__(
        self, service: Service, host_policy: HostPolicy, limits: Limits, reached: ReachedHubs | None = None
    ) -> None:
        self._service = service
        self._host_policy = host_policy
        self._opinions = second_opinion.SecondOpinions(service)
        self._limits = limits
        self._large_bodies = LargeBodies()
        self._forwarding = Forwarding(service, host_policy, reached)
        self.at_once = BeatForwarding(service, host_policy, self._forwarding)

    @property
    def why_away(self) -> str:
        """Why the hub that judges is not reached; empty if it is."""
        return self._forwarding.why_away

    @property
    def judge(self) -> str | None:
        """The address of the hub that judges; None if it is not reached."""
        return None if self.why_away else self._forwarding.judge

    def following(self) -> AbstractAsyncContextManager[None]:
        """Forward calls to whoever judges, until the block is left."""
        return self._forwarding.following()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope, called = with_id(scope)
        correlation_id.set(called.decode())
        try:
            found = await self._answer(scope, receive, send)
        except Problem as problem:
            is_page = scope["path"] == "/" and problem.status == UNAVAILABLE
            found = _as_page(problem) if is_page else problem.answer()
        except ClientGone:
            return
        except Exception:  # a bug of ours must fail one request and not all
            log.exception("%s %s failed", scope["method"], scope["path"], extra={"action": "request_failed"})
            found = Problem(500, "this is a bug of lifesigns; its log says more").answer()
        if found is not None:
            headers = [*found.headers, (HEADER, called)]
            found.headers = guarded(headers, self._host_policy.strict_transport(scope))
            await send_answer(found, scope, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """The answer of this hub; None if the other one has answered."""
        headers = headers_of(scope)
        if scope["path"] == second_opinion.PATH:
            return await self._opinions.answer(scope, receive)
        self._host_policy.check_host(headers.get(b"host"))
        if scope["path"] == "/healthz":
            return answer(Alive())
        if is_forwarded(scope):
            raise not_reached()
        if scope["path"] == BEATS_OF_HUB:
            raise Problem(404, "this is for hubs alone")
        who = await self._principal(scope, headers)
        if scope["path"] == "/readyz":
            return self._ready(who)
        if scope["path"] == HUBS and scope["method"] in SAFE and who is not None and who.role in READERS:
            return await hubs(Request(self._service, who, {}, None, None, scope))
        async with self._large_bodies.room(headers, "" if who is None else who.token_id):
            length = {b"content-length": headers[b"content-length"]} if b"content-length" in headers else {}
            body = await read_body(length, receive, self._limits.body_bytes)
            if scope["method"] == "POST" and scope["path"] in (BEATS, SIGNALS) and who is not None:
                await self._opinions.note_post(headers, body, who, beats=scope["path"] == BEATS)
            await self._forwarding.forward(scope, headers, body, receive, send)
        return None

    def _ready(self, who: Principal | None) -> Answer:
        why = self.why_away
        told = "ok" if not why else why if who is not None and who.role in READERS else "away"
        return answer(Ready("standby", "ok", "none", blind=False, judge=told), 503 if why else 200)

    async def _principal(self, scope: Scope, headers: Headers) -> Principal | None:
        """The principal, if this hub knows the token: the hub that judges decides. Raises a `Problem` if the request
        itself is bad, or the last of too many wrong tokens."""
        if scope["method"] not in SAFE:
            check_page(headers, self._host_policy)
        token, access = token_shown(scope, headers), self._service.access
        if token is None:
            return None
        who = await access.look_up(token, self._service.clock())
        if who is None:
            detail = "the token is unknown, revoked or too old"
            problem = refused(scope, access, self._service.clock(), self._host_policy, detail)
            if problem.status == TOO_MANY:
                raise problem
        return who


def with_id(scope: Scope) -> tuple[Scope, bytes]:
    """A request with an id, which the hub that judges takes on; and the id."""
    given = dict(scope["headers"]).get(HEADER)
    called = request_id(given)
    if given == called:
        return scope, called
    others = [(name, value) for name, value in scope["headers"] if name != HEADER]
    return {**scope, "headers": [*others, (HEADER, called)]}, called


def _as_page(problem: Problem) -> Answer:
    """For a person, whose browser tries again."""
    page = PAGE.format(problem.detail.capitalize()).encode()
    headers = [(b"retry-after", RETRY_AFTER.encode())]
    return Answer(page, problem.status, b"text/html; charset=utf-8", headers)
