"""Whose voice: who may say something as which agent."""

from __future__ import annotations

from lifesigns.web.answers import Problem
from lifesigns.web.calls import Asked


def check_voice(asked: Asked, *agent_ids: str, field: str = "agent_id") -> None:
    """Raises a `Problem` if the visitor may not speak for one of these agents."""
    visitor = asked.visitor
    for agent_id in agent_ids:
        if not visitor.may_speak_for(agent_id):
            raise Problem(403, f"is {agent_id!r}, for which {visitor.name!r} may not speak", field=field)
