"""Builds the call history of an agent."""

from __future__ import annotations

from collections import Counter

from lifesigns.core.agent import Agent
from lifesigns.core.detectors.call_history import PastCall, past_calls
from lifesigns.views.calls import CallHistoryView, OpenCall, PastCallView
from lifesigns.views.moments import moment


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
