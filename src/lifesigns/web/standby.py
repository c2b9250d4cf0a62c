"""Standby: what a hub answers while another hub on the same store judges.

It names neither that hub nor its address: whoever asks here has shown no token.
"""

from __future__ import annotations

from typing import Final

from lifesigns.views import Alive, Ready
from lifesigns.web.answers import Answer, Problem, answer, guarded
from lifesigns.web.app import Scope, Send, send_answer
from lifesigns.web.bodies import Receive

WHY: Final = (
    "this hub stands by: another hub on the same store judges, and this one takes over when that one is gone; "
    "clients that know both (LIFESIGNS_HUB=URL,URL) find the right one"
)
PAGE: Final = f"""<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="3"><title>lifesigns: standing by</title>
<p>{WHY.capitalize()}.</p>
""".encode()
RETRY_AFTER: Final = "1"


class StandbySite:
    """The application of a hub that stands by."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            found = _answer(scope["path"])
            found.headers = guarded(found.headers, only_tls=False)
            await send_answer(found, scope, send)


def _answer(path: str) -> Answer:
    match path:
        case "/healthz":
            return answer(Alive())
        case "/readyz":
            return answer(Ready("standby", "ok", "none", blind=False), 503)
        case "/":
            return Answer(PAGE, 503, b"text/html; charset=utf-8", [(b"retry-after", RETRY_AFTER.encode())])
    return Problem(503, WHY, headers={"Retry-After": RETRY_AFTER}).answer()
