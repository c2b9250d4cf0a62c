"""gRPC, on this side of the port: the same tokens, limits and reading of OTLP as over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.http_receiver import InboxFull, NotLeader, NotStored
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.web.access import refused_from
from lifesigns.web.answers import Problem
from lifesigns.web.app import REFUSED_AFTER, Site
from lifesigns.web.otlp import take_batch
from lifesigns.web.routes import SPEAKERS
from lifesigns.wire.otlp import Form, Kind

HERE: Final = "gRPC"
"""The address of everybody without a good token: the port is open to this machine alone."""

STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "UNAVAILABLE",
}
"""Of our problems. `UNAVAILABLE` is what an exporter repeats by itself; everything else it drops."""


class OverGrpc:
    """Takes batches from a gRPC server, and counts what else it is asked."""

    def __init__(self, service: Service, site: Site) -> None:
        self._service = service
        self._site = site

    def may_ask(self, address: str) -> bool:
        """Count a question without a token; False if there were too many from this address. Others are answered: an
        orchestrator may restart what it cannot ask about."""
        try:
            self._site.rates.check_address(address, self._service.clock())
        except Problem:
            return False
        return True

    async def take(self, kind: str, raw: bytes, authorization: str) -> tuple[str, bytes]:
        """The name of a gRPC status, and the answer or the reason."""
        try:
            who = self._principal(authorization)
            self._site.rates.check_events(who, self._service.clock())
            heard = take_batch(self._service, self._site, raw, Form.PROTOBUF, Kind(kind), who)
            return "OK", await (
                self._within_limits(who, len(raw), heard) if who.role is Role.AGENT else heard
            )
        except Problem as problem:
            if problem.status == 429:
                await asyncio.sleep(REFUSED_AFTER)
            return STATUS.get(problem.status, "INTERNAL"), problem.detail.encode()
        except WireError as error:
            return "INVALID_ARGUMENT", error.detail.encode()
        except (InboxFull, NotStored, NotLeader, AdapterError) as error:
            return "UNAVAILABLE", str(error.__doc__).encode()

    def _principal(self, authorization: str) -> Principal:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Problem(401, "metadata has to have authorization: Bearer <token>")
        bearer = token.strip().encode("ascii", "replace")
        who = self._service.access.principal(bearer, self._service.clock())
        if who is None:
            self._site.rates.check_address(HERE, self._service.clock())
            self._service.token_watch.note_refused(bearer, [])
            detail = "the token is unknown, revoked or too old"
            raise refused_from(HERE, self._service.access, self._service.clock(), detail)
        if who.role not in SPEAKERS:
            roles = ", ".join(sorted(SPEAKERS))
            raise Problem(403, f"{who.name!r} is {who.role}, but this needs one of: {roles}")
        return who

    async def _within_limits(self, who: Principal, size: int, heard: Coroutine[Any, Any, bytes]) -> bytes:
        """As of any request of an agent: its rates, and its share of the hub's time."""
        rates, shares, now = self._site.rates, self._service.hub.shares, self._service.clock()
        try:
            await rates.check_share(who.token_id, who.name, shares)
            rates.check_token(who.token_id, who.name, now)
            rates.take_bytes(who.token_id, who.name, size, now)
        except Problem:
            heard.close()
            self._service.hub.put_off(who.token_id)
            raise
        return await shares.measured(who.token_id, heard)
