"""Stall: an agent that lives but does not come forward.

Judged only while there is work: a task, an open call or a word of "working", and neither idle, nor waiting for
a human, nor parked, nor inside a declared call that is still within its bound. And only by signs the agent has
shown before in this life: who never saved a checkpoint has no stale one.
All of this is weak evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lifesigns.core.agent import NEVER, Agent, Call, Heat, Work
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.health import Doing
from lifesigns.core.policy import StallPolicy
from lifesigns.core.words import duration

Due = Callable[[float, float], float]
"""`Awareness.due`: when a wait is over, our own lapses not counted."""

KINDS = (
    Kind.NO_CHECKPOINT,
    Kind.NO_TOOL_CALL,
    Kind.NO_TOKENS,
    Kind.NO_OUTPUT,
    Kind.SPINNING,
    Kind.LONG_CALL,
)

AT_WORK = frozenset({Doing.WORKING, Doing.BUSY, Doing.UNKNOWN, Doing.DRAINING})


class Rule(NamedTuple):
    """One way to stall: what was last seen when, how long that may be ago, and what it then means."""

    kind: Kind
    since: float
    wait: float
    severity: Severity
    text: str


def has_work(agent: Agent) -> bool:
    """Whether there is anything this agent should be coming forward with."""
    if agent.work is None or agent.doing not in AT_WORK:
        return False
    return agent.task_id is not None or agent.doing in (Doing.WORKING, Doing.BUSY) or bool(agent.work.calls)


def soonest(policy: StallPolicy) -> float:
    """The shortest time in which anybody can stall who is getting on right now, declared calls apart."""
    return min(
        policy.checkpoint_degraded_after,
        policy.tool_call_after,
        policy.tokens_after,
        policy.output_after,
        policy.spin_after,
    )


def heat_of(cpu_percent: float, policy: StallPolicy) -> Heat:
    """How much of a core this is."""
    if cpu_percent < policy.idle_cpu:
        return Heat.COLD
    return Heat.HOT if cpu_percent >= policy.spin_cpu else Heat.WARM


def examine(agent: Agent, policy: StallPolicy, due: Due, now: float) -> tuple[list[Finding], float]:
    """The stalls that hold at `now`, the worst of each kind, and when the next one would begin."""
    held: dict[Kind, Finding] = {}
    next_at = NEVER
    for rule in _rules(agent, policy):
        at = due(rule.since, rule.wait)
        if at > now:
            next_at = min(next_at, at)
        else:
            held[rule.kind] = Finding(
                rule.kind,
                rule.since,
                rule.severity,
                rule.text.format(duration(now - rule.since)),
                {"for_s": round(now - rule.since, 1)},
            )
    return list(held.values()), next_at


def _rules(agent: Agent, policy: StallPolicy) -> Iterator[Rule]:
    """The rules that apply, milder before worse of the same kind."""
    work = agent.work
    if work is None or not has_work(agent):
        return
    if work.calls:
        yield _long_call(work)
        return
    yield from _progress_rules(work, policy)


def calls_end_at(work: Work) -> float:
    """When the last of the open calls is over its bound if nothing more is done."""
    call = _last_call(work)
    return _hanging_since(call, work) + call.bound


def _last_call(work: Work) -> Call:
    """The open call that may take longest. While one is within its bound, the agent is excused by it."""
    return max(work.calls.values(), key=lambda call: _hanging_since(call, work) + call.bound)


def _hanging_since(call: Call, work: Work) -> float:
    """Who got on with other things since does not hang in this call: its end was lost."""
    return max(call.started_at, work.since, work.tool_at or 0.0, work.checkpoint_at or 0.0)


def _long_call(work: Work) -> Rule:
    call = _last_call(work)
    since = _hanging_since(call, work)
    said = "has been running" if since == call.started_at else "has not ended, and nothing else was done"
    text = f"{call.what} {said} for {{}}, longer than its bound of {duration(call.bound)}."
    return Rule(Kind.LONG_CALL, since, call.bound, Severity.STUCK, text)


def _last_activity_at(work: Work) -> float:
    """When the agent last showed that it does something, in any way. A program that is watched from outside may have a
    sender inside: who reports calls, tokens or checkpoints need not print anything."""
    reported = (work.output_at, work.tool_at, work.tokens_at, work.checkpoint_at, *work.ended.values())
    return max(work.since, *(at for at in reported if at is not None))


def _progress_rules(work: Work, policy: StallPolicy) -> Iterator[Rule]:
    if work.checkpoint_at is not None:
        since = max(work.checkpoint_at, work.since)
        text = "No checkpoint for {}."
        yield Rule(
            Kind.NO_CHECKPOINT,
            since,
            policy.checkpoint_degraded_after,
            Severity.DEGRADED,
            text,
        )
        yield Rule(Kind.NO_CHECKPOINT, since, policy.checkpoint_stuck_after, Severity.STUCK, text)
    if work.tool_at is not None:
        since = max(work.tool_at, work.since)
        text = f"No tool call for {{}}; the last was {work.last_tool}."
        yield Rule(Kind.NO_TOOL_CALL, since, policy.tool_call_after, Severity.STUCK, text)
    if work.tokens_at is not None:
        since = max(work.tokens_at, work.since)
        text = "No tokens used for {}."
        yield Rule(Kind.NO_TOKENS, since, policy.tokens_after, Severity.DEGRADED, text)
    if work.output_at is not None:
        since = max(work.heat_at, _last_activity_at(work))
        if work.heat is Heat.COLD:
            text = "No output for {}, and no CPU used."
            yield Rule(Kind.NO_OUTPUT, since, policy.output_after, Severity.STUCK, text)
        elif work.heat is Heat.HOT:
            text = "Burns CPU, but has put nothing out for {}."
            yield Rule(Kind.SPINNING, since, policy.spin_after, Severity.STUCK, text)
