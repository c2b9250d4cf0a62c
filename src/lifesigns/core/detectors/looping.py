"""Looping: the same thing over and over.

Two calls are the same if tool, arguments and outcome are the same; the outcome is the result, or the
error. Eight rules, the worst that holds is the finding:

    same      the same call and outcome in a row               4 degraded ·  8 stuck · 12 conclusive
    error     ... and the outcome is an error                  3 degraded ·  5 stuck ·  8 conclusive
    cycle     2-12 calls that repeat with their outcomes       3 degraded ·            5 conclusive
    unknown   either of them, with results nobody told         5 degraded
    changing  the same arguments in a row, other outcomes     20 degraded · 60 stuck, people decide
    recent    the same call and outcome among the last 30      6 degraded · 12 stuck
    failing   the same call and error among the last 10        3 degraded
    talk      model calls in a row, and nothing is done       10 degraded

Laws:
- Talk is told by deeds that are missing. From an agent that never told of a tool call (a summariser, a chat bot) none is missed:
  a notice. Who lets as much time pass between its model calls as they take is talked to: nothing.
- Waiting is not looping. In a real loop model calls fill the time between identical calls; who polls sleeps. Calls
  that come 30 s or more apart, or further apart each time, are a wait if model calls fill less than half of that
  time: worth a notice, `degraded` and a word to people at 60. If model calls were never told it may be a wait: `degraded`.
- Other arguments are another call. Batch work (one tool, other arguments, always "ok") is never a loop;
  therefore the door digests arguments `exact`, and only results and errors without their volatile parts.
- What we do not know is no evidence. A call without an `args_digest` equals no other call, and ends a run: something
  else may have happened there. An author who names no arguments may have left them out: that is never conclusive, and
  no evidence at all without an outcome.
- Work between two equal calls explains them: `recent` and `failing` do not count a call if something new succeeded
  since the last time. The same green test after each change is work, as is `go_back` after each page.
- Infrastructure errors and declared retries do not count: they neither extend nor end a run.
- A declared polling tool is left out in the same way until its wait budget is over, unless it polls without a wait. A
  loop with such a wait inside may be polling by other means: for as long as that budget it is `degraded`, no more.
- Only another call ends a run. Approvals, pauses and the time between calls do not.
"""

from __future__ import annotations

from typing import Final

from lifesigns.core.detectors import call_history
from lifesigns.core.detectors.call_history import (
    ERROR,
    GAP,
    NO_ARGS,
    UNKNOWN,
    CallHistory,
    barren_repeats,
    keys_of,
    outcome_known,
)
from lifesigns.core.detectors.waits import excused, polls, tempered
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ToolFinished

_Level = tuple[Severity, bool]
_DEGRADED: Final[_Level] = Severity.DEGRADED, False
_STUCK: Final[_Level] = Severity.STUCK, False
_CONCLUSIVE: Final[_Level] = Severity.STUCK, True

_BADNESS: Final = (Severity.NOTICE, Severity.DEGRADED, Severity.STUCK)


def observe(
    history: CallHistory,
    call: ToolFinished,
    policy: LoopingPolicy,
    now: float,
    slept_for: float = 0.0,
    truce_until: float = 0.0,
) -> Finding | None:
    """Hear one finished call; the loop that now holds, if any. One out of a backlog counts for none: an hour of polls that
    come at once is no tight loop, and a loop goes on; so does a cycle, in which the call only takes its turn. Something new that was done is heard all the same: it explains others.

    `slept_for` is how long we did not look since the call before: that is no part of anybody's wait budget.
    """
    history.talk, history.acts = 0, True
    history.slept_for += slept_for
    if history.polling_since is not None:
        history.polling_since += slept_for
    if now < max(history.backlog_until, truce_until):
        counts = _is_new(history, call, policy)
        if counts:
            history.polling_since = None
        else:
            call_history.take_turn(history, call, policy, now)
    else:
        counts = not excused(history, call, policy, now)
    if counts:
        call_history.record(history, call, policy, max(now, history.times[-1]) if history.times else now)
    return holding(history, policy)


def thought(history: CallHistory, started_at: float | None, ok: bool, now: float) -> None:
    """Hear one finished model call; `started_at` is None if nobody told. Of calls side by side one counts as talk."""
    if started_at is not None:
        history.model_known = True
        history.model_s += max(0.0, now - max(started_at, history.model_until))
        history.model_until = max(now, history.model_until)
    if ok and (not history.talk or started_at is None or started_at >= history.talked_at):
        if not history.talk:
            history.talk_since, history.talk_model_s = now, history.model_s
        history.talk += 1
        history.talked_at = now


