"""Stall: an agent that lives but does not come forward.

Judged only while there is work: a task, an open call or a word of "working", and neither idle, nor waiting for
a human, nor parked. And only by signs the agent has shown before in this life: one that never saved a checkpoint has
no stale one, unless an earlier life saved some of the same task or the policy says that everybody saves.

While a declared call runs within its bound, nothing new is found but that the call takes too long. What was found before
it began stays found: a call is no checkpoint, and an agent that calls all day would never be asked for one.
All of this is weak evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lifesigns.core.agent import MODEL_CALL, NEVER, Agent, Call, CpuLevel, Work
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
    until: float = NEVER
    """From when on it does not apply any more."""


def has_work(agent: Agent) -> bool:
    """Whether there is anything this agent should be coming forward with."""
    if agent.work is None or agent.doing not in AT_WORK:
        return False
    return agent.task_id is not None or agent.doing in (Doing.WORKING, Doing.BUSY)


def soonest(policy: StallPolicy) -> float:
    """The shortest time in which anybody can stall who is getting on right now, declared calls apart."""
    return min(
        policy.checkpoint_degraded_after,
        policy.tool_call_after,
        policy.tokens_after,
        policy.output_after,
        policy.spin_after,
    )


def cpu_level_of(cpu_percent: float, policy: StallPolicy) -> CpuLevel:
    """How much of a core this is."""
    if cpu_percent < policy.idle_cpu:
        return CpuLevel.COLD
    return CpuLevel.HOT if cpu_percent >= policy.spin_cpu else CpuLevel.WARM


def examine(agent: Agent, policy: StallPolicy, due: Due, now: float) -> tuple[list[Finding], float]:
    """The stalls that hold at `now`, the worst of each kind, and when that changes if nothing is heard."""
    held: dict[Kind, Finding] = {}
    next_at = NEVER
    work = agent.work
    if work is None:
        return [], next_at
    for rule in _rules(agent, work, policy):
        at = due(rule.since, rule.wait)
        if work.calls and rule.kind is not Kind.LONG_CALL:
            if (hung := held.get(Kind.LONG_CALL)) is not None and at > hung.since:
                continue  # It follows from the call that hangs: the same thing a second time.
            at = _excused_until(at, work, due)
        if at >= rule.until or rule.until <= now:
            continue
        if at > now:
            next_at = min(next_at, at)
        else:
            next_at = min(next_at, rule.until)
            held[rule.kind] = Finding(
                rule.kind,
                rule.since,
                rule.severity,
                rule.text.format(duration(now - rule.since)),
                {"for_s": round(now - rule.since, 1)},
            )
    return list(held.values()), next_at


def _excused_until(at: float, work: Work, due: Due) -> float:
    """When something falls due that would have at `at`, within the bounds of calls that had begun by then and are open.

    They excuse an agent no longer than the longest of them may take: the ends of some may have been lost.
    """
    excused, longest = at, 0.0
    for call in sorted(work.calls.values(), key=lambda call: call.started_at):
        if call.started_at < excused < (end := due(call.started_at, call.bound)):
            excused, longest = end, max(longest, end - call.started_at)
    return min(excused, at + longest)


def _rules(agent: Agent, work: Work, policy: StallPolicy) -> Iterator[Rule]:
    """The rules that apply, milder before worse of the same kind."""
    if agent.doing not in AT_WORK:
        return
    if work.calls:
        yield _long_call(work)
    if has_work(agent):
        yield from _checkpoint_rules(work, policy)
        yield from _progress_rules(work, policy)
    elif work.tool_at is not None and work.checkpoint_at is not None:
        # It has not said that it works, but one that saves checkpoints and calls tools does, for as long as it calls some.
        yield from _checkpoint_rules(work, policy, until=work.tool_at + policy.tool_call_after)


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


def may_block(agent: Agent, now: float) -> bool:
    """Whether a declared operation or an open call may be what holds the agent's loop. One that is over its bound may not,
    if the agent got on with other things since: its end was lost."""
    if agent.doing is Doing.BUSY:
        return True
    work = agent.work
    return work is not None and any(
        now < call.started_at + call.bound or _hanging_since(call, work) == call.started_at
        for call in work.calls.values()
    )


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


def _checkpoint_rules(work: Work, policy: StallPolicy, until: float = NEVER) -> Iterator[Rule]:
    if work.checkpoint_at is not None:
        since, text = max(work.checkpoint_at, work.since), "No checkpoint for {}."
    elif work.saves or policy.checkpoint_expected:
        since, text = work.since, "No checkpoint since its work began {} ago."
    else:
        return
    for wait, severity in (
        (policy.checkpoint_degraded_after, Severity.DEGRADED),
        (policy.checkpoint_stuck_after, Severity.STUCK),
    ):
        yield Rule(Kind.NO_CHECKPOINT, since, wait + work.excused, severity, text, until)


def _progress_rules(work: Work, policy: StallPolicy) -> Iterator[Rule]:
    clocks_from = max(work.since, work.clocks_from)
    # An open tool call is one that is made.
    if work.tool_at is not None and all(call.what == MODEL_CALL for call in work.calls.values()):
        since = max(work.tool_at, clocks_from)
        text = (
            f"No tool call for {{}}; the last was {work.last_tool}."
            if work.last_tool
            else "No tool call for {}."
        )
        yield Rule(Kind.NO_TOOL_CALL, since, policy.tool_call_after, Severity.STUCK, text)
    if work.tokens_at is not None:
        since = max(work.tokens_at, clocks_from)
        text = "No tokens used for {}."
        yield Rule(Kind.NO_TOKENS, since, policy.tokens_after, Severity.DEGRADED, text)
    if work.output_at is not None and not work.calls:
        since = max(work.cpu_level_at, clocks_from, _last_activity_at(work))
        if work.cpu_level is CpuLevel.COLD:
            text = "No output for {}, and no CPU used."
            yield Rule(Kind.NO_OUTPUT, since, policy.output_after, Severity.STUCK, text)
        elif work.cpu_level is CpuLevel.HOT:
            text = "Burns CPU, but has put nothing out for {}."
            yield Rule(Kind.SPINNING, since, policy.spin_after, Severity.STUCK, text)
