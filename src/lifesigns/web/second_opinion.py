"""Second opinion: another hub on the same store asks this one, which stands by, whether it hears some agents.

No token opens this: only a hub that has `tokens.key`, too, can ask (`hub/hub_requests.py`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from lifesigns.errors import WireError
from lifesigns.hub.hub_requests import NONCE, SESSION, RequestGuard, answer_headers
from lifesigns.hub.opinion_asker import PATH
from lifesigns.hub.principals import Principal
from lifesigns.hub.service import Service
from lifesigns.web.access import Headers, headers_of
from lifesigns.web.answers import JSON, Answer, Problem
from lifesigns.web.app import Scope
from lifesigns.web.bodies import Receive, read_body
from lifesigns.wire.opinions import BODY_MAX, decode_inquiry, encode

POST_MAX: Final = 1024 * 1024
"""Bytes of a post that is looked into."""

__all__ = ["PATH", "SecondOpinions"]


class SecondOpinions:
    """Answers the inquiries of other hubs."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard: RequestGuard | None = None

    async def answer(self, scope: Scope, receive: Receive) -> Answer:
        """The opinions, signed. A hub that does not know the present session is told it."""
        raw, giver, macs = (
            headers_of(scope),
            self._service.opinion_giver,
            self._service.access.tokens.hub_macs,
        )
        if giver is None:
            raise Problem(404, "this hub has no zone")
        if macs is None:
            raise Problem(503, "this hub has not read its keys yet")
        if self._guard is None:
            self._guard = RequestGuard(macs)
        if scope["method"] != "POST":
            raise Problem(405, "hubs ask with POST", headers={"Allow": "POST"})
        body = await read_body(raw, receive, BODY_MAX)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw.items()}
        if not self._guard.admits(headers, PATH, body):
            raise Problem(
                401, "only hubs on the same store may ask this", headers={SESSION: self._guard.session}
            )
        try:
            inquiry = decode_inquiry(body)
        except WireError as error:
            raise Problem(400, str(error)) from None
        found = encode(await giver.answer(inquiry))
        signed = answer_headers(macs, headers[NONCE], found)
        return Answer(
            found, 200, JSON, [(name.encode(), value.encode()) for name, value in signed.items()], final=True
        )

    async def note_post(self, headers: Headers, body: bytes, who: Principal, *, beats: bool) -> None:
        """Agents post to this hub, perhaps because they do not reach the one that judges: note that they live."""
        giver = self._service.opinion_giver
        if giver is None:
            return

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        with suppress(Problem):  # The hub that judges says what is wrong with it.
            giver.note_post(await read_body(headers, receive, POST_MAX), who, beats=beats)
