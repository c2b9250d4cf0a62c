"""Problems: what a hub answers when it cannot answer."""

from __future__ import annotations

from msgspec import Struct


class ProblemDetails(Struct, omit_defaults=True):
    """RFC 9457, and the field that is wrong."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
