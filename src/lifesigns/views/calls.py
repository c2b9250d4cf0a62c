"""The call history: an agent's last tool calls as the loop detector remembers them, and its open calls.

It has names and digests, no contents: it shows whether two calls are the same, but not what they said. Calls that count
for no loop (retries, infrastructure errors, declared polling) are left out, and a new task begins a new history.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from lifesigns.core.agent import Agent
from lifesigns.core.detectors.call_history import PastCall, past_calls
from lifesigns.views.moments import Moment, moment


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


def call_tape(agent: Agent) -> CallHistoryView:
    """The call history of an agent now."""
    work = agent.work
    calls = () if agent.call_history is None else _marked(tuple(past_calls(agent.call_history)))
    being_made = () if work is None else tuple(work.calls.values())
    return CallHistoryView(
        agent.id,
        0 if work is None else work.tool_calls,
        calls,
        tuple(OpenCall(call.what, moment(call.started_at), call.bound) for call in being_made),
    )


def _marked(calls: tuple[PastCall, ...]) -> tuple[PastCallView, ...]:
    times = Counter(map(_same, calls))
    marked: list[PastCallView] = []
    before, run = None, 0
    for call in calls:
        same = _same(call)
        run = run + 1 if call.tool and same == before else 1
        before = same
        marked.append(
            PastCallView(
                at=moment(call.at),
                tool=call.tool or None,
                args=call.args or None,
                outcome=call.outcome or None,
                failed=call.failed,
                took_s=call.took_s or None,
                times=times[same] if call.tool else 1,
                in_a_row=run,
            )
        )
    return tuple(marked)


def _same(call: PastCall) -> tuple[str, str, str, bool]:
    return call.tool, call.args, call.outcome, call.failed
