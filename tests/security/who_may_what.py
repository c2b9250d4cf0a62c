"""Who may what, written down by hand: not made of the table of the API, so that a row of the table that lets in too many is found.

A new call stands in none of these lists, and `test_who_may_what.py` says so: think about who should get it, and write it down.
"""

from __future__ import annotations

from typing import Final

OPEN: Final = """
GET /sign-in
POST /sign-in
POST /sign-out
GET /healthz
GET /readyz
GET /openapi.json
GET /docs
"""
"""To whoever reaches the port: there is nothing in them but the program itself, whether it lives, and the way in."""

OWN: Final = """
POST /api/v1/beats
POST /api/v1/signals
GET /api/v1/agents/{agent_id}/orders
GET /api/v1/orders
POST /api/v1/agents/{agent_id}/orders/{order_id}/ack
POST /api/v1/tasks/{task_id}/claim
POST /api/v1/tasks/{task_id}/release
POST /api/v1/tasks/{task_id}/checkpoints
PUT /api/v1/tasks/{task_id}/checkpoints/{checkpoint_id}
POST /api/v1/messages
POST /api/v1/messages/{message_id}/ack
POST /api/v1/messages/{message_id}/read
GET /api/v1/agents/{agent_id}/messages
DELETE /api/v1/messages/{message_id}
POST /v1/traces
POST /v1/logs
POST /v1/metrics
POST /hooks/claude-code
POST /hooks/codex
POST /hooks/gemini
POST /hooks/qwen
POST /hooks/copilot
POST /hooks/opencode
GET /ping/{agent_id}
POST /ping/{agent_id}
GET /ping/{agent_id}/{result}
POST /ping/{agent_id}/{result}
"""
"""An agent for itself; an operator and an admin for anybody. A viewer says nothing."""

OWN_OR_ALL: Final = """
GET /api/v1/me
GET /api/v1/agents/{agent_id}
GET /api/v1/agents/{agent_id}/heartbeat
GET /api/v1/agents/{agent_id}/calls
GET /api/v1/agents/{agent_id}/rhythm
GET /healthz/{agent_id}
GET /api/v1/agents/{agent_id}/history
GET /api/v1/tasks/{task_id}/checkpoints/{checkpoint_id}
"""
"""An agent about itself; everybody else about all."""

READ: Final = """
GET /api/v1/agents
GET /api/v1/interventions
GET /api/v1/interventions/{intervention_id}
GET /api/v1/fleet
GET /api/v1/events
GET /api/v1/events/list
GET /api/v1/groups
GET /api/v1/hubs
GET /api/v1/alerts
GET /api/v1/silences
GET /api/v1/breakers
GET /api/v1/breakers/{name}
GET /api/v1/tasks
GET /api/v1/tasks/{task_id}
GET /api/v1/tasks/{task_id}/checkpoints
GET /api/v1/tasks/{task_id}/recovery
GET /api/v1/recoveries
GET /api/v1/claims/recovered
GET /api/v1/memory/keys
GET /api/v1/memory/value
GET /api/v1/messages
GET /api/v1/audit
GET /api/v1/audit/checkpoint
GET /api/v1/audit/proof/{n}
GET /api/v1/audit/consistency
GET /metrics
POST /api/v1/sign-in-links
GET /api/v1/sessions
DELETE /api/v1/sessions/{session_id}
"""
"""People who read; and for themselves a way into the dashboard. No agent."""

ACT: Final = """
POST /api/v1/agents/{agent_id}/nudge
POST /api/v1/agents/{agent_id}/escalate
POST /api/v1/agents/{agent_id}/terminate
POST /api/v1/agents/{agent_id}/pause
POST /api/v1/agents/{agent_id}/resume
POST /api/v1/agents/{agent_id}/clear
POST /api/v1/escalations/{intervention_id}/decision
POST /api/v1/groups/{group}/release
POST /api/v1/alerts/{alert_id}/ack
POST /api/v1/silences
DELETE /api/v1/silences/{silence_id}
POST /api/v1/breakers/{name}/reset
POST /api/v1/breakers/{name}/open
POST /api/v1/breakers/{name}/close
POST /api/v1/tasks/{task_id}/recover
"""
"""People who act: operators and admins."""

ADMINISTER: Final = """
DELETE /api/v1/hubs/{name}
POST /api/v1/hubs/{name}/drain
DELETE /api/v1/hubs/{name}/drain
GET /api/v1/tokens
POST /api/v1/tokens
POST /api/v1/keys
POST /api/v1/tokens/{token_id}/rotate
DELETE /api/v1/tokens/{token_id}
"""
"""Who makes others powerful: admins alone."""

MAY: Final = {
    "agent": (OWN, OWN_OR_ALL),
    "viewer": (OWN_OR_ALL, READ),
    "operator": (OWN, OWN_OR_ALL, READ, ACT),
    "admin": (OWN, OWN_OR_ALL, READ, ACT, ADMINISTER),
}


def lines(*texts: str) -> set[str]:
    return {line for text in texts for line in text.split("\n") if line}


BASIC: Final = lines(
    """
GET /ping/{agent_id}
POST /ping/{agent_id}
GET /ping/{agent_id}/{result}
POST /ping/{agent_id}/{result}
"""
)
"""Open to a token that comes as the password of Basic authentication, too: what cron can run often knows no other."""

ALL: Final = lines(OPEN, OWN, OWN_OR_ALL, READ, ACT, ADMINISTER)
