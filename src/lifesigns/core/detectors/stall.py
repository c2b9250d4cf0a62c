"""Stall: an agent that lives but makes no progress.

We judge it only while it has work (a task, an open call or the status "working") and is neither idle, nor waiting for
a human, nor parked; never if others only report on it afterwards. And only by signs it has shown before in this life: an agent that never saved a checkpoint has no
stale one, unless an earlier life saved some for the same task or the policy says that every agent saves.

While a declared call runs within its bound, the only new finding is a call that takes too long. Earlier findings stay
open: a call is not a checkpoint, and an agent that calls all day would never owe one. All of this is weak evidence.
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
"""`Awareness.due`: when a wait is over, without counting our own lapses."""

KINDS = (
    Kind.NO_CHECKPOINT,
    Kind.NO_TOOL_CALL,
    Kind.NO_TOKENS,
    Kind.NO_OUTPUT,
    Kind.REPEATED_OUTPUT,
    Kind.SPINNING,
    Kind.LONG_CALL,
)

AT_WORK = frozenset({Doing.WORKING, Doing.BUSY, Doing.UNKNOWN, Doing.DRAINING})


class Rule(NamedTuple):
    """One way to stall: when we last saw a sign, how old it may be, and what it means beyond that."""

    kind: Kind
    since: float
    wait: float
    severity: Severity
    text: str
    until: float = NEVER
    """When the rule ceases to apply."""


def has_work(agent: Agent) -> bool:
    """Whether this agent has work in which to make progress."""
    if agent.work is None or agent.doing not in AT_WORK:
        return False
    return agent.task_id is not None or agent.doing in (Doing.WORKING, Doing.BUSY)


def soonest(policy: StallPolicy) -> float:
    """The shortest time in which an agent that makes progress now can stall, apart from declared calls."""
    return min(
        policy.checkpoint_degraded_after,
        policy.tool_call_after,
        policy.tokens_after,
        policy.output_after,
        policy.spin_after,
        policy.repeat_after,
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
                continue  # It follows from the call that hangs, so it would count the same thing twice.
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
    """When a deadline of `at` falls due, given the bounds of open calls that had begun by then.

    They excuse an agent no longer than the longest of them may take: the ends of some may be lost.
    """
    excused, longest = at, 0.0
    for call in sorted(work.calls.values(), key=lambda call: call.started_at):
        if call.started_at < excused < (end := due(call.started_at, call.may_take)):
            excused, longest = end, max(longest, end - call.started_at)
    return min(excused, at + longest)


def _rules(agent: Agent, work: Work, policy: StallPolicy) -> Iterator[Rule]:
    """The rules that apply, milder before worse of the same kind."""
    if agent.doing not in AT_WORK or agent.beatless:
        return
    if work.calls:
        yield _long_call(work)
    if has_work(agent):
        yield from _checkpoint_rules(work, policy)
        yield from _progress_rules(work, policy)
    elif work.tool_at is not None and work.checkpoint_at is not None:
        # It did not report that it works, but an agent that saves checkpoints works while it calls tools.
        yield from _checkpoint_rules(work, policy, until=work.tool_at + policy.tool_call_after)


def calls_end_at(work: Work) -> float:
    """When the last open call exceeds its bound if nothing more happens."""
    call = _last_call(work)
    return _hanging_since(call, work) + call.may_take


def _last_call(work: Work) -> Call:
    """The open call that may take longest. While a call is within its bound, it excuses the agent."""
    return max(work.calls.values(), key=lambda call: _hanging_since(call, work) + call.may_take)


def _hanging_since(call: Call, work: Work) -> float:
    """An agent that has done other things since does not hang in this call: we lost the call's end."""
    return max(call.started_at, work.since, work.tool_at or 0.0, work.checkpoint_at or 0.0)


def may_block(agent: Agent, now: float) -> bool:
    """Whether a declared operation or an open call may be holding the agent's loop. One over its bound is not, if the
    agent has done other things since: we lost its end."""
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
    return Rule(Kind.LONG_CALL, since, call.may_take, Severity.STUCK, text)


def _last_activity_at(work: Work) -> float:
    """When the agent last showed any activity. A program watched from outside may have a sender inside: if it reports
    calls, tokens or checkpoints, it need not print."""
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
        yield Rule(Kind.NO_CHECKPOINT, since, wait + work.excused + work.unheard, severity, text, until)


def _progress_rules(work: Work, policy: StallPolicy) -> Iterator[Rule]:
    clocks_from = max(work.since, work.clocks_from)
    # An open tool call counts as a tool call.
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
        # Calls without a model may be work; nothing at all is none.
        still_since = max(clocks_from, _last_activity_at(work))
        text = "No tokens used and nothing else done for {}."
        yield Rule(Kind.NO_TOKENS, still_since, policy.tokens_after, Severity.STUCK, text)
    if work.output_at is not None and not work.calls:
        yield from _output_rules(work, policy, max(clocks_from, _last_activity_at(work)))


def _output_rules(work: Work, policy: StallPolicy, since: float) -> Iterator[Rule]:
    """Of a program watched from outside, which has shown nothing new since then."""
    if work.repeated:
        # Whoever repeats an error needs help; other repetitions may be all there is to say.
        severity = Severity.STUCK if work.repeats_error else Severity.DEGRADED
        line = work.repeated.replace("{", "{{").replace("}", "}}")
        text = f"Its output has only repeated itself for {{}}: {line}"
        yield Rule(Kind.REPEATED_OUTPUT, since, policy.repeat_after, severity, text)
    else:
        since = max(work.cpu_level_at, since)
        if work.cpu_level is CpuLevel.COLD:
            text = "No output for {}, and no CPU used."
            yield Rule(Kind.NO_OUTPUT, since, policy.output_after, Severity.STUCK, text)
        elif work.cpu_level is CpuLevel.HOT:
            text = "Burns CPU, but has put nothing out for {}."
            yield Rule(Kind.SPINNING, since, policy.spin_after, Severity.STUCK, text)
