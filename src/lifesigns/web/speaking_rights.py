"""Who may speak as which agent, and about what."""

from __future__ import annotations

from collections.abc import Callable

from lifesigns.core.signals import CheckpointSaved, MessageSent, TaskClaimed
from lifesigns.web.access import session_shown
from lifesigns.web.answers import Problem
from lifesigns.web.forwarded import REACHED, SIGNED_IN
from lifesigns.web.routes import Request


def check_may_speak(request: Request, *agent_ids: str, field: str = "agent_id") -> None:
    """Raises a `Problem` if the principal may not speak for one of these agents."""
    principal = request.principal
    for agent_id in agent_ids:
        if not principal.may_speak_for(agent_id):
            raise Problem(403, f"is {agent_id!r}, for which {principal.name!r} may not speak", field=field)


def is_still_valid(request: Request) -> Callable[[], bool]:
    """Whether a waiting client may still get an answer: its token or session may end meanwhile."""
    access, token_id = request.service.access, request.principal.token_id
    # Whether a session of another hub is still open is known there, where the stream ends then.
    elsewhere = REACHED in request.scope and request.scope.get(SIGNED_IN)
    session = None if elsewhere else session_shown(request.scope, request.host_policy)
    return lambda: access.is_still_valid(token_id, request.now, session)


def check_owner(request: Request, signal: CheckpointSaved | MessageSent | TaskClaimed) -> None:
    """Raises a `Problem` if the principal may not send this."""
    check_may_speak(request, signal.agent_id)
    refused = request.service.http_receiver.not_own(signal, request.principal)
    if refused is not None:
        field, detail = refused
        raise Problem(409, detail, field=field)
