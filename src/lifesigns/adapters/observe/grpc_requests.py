"""gRPC requests have ids as those over HTTP have: `x-request-id` in their metadata, the caller's own if it is sane."""

from __future__ import annotations

from typing import Any

from lifesigns.ports.correlation import correlation_id
from lifesigns.ports.request_ids import HEADER, request_id


def begin(context: Any) -> dict[str, str]:
    """Name a request that has come: everything logged for it has its id, and its answer or error too, at its end. Returns what
    else its caller said of it."""
    said = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
    given = said.get(HEADER.decode())
    called = request_id(None if given is None else given.encode()).decode()
    correlation_id.set(called)  # A request is a task with its own context: this ends with it.
    context.set_trailing_metadata(((HEADER.decode(), called),))
    return said
