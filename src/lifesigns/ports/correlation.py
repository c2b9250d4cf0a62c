"""Correlation: the id of what is being done, so that everything logged on the way can be found by it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

correlation_id: Final[ContextVar[str]] = ContextVar("correlation_id", default="")
"""Of an order: its id, as events, the audit log and traces have it. Of a request over HTTP or gRPC: its `X-Request-Id`. Tasks
and timers inherit it from whoever starts them; what is nobody's in particular starts in a context of its own."""
