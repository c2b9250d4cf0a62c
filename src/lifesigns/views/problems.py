"""Problems: a hub's answer to a request it refuses."""

from __future__ import annotations

from msgspec import Struct


class ProblemDetails(Struct, omit_defaults=True):
    """RFC 9457, and the wrong field."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    code: str | None = None
    """For programs, where several problems share a status: `agent_not_found`, `agent_offline`, `timeout`."""
    request_id: str | None = None
    """What the request is called in the hub's log."""
