"""Hooks: coding agents tell of themselves, and are answered in their own words.

The answer is JSON that the program understands: context for its model, the denial of a call, the end of its run; or `{}`.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from msgspec import Meta

from lifesigns.hub.http_receiver import InboxFull, NotLeader
from lifesigns.integrations.hooks.events import HookEvent, Origin
from lifesigns.integrations.hooks.programs import PROGRAMS
from lifesigns.integrations.hooks.registry import NoRoom
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import SPEAKERS, Request, Route
from lifesigns.web.speaking_rights import check_may_speak

INTERRUPT: Final = [(b"lifesigns-interrupt", b"1")]
"""The client interrupts the program that has called it: no answer would end its run."""


class OriginQuery(Origin):
    """What the client of a hook knows, and the event does not say."""

    gives_up_at: Annotated[float, Meta(ge=0)] | None = None
    """When nobody waits for the answer any more, in seconds since 1970 by this machine's clock. An event that is read later is not
    heard, and takes no order with it: its client has left it in the spool, if it matters."""


async def _heard(request: Request, program: str) -> Answer:
    hooks, event = request.site.hooks, PROGRAMS[program].read(request.body)
    session = hooks.find(program, event, request.query, request.principal.token_id)
    check_may_speak(request, session.main.id, field="session_id")
    if request.service.hub.is_replaced:
        raise NotLeader
    await hooks.introduce(session)
    gave_up = request.query.gives_up_at
    if gave_up is not None and time.time() > gave_up:
        raise Problem(408, "the client of this hook gave up waiting before the hub came to read it")
    try:
        reply = hooks.hear(session, event, request.now)
    except NoRoom:
        raise InboxFull from None
    return answer(reply.answer, headers=INTERRUPT if reply.interrupts else ())


def _row(program: str, about: str) -> Route:
    async def handle(request: Request) -> Answer:
        return await _heard(request, program)

    handle.__name__ = handle.__qualname__ = program.replace("-", "_")
    handle.__doc__ = about
    return Route(
        "POST",
        f"/hooks/{program}",
        SPEAKERS,
        handle,
        dict[str, Any],
        query=OriginQuery,
        body=HookEvent,
        large=True,
        also={400: "the event cannot be read", 403: "the token is not for the agents of this program"},
    )


_ABOUT: Final = {
    "claude-code": """One event of a hook of Claude Code, as the hook gets it. The session is an agent, and so is each of its subagents.
    Answered at once, with what waits for that agent: only the first event of a session waits until it is written down, because
    the program stands still meanwhile.""",
    "codex": """One event of a hook of Codex, as the hook gets it; otherwise as for Claude Code. No answer ends its run: a
    stop denies every call, and has the client interrupt a run that was started with `exec` (`lifesigns-interrupt`).""",
    "gemini": "One event of a hook of Gemini CLI, as the hook gets it; otherwise as for Claude Code.",
    "qwen": "One event of a hook of Qwen Code, as the hook gets it; otherwise as for Claude Code.",
    "copilot": """One event of a hook of GitHub Copilot CLI, as the hook gets it; otherwise as for Claude Code. No answer ends
    its run: a stop denies every call, and has the client interrupt a run that was started with `-p` (`lifesigns-interrupt`).""",
    "opencode": "One event of our plugin for opencode; otherwise as for Claude Code.",
}

CALLS: Final = tuple(_row(program, about) for program, about in _ABOUT.items())
