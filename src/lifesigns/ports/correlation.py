"""Correlation: the id of what is being done, so that everything logged on the way can be found by it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

correlation_id: Final[ContextVar[str]] = ContextVar("correlation_id", default="")
"""Of an order: its id, as events, the audit log and traces have it. Tasks inherit it from who starts them."""
