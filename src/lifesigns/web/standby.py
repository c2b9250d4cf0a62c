"""Standby: what a hub answers while another hub on the same store judges.

It lists the hubs to whoever may read them. To others it names neither the hub that judges nor its address. A token that
it does not know may be new, so it answers as to everybody; whoever tries many has to wait.
"""

from __future__ import annotations

from typing import Final

from lifesigns.hub.service import Service
from lifesigns.views import Alive, Ready
from lifesigns.web.access import admit, headers_of
from lifesigns.web.answers import Answer, Problem, answer, guarded
from lifesigns.web.app import Scope, Send, send_answer
from lifesigns.web.bodies import Receive
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.hubs import HUBS, hubs
from lifesigns.web.routes import READERS, Request

WHY: Final = (
    "this hub stands by: another hub on the same store judges, and this one takes over when that one is gone; "
    "clients that know both (LIFESIGNS_HUB=URL,URL) find the right one"
)
PAGE: Final = f"""<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>lifesigns: standing by</title>
<p>{WHY.capitalize()}.</p>
""".encode()
RETRY_AFTER: Final = "1"
TOO_MANY: Final = 429


class StandbySite:
    """The application of a hub that stands by."""

    def __init__(self, service: Service, host_policy: HostPolicy) -> None:
        self._service = service
        self._host_policy = host_policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                found = await self._hubs(scope) if scope["path"] == HUBS else _answer(scope["path"])
            except Problem as problem:
                found = problem.answer()
            found.headers = guarded(found.headers, only_tls=False)
            await send_answer(found, scope, send)

    async def _hubs(self, scope: Scope) -> Answer:
        service = self._service
        who = admit(scope, headers_of(scope), service.access, service.clock(), self._host_policy)
        if isinstance(who, Problem) and who.status == TOO_MANY:
            raise who
        if scope["method"] != "GET" or isinstance(who, Problem) or who.role not in READERS:
            return _answer(HUBS)
        return await hubs(Request(service, who, {}, None, None, scope))


def _answer(path: str) -> Answer:
    match path:
        case "/healthz":
            return answer(Alive())
        case "/readyz":
            return answer(Ready("standby", "ok", "none", blind=False), 503)
        case "/":
            return Answer(PAGE, 503, b"text/html; charset=utf-8", [(b"retry-after", RETRY_AFTER.encode())])
    return Problem(503, WHY, headers={"Retry-After": RETRY_AFTER}).answer()
