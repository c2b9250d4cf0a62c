"""The call history: an agent's last tool calls as the loop detector remembers them, and its open calls.

It has names and digests, no contents: it shows whether two calls are the same, but not what they said. Calls that count
for no loop (retries, infrastructure errors, declared polling) are left out, and a new task begins a new history.
"""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.moments import Moment


class PastCallView(Struct, frozen=True):
    """A call that ended."""

    at: Moment
    tool: str | None
    """None, like the digests, if the call had nothing to compare."""
    args: str | None
    outcome: str | None
    failed: bool
    took_s: float | None
    """How long it took; None if nobody said."""
    times: int
    """How often this very call (tool, arguments and outcome) is in the history."""
    in_a_row: int
    """Its number among the same calls in a row; 1 for the first."""


class OpenCall(Struct, frozen=True):
    """A tool or model call, or a declared operation, that has begun and not ended."""

    what: str
    started_at: Moment
    bound_s: float
    """What it may take before it is a finding."""


class CallHistoryView(Struct, frozen=True):
    """An agent's last calls, oldest first."""

    agent_id: str
    tool_call_count: int
    """Of this life; `calls` has the last of them."""
    calls: tuple[PastCallView, ...]
    open: tuple[OpenCall, ...]