def holding(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """The worst loop on the tape. It depends on the tape alone: looking again changes nothing."""
    call_history.fill_in(history)
    talk = _talk(history, policy) if history.talk >= policy.talk_notice else None
    if history.key_run < 2 and not history.often and not history.failing and not any(history.matched):
        return talk
    rules = (_same, _cycle, _changing, _recent, _failing)
    found = [one for rule in rules if (one := rule(history, policy)) is not None]
    if talk is not None:
        found.append(talk)
    return max(found, key=_badness, default=None)


def _is_new(history: CallHistory, call: ToolFinished, policy: LoopingPolicy) -> bool:
    """Whether this did something that is not on the tape, and is no look at the same thing either."""
    key, rkey = keys_of(call)
    return (
        call.ok
        and key != history.key
        and rkey not in history.rkeys
        and not polls(call.tool, policy.polling_tools)
    )


# --- the rules ---------------------------------------------------------------------------------------


def _same(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    repeats = history.matched[0] + 1
    if repeats < min(policy.same_notice, policy.error_notice, policy.unknown_notice):
        return None
    tool, _, outcome = history.rkeys[-1].split(GAP)
    if outcome == UNKNOWN:
        notice, stuck, conclusive = policy.unknown_notice, 0, 0
        text = f"{tool} was called {repeats} times in a row with the same arguments, its results unknown"
    elif outcome.startswith(ERROR):
        notice, stuck, conclusive = policy.error_notice, policy.error_stuck, policy.error_conclusive
        text = f"{tool} failed {repeats} times in a row with the same arguments and the same error"
    else:
        notice, stuck, conclusive = policy.same_notice, policy.same_stuck, policy.same_conclusive
        text = f"{tool} was called {repeats} times in a row with the same arguments and the same result"
    if repeats < notice:
        return None
    level = _level(repeats, stuck, conclusive)
    return _run(history, policy, text, level, repeats, 1, tool)


def _cycle(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """The shortest period that holds: it has the most repeats, its multiples say the same with fewer."""
    for period, matched in enumerate(history.matched[1:], start=2):
        repeats = (matched + period) // period
        # Equal calls have every period; they are for `_same` to judge, by its own numbers.
        if repeats < policy.cycle_notice or history.matched[0] >= period - 1:
            continue
        calls = history.rkeys[-period:]
        tools = ", ".join(rkey.split(GAP)[0] for rkey in calls)
        if all(map(outcome_known, calls)):
            results, level = "the same results", _level(repeats, *[policy.cycle_conclusive] * 2)
        elif repeats >= policy.unknown_notice:
            results, level = "unknown results", _DEGRADED
        else:
            return None
        text = f"The same {period} calls ({tools}) came {repeats} times over with {results}"
        return _run(history, policy, text, level, repeats, period, tools)
    return None


def _changing(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """Never conclusive: a result that changes may be what the agent is waiting for."""
    repeats = history.key_run
    if repeats < policy.changing_notice:
        return None
    tool = history.key.split(GAP)[0]
    text = f"{tool} was called {repeats} times in a row: same arguments, other or unknown results"
    numbers: dict[str, float | str] = {"repeats": repeats, "period": 1, "tool": tool}
    level = _DEGRADED
    if repeats >= policy.changing_human:
        level, numbers["people"] = _STUCK, 1
    found = _finding(history, history.key_since, text, level, **numbers)
    return tempered(found, history, policy, repeats - 1, repeats)


def _recent(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    if not history.often:
        return None
    tool, repeats, window = (
        history.often.split(GAP)[0],
        barren_repeats(history, history.often),
        len(history.rkeys),
    )
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments and outcome"
    level = _STUCK if repeats >= policy.recent_stuck else _DEGRADED
    found = _finding(history, history.often_since, text, level, repeats=repeats, window=window, tool=tool)
    since = window - history.rkeys.index(history.often)
    # Work that came after the last of them makes no loop of a wait.
    after = history.rkeys[::-1].index(history.often)
    return tempered(found, history, policy, repeats - 1, since, after=after)


def _failing(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    if not history.failing:
        return None
    window = min(policy.failing_window, len(history.rkeys))
    tool, repeats = history.failing.split(GAP)[0], barren_repeats(history, history.failing, window)
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments, and failed alike"
    first = history.rkeys.index(history.failing, len(history.rkeys) - window)
    found = _finding(
        history, history.times[first], text, _DEGRADED, repeats=repeats, window=window, tool=tool
    )
    return tempered(found, history, policy, repeats - 1, len(history.rkeys) - first)


def _talk(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    lasted, model_s = history.talked_at - history.talk_since, history.model_s - history.talk_model_s
    if history.model_known and model_s < policy.wait_model_share * lasted:
        return None
    text = f"{history.talk} model calls in a row, and no tool call and no progress since, for {_lasting(lasted)}."
    severity = Severity.DEGRADED if history.acts else Severity.NOTICE
    return Finding(Kind.LOOPING, history.talk_since, severity, text, {"talk": history.talk})


# --- findings ----------------------------------------------------------------------------------------


def _run(
    history: CallHistory,
    policy: LoopingPolicy,
    text: str,
    level: _Level,
    repeats: int,
    period: int,
    tools: str,
) -> Finding:
    """A finding about calls that came in a row, or in turn."""
    if level == _CONCLUSIVE and all(rkey.split(GAP)[1] == NO_ARGS for rkey in history.rkeys[-period:]):
        level = _STUCK
    since = history.started[period - 1]
    found = _finding(history, since, text, level, repeats=repeats, period=period, tool=tools)
    return tempered(found, history, policy, repeats - 1, history.matched[period - 1] + period, period)


def _level(repeats: int, stuck: int, conclusive: int) -> _Level:
    """`stuck` 0: no number of repeats is that."""
    if repeats < stuck or not stuck:
        return _DEGRADED
    return _CONCLUSIVE if repeats >= conclusive else _STUCK


def _finding(history: CallHistory, since: float, text: str, level: _Level, **numbers: float | str) -> Finding:
    severity, conclusive = level
    text = f"{text}, for {_lasting(history.times[-1] - since)}."
    return Finding(Kind.LOOPING, since, severity, text, numbers, conclusive)


def _badness(finding: Finding) -> tuple[bool, int]:
    return finding.conclusive, _BADNESS.index(finding.severity)


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
